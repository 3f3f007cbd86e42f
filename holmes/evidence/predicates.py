"""Whether a record shows a state: true, false, or None when its fields do not tell.

Pure. Presence of a word proves no state: a condition is in every description, whatever its status is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.lexicon import State, lexicon, words_of
from holmes.evidence.quantities import quantities_in
from holmes.evidence.records import plain_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.evidence.records import Field, Record

_STATUS_KEYS: Final = frozenset({"status", "phase", "state", "type", "level", "severity", "lvl"})
_LEVELS: Final = ("level", "severity", "lvl")
_BAD_LEVELS: Final = frozenset({"error", "err", "fatal", "critical", "panic", "e", "f"})
_REASON_KEYS: Final = frozenset({"reason", "status", "phase", "lastreason"})
_PHASES_IN_PATHS: Final = frozenset({"running", "waiting", "terminated"})
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False, "unknown": False}
_NOTHING: Final = frozenset(
    {"", "<none>", "none", "<unset>", "[]", "{}", "null", "0", "<unknown>", "<pending>", "<nil>", "<no value>"}
)
_WELL: Final = frozenset(
    ["running", "completed", "complete", "succeeded", "bound", "ready", "active", "deployed", "normal", "info", "debug"]
)
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
_STATUS_CODE = re.compile(r"[1-5]\d\d")
_RATIO = re.compile(r"(\d+)/(\d+)")


def shows(record: Record, state: str, *, last: bool = False, now: bool = False) -> bool | None:
    """Whether `record` is in `state`, a name of the lexicon; with `last` whether its last state was, with `now` not."""
    words = lexicon().states[state]
    if last and (before := tuple(each for each in record.fields if "laststate" in each.path)):
        record = replace(record, fields=before)
    elif now and (current := tuple(each for each in record.fields if "laststate" not in each.path)):
        record = replace(record, fields=current)
    if state in ("failed", "error") and record.form in ("entry", "event"):
        return _tells_of(record, state)
    if state == "notfound":
        return record.says("not found", exactly=False) or record.says("notfound", exactly=False) or None
    if any(_parts(each.value) & set(words.opposed.split()) for each in record.of(_REASON_KEYS)):
        return words.negative
    verdicts = next((found for found in map(set, _verdicts(record, words)) if found), set())
    if len(verdicts) != 1 or (words.soft and verdicts == {False} and not _is_well(record)):
        return None
    return verdicts.pop() is not words.negative


def has_value(record: Record, value: str) -> bool | None:
    """Whether `value`, a status, reason or condition that the lexicon does not know, is what `record` shows."""
    conditions = set(_named_booleans(record, (plain_key(value),)))
    if len(conditions) == 1:
        return conditions.pop()
    wanted = value.casefold()
    told = [each for each in record.fields if each.key in _STATUS_KEYS | _REASON_KEYS and not _is_boolean(each)]
    told = [each for each in told if each.key != "type" or record.form == "event"]
    if any(wanted in _parts(each.value) for each in told):
        return True
    return False if record.form == "row" and any(each.key == "status" for each in told) else None


def is_nothing(value: str) -> bool:
    """Whether a value says that there is none."""
    return value.strip().casefold() in _NOTHING


def _verdicts(record: Record, words: State) -> Iterator[Iterator[bool]]:
    """What the fields say, the most telling first: the first that says anything decides."""
    yield _named_booleans(record, words.conditions.split())
    yield _full_ratios(record, words.ratios.split())
    yield _above_zero(record, words.above_zero.split())
    yield _by_status(record, words.statuses.split(), last="terminated" in words.statuses)
    yield _by_reason(record, words)


def _full_ratios(record: Record, keys: list[str]) -> Iterator[bool]:
    for each in record.of(keys):
        if match := _RATIO.fullmatch(each.value):
            yield match[1] == match[2] != "0"


def _above_zero(record: Record, keys: list[str]) -> Iterator[bool]:
    for each in record.of(keys):
        found = quantities_in(each.value)
        number = found[0].number("count") if found else None
        wholes = (other.value for other in record.fields if other.path == ("ready", "total"))
        totals = [int(whole) for whole in wholes if whole.isdigit()]
        if number is not None and (number == 0 or not totals or number >= totals[0]):
            yield number > 0


def _by_status(record: Record, wanted: list[str], *, last: bool) -> Iterator[bool]:
    if not wanted:
        return
    for each in record.fields:
        if each.labels and each.labels & _conditions(record):
            continue
        if each.key in _STATUS_KEYS and not _is_boolean(each) and (each.key != "type" or record.form == "event"):
            if each.key in ("level", "severity", "lvl") and not {"error", "warning"} & set(wanted):
                continue
            yield bool(_parts(each.value) & set(wanted))
        if last and each.key == "laststate":
            yield bool(_parts(each.value) & set(wanted))
        for part in each.path[:-1]:
            if part in _PHASES_IN_PATHS and ("laststate" not in each.path or last):
                yield part in wanted


def _by_reason(record: Record, words: State) -> Iterator[bool]:
    wanted = set(words.reasons.split())
    if not wanted:
        return
    told = [each for each in record.of(_REASON_KEYS) if not _is_boolean(each)]
    if any(_parts(each.value) & wanted for each in told):
        yield True
    elif told and (record.form == "row" or any({"laststate", "terminated"} & set(each.path) for each in told)):
        yield False


def _named_booleans(record: Record, names: Iterable[str]) -> Iterator[bool]:
    """Fields that are true or false, and the statuses of conditions, of these names."""
    wanted = frozenset(names)
    conditions = [
        each
        for each in record.fields
        if each.key == "status" and any(plain_key(label) in wanted for label in each.labels)
    ]
    if not conditions and any(plain_key(each.value) in wanted for each in record.fields if each.path == ("type",)):
        conditions = [each for each in record.fields if each.path == ("status",)]  # one condition of a list
    fields = conditions or [each for each in record.fields if each.key in wanted]
    for each in fields:
        if (value := _BOOLEANS.get(each.value.casefold())) is not None:
            yield value


def _conditions(record: Record) -> frozenset[str]:
    """The types of its conditions."""
    return frozenset(label for each in record.fields if "conditions" in each.path for label in each.labels)


def _tells_of(record: Record, state: str) -> bool | None:
    """Whether a log entry or an event tells of a failure: by its status code or level, else by its words."""
    if state == "failed" and (code := _code_of(record)) is not None:
        return code
    if state == "error" and (levels := record.of(_LEVELS)):
        return bool({each.value.casefold() for each in levels} & _BAD_LEVELS)
    return _tells_of_failure(record) or None


def _code_of(record: Record) -> bool | None:
    """Whether the status code of a request says that it failed; None without one."""
    codes = {each.value for each in record.of(("status", "code", "statuscode")) if _STATUS_CODE.fullmatch(each.value)}
    return next(iter(codes)) >= "4" if len(codes) == 1 else None


def _tells_of_failure(record: Record) -> bool:
    """Whether its level or a word in it tells of a failure that is not denied."""
    if {each.value.casefold() for each in record.of((*_LEVELS, "type"))} & (_BAD_LEVELS | {"warning"}):
        return True
    words = record.folded.split()
    failures = (index for index, word in enumerate(words) if word in words_of("failure"))
    return any(
        not words_of("no failure") & set(words[max(0, at - 2) : at]) and words[at + 1 : at + 3] != ["rate", "0"]
        for at in failures
    )


def _is_well(record: Record) -> bool:
    """Whether a row has a status that goes with no trouble."""
    return any(_parts(each.value) & _WELL for each in record.of(("status", "type", "level")))


def _is_boolean(each: Field) -> bool:
    return each.value.casefold() in _BOOLEANS


def _parts(value: str) -> set[str]:
    """`Ready,SchedulingDisabled` and `Init:Error` as their words."""
    return {part.strip().casefold() for part in re.split(r"[,:/]", value)} if len(value) <= 120 else set()
