"""Which fields of a record the words of a claim mean, and whether a number is the value of one.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from holmes.evidence.predicates import is_nothing
from holmes.evidence.quantities import count_of, quantities_in
from holmes.evidence.records import plain_key, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.quantities import Dimension, Quantity
    from holmes.evidence.records import Field, Record
    from holmes.evidence.words import Token

REPLICAS: Final = frozenset({"desired", "replicas", "specreplicas"})
FREE_TEXT: Final = frozenset({"message", "note", "msg", "error", "err", "description", "changecause"})
_TOTALS: Final = REPLICAS | {
    "total",
    "target",
    "targets",
    "container",
    "maxpods",
    "maxreplicas",
    "limits",
    "hard",
    "limit",
}
_PARTS_OF_VALUES: Final = frozenset({"current", "total", "percent", "ago"})
_LISTS: Final = frozenset({"endpoints", "hosts", "roles", "addresses"})
_PARTS = re.compile(r"\.|\[[\w.-]{0,60}\]")
_NODE_PORT = re.compile(r":\d{1,5}/")
_PORT = re.compile(r"\d{1,5}")
_MEASURES: Final[tuple[Dimension, ...]] = ("cpu", "memory")
RESOURCES: Final = frozenset({"limits", "requests", "cpu", "memory", "storage"})
_LONGEST_VALUE: Final = 2_000
_UNITS_OF_KEYS: Final = {"ms": "ms", "millis": "ms", "seconds": "s", "secs": "s", "minutes": "m", "bytes": "B"}
_SHORTEST_KEY: Final = 4
_ROUNDED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The fields of `record`; with `last` those of the state before, where it has one. `words` are all of a claim."""

    record: Record
    last: bool = False
    words: frozenset[str] = frozenset()

    def names_field(self, token: Token) -> bool:
        """Whether a token means a field here. A word for a kind does where the record has such a field."""
        if token.shape == "number" or any(token.has(each) for each in ("not", "compare", "ago", "later")):
            return False
        if token.has("kind"):
            return not token.quoted and bool(self.of((token,)))
        if token.has("field") or token.concept("state") == "restarted":
            return True
        return bool(self.own(token))

    def own(self, token: Token) -> tuple[Field, ...]:
        """Fields that have `token` as their key, as `progressDeadlineSeconds` or `spec.replicas`."""
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
        """Whether it is the heading of a column: `READY`."""
        is_upper = token.text.isupper() and len(token.text) > 2 and self.record.form in ("row", "event")
        return is_upper and bool(self.record.of((plain_key(token.text),)))

    def of(self, tokens: Sequence[Token]) -> tuple[Field, ...]:
        """The fields that the words name together: `memory limit` is `limits.memory`. None when they name none."""
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

    def of_path(self, *path: str) -> tuple[Field, ...]:
        """The fields at exactly this path."""
        return tuple(each for each in self.record.fields if each.path == path)

    def _now(self, found: tuple[Field, ...], said: frozenset[str]) -> tuple[Field, ...]:
        """Those of the last state, or those of the current one."""
        below = tuple(each for each in found if (self.words - said) & set(each.path[:-1]))
        found = below or found  # the size of `request`, where `response` has one, too
        return tuple(each for each in found if ("laststate" in each.path) is self.last) or found


def _is_meant(each: Field, keys: frozenset[str]) -> bool:
    """Whether a part of a value may be meant: the total of `1/2` only by a word for it, and of a target only that."""
    if each.key == "current" and each.path[0] == "targets" and {"target", "targets"} & keys:
        return False
    return each.key != "total" or len(each.path) == 1 or bool(_TOTALS & keys)


def keys_of(token: Token) -> frozenset[str]:
    """The keys that a word for a field stands for."""
    if token.has("kind") and not token.has("field"):
        return frozenset({token.concept("kind"), f"{token.concept('kind')}s"})
    if token.concept("state") == "restarted" and not token.has("field"):
        return frozenset({"restarts", "restartcount"})
    concepts = " ".join(concept for category, concept in token.tags if category == "field")
    return frozenset((concepts or plain_key(token.text)).split())


def ways(each: Field) -> frozenset[str]:
    """All words on the way to a field: keys, and the labels of elements as keys."""
    return frozenset(plain_key(part) if part.startswith("=") else part for part in each.path)


def quantities_of(each: Field) -> tuple[Quantity, ...]:
    """The quantities in a field; a number without a unit is one of CPU or memory where its key says so."""
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
    """Whether a field has this number; with another sign, whether its number is above or below."""
    claimed = tuple(quantity.measured(measure) for measure in _MEASURES if measure in ways(each)) or (quantity,)
    found = quantities_of(each)
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
    """Whether a field begins with a value of the dimension of `quantity`."""
    wanted = quantity.dimensions | ({"moment"} if "clock" in quantity.dimensions else frozenset())
    found = quantities_of(each)
    return (
        any(other.dimensions & wanted for other in found[:2])
        and bool(found)
        and each.value.strip().startswith(found[0].text)
    )


def numbers_of(fields: Sequence[Field]) -> Iterator[Quantity]:
    """The first quantity of each field."""
    for each in fields:
        if found := quantities_of(each)[:1]:
            yield found[0]


def holds_text(value: str, text: str) -> bool:
    """Whether the words of `text` stand in a value."""
    return tokens_of(text).casefold() in tokens_of(value).casefold()
