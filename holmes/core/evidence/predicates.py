"""Whether a record shows a state: true, false, or None when its fields do not tell.

Pure. Presence of a word proves no state: a condition is in every description, whatever its status is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.lexicon import FAILURE_WORDS
from holmes.core.evidence.quantities import quantities_in
from holmes.core.evidence.records import plain_key
from holmes.core.evidence.states import STATES, StateWords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.core.evidence.records import Field, Record

_STATUS_KEYS: Final = frozenset({"status", "phase", "state", "type", "level", "severity", "lvl"})
_REASON_KEYS: Final = frozenset({"reason", "status", "phase", "lastreason"})
_PHASES_IN_PATHS: Final = frozenset({"running", "waiting", "terminated"})
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False, "unknown": False}
_NOTHING: Final = frozenset(
    {"", "<none>", "none", "<unset>", "[]", "{}", "null", "0", "<unknown>", "<pending>", "<nil>", "<no value>"}
)
_FAILURES: Final = frozenset(FAILURE_WORDS.split())
_WELL: Final = frozenset(
    ["running", "completed", "complete", "succeeded", "bound", "ready", "active", "deployed", "normal", "info", "debug"]
)
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
_RATIO = re.compile(r"(\d+)/(\d+)")


def shows(record: Record, state: str, *, last: bool = False) -> bool | None:
    """Whether `record` is in `state`, a name of the lexicon; with `last` whether its last state was."""
    words = STATES[state]
    if last and (before := tuple(each for each in record.fields if "laststate" in each.path)):
        record = replace(record, fields=before)
    if state in ("failed", "error") and record.form in ("entry", "event"):
        return _tells_of_failure(record) or None
    if state == "notfound":
        return record.says("not found", exactly=False) or record.says("notfound", exactly=False) or None
    if any(_parts(each.value) & set(words.opposed.split()) for each in record.of(_REASON_KEYS)):
        return words.negative
    verdicts = next((found for found in map(set, _verdicts(record, words)) if found), set())
    if len(verdicts) != 1 or (words.is_soft and verdicts == {False} and not _is_well(record)):
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


def _verdicts(record: Record, words: StateWords) -> Iterator[Iterator[bool]]:
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
        if number is not None:
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


def _by_reason(record: Record, words: StateWords) -> Iterator[bool]:
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
    fields = conditions or [each for each in record.fields if each.key in wanted]
    for each in fields:
        if (value := _BOOLEANS.get(each.value.casefold())) is not None:
            yield value


def _conditions(record: Record) -> frozenset[str]:
    """The types of its conditions."""
    return frozenset(label for each in record.fields if "conditions" in each.path for label in each.labels)


def _tells_of_failure(record: Record) -> bool:
    levels = {each.value.casefold() for each in record.of(("level", "severity", "lvl", "type"))}
    return bool(levels & {"error", "err", "fatal", "warning"} or _FAILURES & set(_WORD.findall(record.folded)))


def _is_well(record: Record) -> bool:
    """Whether a row has a status that goes with no trouble."""
    return any(_parts(each.value) & _WELL for each in record.of(("status", "type", "level")))


def _is_boolean(each: Field) -> bool:
    return each.value.casefold() in _BOOLEANS


def _parts(value: str) -> set[str]:
    """`Ready,SchedulingDisabled` and `Init:Error` as their words."""
    return {part.strip().casefold() for part in re.split(r"[,:/]", value)} if len(value) <= 120 else set()
