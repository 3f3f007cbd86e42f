"""Finds the fields that the words of a claim mean, compares numbers with them, and decides which states a record shows.

A word in the record does not prove a state. For example, `kubectl describe` lists each condition, whatever its status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from holmes.evidence.quantities import count_of, quantities_in
from holmes.evidence.records import plain_key, tokens_of
from holmes.evidence.words import State, lexicon, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.evidence.quantities import Dimension, Quantity
    from holmes.evidence.records import Field, Record
    from holmes.evidence.words import Token

_LEVELS: Final = ("level", "severity", "lvl")
_STATUS_KEYS: Final = frozenset({"status", "phase", "state", "type", *_LEVELS})
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
_WORD = expression(r"[a-z]+(?:-[a-z]+)?")
_STATUS_CODE = expression(r"[1-5]\d\d")
_RATIO = expression(r"(\d+)/(\d+)")
REPLICAS: Final = frozenset({"desired", "replicas", "specreplicas"})
FREE_TEXT: Final = frozenset({"message", "note", "msg", "error", "err", "description", "changecause"})
_TOTALS: Final = REPLICAS | {
    "total", "target", "targets", "container", "maxpods", "maxreplicas", "limits", "hard", "limit",
}  # fmt: skip
_PARTS_OF_VALUES: Final = frozenset({"current", "total", "percent", "ago"})
_LISTS: Final = frozenset({"endpoints", "hosts", "roles", "addresses"})
_PARTS = expression(r"\.|\[[\w.-]{0,60}\]")
_NODE_PORT = expression(r":\d{1,5}/")
_PORT = expression(r"\d{1,5}")
_MEASURES: Final[tuple[Dimension, ...]] = ("cpu", "memory")
RESOURCES: Final = frozenset({"limits", "requests", "cpu", "memory", "storage"})
_LONGEST_VALUE: Final = 2_000
_UNITS_OF_KEYS: Final = {"ms": "ms", "millis": "ms", "seconds": "s", "secs": "s", "minutes": "m", "bytes": "B"}
_SHORTEST_KEY: Final = 4
_ROUNDED: Final = 10


def shows(record: Record, state: str, *, last: bool = False, now: bool = False) -> bool | None:
    """Return whether `record` shows `state`, a state that the lexicon defines.

    `last` selects the previous state of the object, and `now` excludes it. Returns None if the fields neither show nor
    deny the state.
    """
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
    """Return whether `record` shows `value`, a status, reason or condition that is not in the lexicon."""
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
    """Return whether a value means "none"."""
    return value.strip().casefold() in _NOTHING


def _verdicts(record: Record, words: State) -> Iterator[Iterator[bool]]:
    """Yield groups of verdicts, starting with the most reliable group. The first group with a verdict decides."""
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
            if each.key in _LEVELS and not {"error", "warning"} & set(wanted):
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
    """Yield the values of boolean fields and condition statuses with these names."""
    wanted = frozenset(names)
    conditions = conditions_of(record, wanted)
    if not conditions and any(plain_key(each.value) in wanted for each in record.fields if each.path == ("type",)):
        # The record is one condition of a list.
        conditions = [each for each in record.fields if each.path == ("status",)]
    fields = conditions or [each for each in record.fields if each.key in wanted]
    for each in fields:
        if (value := _BOOLEANS.get(each.value.casefold())) is not None:
            yield value


def conditions_of(record: Record, names: Iterable[str]) -> list[Field]:
    """Return the status fields of the conditions with these names."""
    wanted = frozenset(names)
    statuses = (each for each in record.fields if each.key == "status")
    return [each for each in statuses if any(plain_key(label) in wanted for label in each.labels)]


def _conditions(record: Record) -> frozenset[str]:
    """Return the types of the conditions in the record."""
    return frozenset(label for each in record.fields if "conditions" in each.path for label in each.labels)


def _tells_of(record: Record, state: str) -> bool | None:
    """Return whether a log entry or event reports a failure.

    The words of the record are used only if it has neither a status code nor a level.
    """
    if state == "failed" and (code := _code_of(record)) is not None:
        return code
    if state == "error" and (levels := record.of(_LEVELS)):
        return bool({each.value.casefold() for each in levels} & _BAD_LEVELS)
    return _tells_of_failure(record) or None


def _code_of(record: Record) -> bool | None:
    """Return whether the record's HTTP status code indicates an error, or None if the record has no status code."""
    codes = {each.value for each in record.of(("status", "code", "statuscode")) if _STATUS_CODE.fullmatch(each.value)}
    return next(iter(codes)) >= "4" if len(codes) == 1 else None


def _tells_of_failure(record: Record) -> bool:
    """Return whether the record reports a failure, by its level or by a word that is not denied."""
    if {each.value.casefold() for each in record.of((*_LEVELS, "type"))} & (_BAD_LEVELS | {"warning"}):
        return True
    words = record.folded.split()
    failures = (index for index, word in enumerate(words) if word in words_of("failure"))
    return any(
        not words_of("no failure") & set(words[max(0, at - 2) : at]) and words[at + 1 : at + 3] != ["rate", "0"]
        for at in failures
    )


def _is_well(record: Record) -> bool:
    """Return whether a row has a healthy status."""
    return any(_parts(each.value) & _WELL for each in record.of(("status", "type", "level")))


def _is_boolean(each: Field) -> bool:
    return each.value.casefold() in _BOOLEANS


def _parts(value: str) -> set[str]:
    """Split a compound status such as `Ready,SchedulingDisabled` or `Init:Error` into words."""
    return {part.strip().casefold() for part in re.split(r"[,:/]", value)} if len(value) <= 120 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Finds fields of `record` by the words of a claim.

    If `last` is true, fields of the previous state are preferred. `words` contains all words of the claim.
    """

    record: Record
    last: bool = False
    words: frozenset[str] = frozenset()

    def names_field(self, token: Token) -> bool:
        """Return whether a token names a field of this record. A kind can also be the name of a field."""
        if token.shape == "number" or any(token.has(each) for each in ("not", "compare", "ago", "later")):
            return False
        if token.has("kind"):
            return not token.quoted and bool(self.of((token,)))
        if token.has("field") or token.concept("state") == "restarted":
            return True
        return bool(self.own(token))

    def own(self, token: Token) -> tuple[Field, ...]:
        """Return the fields whose key is `token`, for example `progressDeadlineSeconds` or `spec.replicas`."""
        if len(token.text) < 3 or token.text in self.record.labels | self.record.names:
            return ()
        is_plain = any(token.has(each) for each in ("state", "unjudged", "not", "kind"))
        is_plain = is_plain or (token.is_neutral and (self.record.form == "row" or len(token.text) < _SHORTEST_KEY))
        if is_plain and not self.is_heading(token):
            return ()
        *around, key = [plain_key(part) for part in _PARTS.split(token.text) if part] or [""]
        keys = (key, *(f"{key}{unit}" for unit in _UNITS_OF_KEYS)) if key else ()
        found = tuple(each for each in self.record.of(keys) if set(around) <= set(each.path))
        found = tuple(each for each in found if each.key not in _PARTS_OF_VALUES or len(each.path) == 1)
        whole = plain_key(token.text)
        return found or self.record.of((whole, *(f"{whole}{unit}" for unit in _UNITS_OF_KEYS)))

    def is_heading(self, token: Token) -> bool:
        """Return whether the token is a column heading such as `READY`."""
        is_upper = token.text.isupper() and len(token.text) > 2 and self.record.form in ("row", "event")
        return is_upper and bool(self.record.of((plain_key(token.text),)))

    def of(self, tokens: Sequence[Token]) -> tuple[Field, ...]:
        """Return the fields that the words name together: `memory limit` is `limits.memory`.

        The result is empty if no field matches.
        """
        if len(tokens) == 1 and not tokens[0].has("field") and (own := self.own(tokens[0])):
            return self._now(own, frozenset({plain_key(tokens[0].text)}))
        keys = [keys_of(token) for token in tokens]
        keys = [each for each in keys if each != REPLICAS] or keys[:1]
        whole = frozenset(key for each in keys for key in each)
        fields = tuple(each for each in self.record.fields if _is_meant(each, whole))
        found = tuple(each for each in fields if all(names & ways(each) for names in keys))
        leaves = tuple(each for each in found if any(each.key in names for names in keys))
        if not found and keys == [REPLICAS]:
            found = tuple(each for each in self.record.fields if each.path[-2:] == ("ready", "total"))
        if any(each.key in REPLICAS for each in leaves):
            found = tuple(each for each in found if each.key != "total")
        parts = tuple(each for each in found if each.key in _PARTS_OF_VALUES)
        if all(token.has("kind") and not token.has("field") for token in tokens):
            names = frozenset(key for each in keys for key in each)
            return self._now(leaves + tuple(each for each in parts if each.path[-2] in names), whole)
        return self._now(leaves + parts or found, whole | {plain_key(token.text) for token in tokens})

    @property
    def ready(self) -> tuple[Field, ...]:
        """The fields with the first number of a ratio such as `1/2`: the number of ready replicas or containers."""
        return tuple(each for each in self.record.fields if each.path == ("ready", "current"))

    @property
    def ready_total(self) -> tuple[Field, ...]:
        """The fields with the second number of a ratio such as `1/2`: the number of all replicas or containers."""
        return tuple(each for each in self.record.fields if each.path == ("ready", "total"))

    def _now(self, found: tuple[Field, ...], said: frozenset[str]) -> tuple[Field, ...]:
        """Keep only the fields of the previous state if `last` is set, otherwise only those of the current state."""
        below = tuple(each for each in found if (self.words - said) & set(each.path[:-1]))
        found = below or found  # example: the claim names `request`, and `response` has the same keys
        return tuple(each for each in found if ("laststate" in each.path) is self.last) or found


def _is_meant(each: Field, keys: frozenset[str]) -> bool:
    """Return whether the words can mean this field. The total of a ratio such as `1/2` requires a matching word."""
    if each.key == "current" and each.path[0] == "targets" and {"target", "targets"} & keys:
        return False
    return each.key != "total" or len(each.path) == 1 or bool(_TOTALS & keys)


def keys_of(token: Token) -> frozenset[str]:
    """Return the keys that a field word means."""
    if token.has("kind") and not token.has("field"):
        return frozenset({token.concept("kind"), f"{token.concept('kind')}s"})
    if token.concept("state") == "restarted" and not token.has("field"):
        return frozenset({"restarts", "restartcount"})
    concepts = " ".join(concept for category, concept in token.tags if category == "field")
    return frozenset((concepts or plain_key(token.text)).split())


def ways(each: Field) -> frozenset[str]:
    """Return all names in the path of a field: keys, and the labels of list elements, converted to keys."""
    return frozenset(plain_key(part) if part.startswith("=") else part for part in each.path)


def _quantities_of(each: Field) -> tuple[Quantity, ...]:
    """Return the quantities in a field. The key determines the dimension of a number without a unit."""
    value = each.value[:_LONGEST_VALUE].strip()
    if each.key.startswith("port"):
        return tuple(count_of(int(number)) for number in _PORT.findall(_NODE_PORT.sub("/", value[:200])))
    found = quantities_in(value)
    unit = next((sign for suffix, sign in _UNITS_OF_KEYS.items() if each.key.endswith(suffix)), "")
    if unit and value.isdigit():
        found = (*found, *quantities_in(f"{value}{unit}"))
    if each.key in _LISTS and "more" not in value and not is_nothing(value):
        found = (*found, count_of(value.count(",") + 1))
    for key in _MEASURES:
        if key in ways(each):
            found = tuple(other.measured(key) for other in found)
    return found


def has_number(each: Field, quantity: Quantity, sign: str = "=", *, rounded: bool = False) -> bool:
    """Return whether a field contains this number, or a larger or smaller number if `sign` requires it."""
    claimed = tuple(quantity.measured(measure) for measure in _MEASURES if measure in ways(each)) or (quantity,)
    found = _quantities_of(each)
    if each.key not in FREE_TEXT | _LISTS and not each.key.startswith("port"):
        found = found if "," not in each.value and len(found) == 2 and found[0].text in found[1].text else found[:1]
    return any(_compare(number, other, sign, rounded=rounded) for number in claimed for other in found)


def _compare(claimed: Quantity, found: Quantity, sign: str, *, rounded: bool) -> bool:
    if sign == "=" and not rounded:
        return claimed.equals(found)
    for dimension in claimed.dimensions:
        limit, number = claimed.number(dimension), found.number(dimension)
        if limit is None or number is None:
            continue
        if rounded and abs(limit - number) <= max(abs(number), Fraction(dimension == "count")) / _ROUNDED:
            return True
        if {">": number > limit, "<": number < limit, ">=": number >= limit, "<=": number <= limit}.get(sign, False):
            return True
    return False


def measures(each: Field, quantity: Quantity) -> bool:
    """Return whether a field starts with a value in one of the dimensions of `quantity`."""
    wanted = quantity.dimensions | ({"moment"} if "clock" in quantity.dimensions else frozenset())
    found = _quantities_of(each)
    return (
        any(other.dimensions & wanted for other in found[:2])
        and bool(found)
        and each.value.strip().startswith(found[0].text)
    )


def numbers_of(fields: Sequence[Field]) -> Iterator[Quantity]:
    """Yield the first quantity of each field."""
    for each in fields:
        if found := _quantities_of(each)[:1]:
            yield found[0]


def holds_text(value: str, text: str) -> bool:
    """Return whether a value contains the words of `text`."""
    return tokens_of(text).casefold() in tokens_of(value).casefold()


def gaps(record: Record, keys: frozenset[str], quantity: Quantity, *, is_lack: bool) -> Iterator[bool]:
    """Yield, for each ratio with these keys, whether its two parts differ by `quantity`."""
    totals = {each.path[:-1]: each for each in record.fields if each.key == "total" and len(each.path) > 1}
    for each in record.fields:
        if ("ready" in each.path) is not is_lack:
            continue  # only replicas can be missing, and only capacity can be left over
        if each.key == "current" and each.path[:-1] in totals and (not keys or keys & ways(each)):
            pair = tuple(numbers_of([each, totals[each.path[:-1]]]))
            measure: Dimension = "cpu" if "cpu" in ways(each) else "memory" if "memory" in ways(each) else "count"
            claimed = quantity.measured(measure)
            for dimension in claimed.dimensions if len(pair) == 2 else ():
                some, every, told = pair[0].number(dimension), pair[1].number(dimension), claimed.number(dimension)
                if some is not None and every is not None:
                    yield every - some == told
