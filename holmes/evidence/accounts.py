"""Tracks which words of an assertion are accounted for, and judges numbers that no field contains.

Such numbers are times, differences, and counts of elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.evidence.fields import (
    FREE_TEXT,
    REPLICAS,
    RESOURCES,
    Lookup,
    has_number,
    is_nothing,
    keys_of,
    numbers_of,
    ways,
)
from holmes.evidence.phrases import with_keys
from holmes.evidence.records import plain_key, tokens_of
from holmes.evidence.words import lexicon, said, states_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.quantities import Dimension, Quantity
    from holmes.evidence.records import Field, Record
    from holmes.evidence.sources import Source
    from holmes.evidence.words import Token

_SENTENCE = re.compile(r"\.(?=\s)")
_SKIPPED: Final = ("not", "compare", "approximate", "times", "last", "kind", "ago", "later")


@dataclass(slots=True, kw_only=True)
class Account:
    """The state of a judgement.

    `missing` lists parts that the record lacks or contradicts. `doubts` lists parts that cannot be judged. `proved`
    counts the parts that the record shows.
    """

    record: Record
    source: Source
    tokens: Sequence[Token]
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    proved: int = 0
    _lookup: Lookup = field(init=False)
    _open: set[int] = field(init=False)
    _denied: frozenset[int] = frozenset()
    _elements: list[frozenset[tuple[str, ...]]] = field(default_factory=list)
    _said: set[int] = field(default_factory=set)
    _exact: list[tuple[int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = with_keys(self.tokens, self.record)
        words = frozenset(plain_key(token.text) for token in self.tokens if not token.quoted)
        self._lookup = Lookup(record=self.record, last=self._has("last"), words=words)
        self._open = set(range(len(self.tokens)))

    @property
    def holds(self) -> bool | None:
        """True if the record shows all parts, False if one is missing, None if one cannot be judged."""
        return False if self.missing else None if self.doubts or not self.proved else True

    @property
    def _is_text(self) -> bool:
        return self.record.form in ("entry", "event")

    def _has(self, category: str) -> bool:
        return said(self.tokens, category) is not None

    def _has_word(self, category: str) -> bool:
        """Whether a word of a plain list of the lexicon occurs."""
        return any(word in words_of(category) for token in self.tokens for word in token.text.casefold().split())

    def _texts(self) -> Iterator[str]:
        """The sentences of the record: a whole log entry or event, or the messages of an object."""
        is_json = bool(self.record.lines) and self.record.lines[0][1].lstrip().startswith("{")
        if self._is_text and not is_json:
            yield _by_sentences(" ".join(line for _, line in self.record.lines))
        else:
            yield from (tokens_of(each.value).casefold() for each in self.record.of(FREE_TEXT) if " " in each.value)

    def _judge(self, text: str, *, shown: bool | None) -> None:
        """Note that `text` is shown, contradicted, or neither."""
        if shown is None:
            self.doubts.append(text)
        elif shown:
            self.proved += 1
        else:
            self.missing.append(text)

    def _runs(self, index: int) -> Iterator[tuple[int, ...]]:
        """The runs of field words on both sides of a value.

        An adjacent run on the right comes first, else the left one.
        """
        left, right = self._run_from(index, -1), self._run_from(index, 1)
        is_beside = bool(right) and (
            right[0] == index + 1 or self.tokens[index + 1].text.casefold() in words_of("joining")
        )
        sides = [frozenset(key for place in side for key in keys_of(self.tokens[place])) for side in (left, right)]
        if is_beside and all(RESOURCES & keys for keys in sides):
            yield (*left, *right)  # `requests 512Mi of memory`
            return
        ordered = (right, left) if right and right[0] == index + 1 else (left, right)
        for side in filter(None, ordered):
            is_named = bool(self._lookup.of([self.tokens[place] for place in side]))
            is_identifier = (
                self.record.form == "row" and len(side) > 1 and side[-1] == index - 1 and side[-1] - side[-2] > 1
            )
            yield side[-1:] if is_identifier and not is_named else side  # `the change cause of revision 3`

    def _run_from(self, index: int, step: int) -> tuple[int, ...]:
        place = index + step
        number = self.tokens[index].quantity
        is_measure = (
            step > 0 and number is not None and not self.tokens[index].is_count and not self.tokens[index].parts
        )
        while 0 <= place < len(self.tokens) and self._may_pass(place):
            if is_measure and (
                self.tokens[place].has("not") or self.tokens[place].text.casefold() in words_of("copula")
            ):
                return ()  # `500Gi is available`, `3 days without a restart`
            place += step
        found: list[int] = []
        while 0 <= place < len(self.tokens):
            token = self.tokens[place]
            if place in self._open and self._lookup.names_field(token):
                found.append(place)
            elif not (found and token.text.casefold() in words_of("joining")):
                break
            place += step
        return tuple(sorted(found))

    def _may_pass(self, place: int) -> bool:
        """Whether the search for a field word continues beyond this token."""
        token = self.tokens[place]
        if token.quoted or (self._lookup.names_field(token) and place in self._open):
            return False
        return token.is_neutral or any(token.has(each) for each in _SKIPPED)

    def _beside(self, index: int, *categories: str) -> set[int]:
        """The nearby tokens of some categories."""
        near = range(max(0, index - 2), min(len(self.tokens), index + 3))
        return {each for each in near if any(self.tokens[each].has(category) for category in categories)}

    def _note_exact(self, index: int, fields: Sequence[Field]) -> None:
        """Remember whether a number or name is the whole value of its field, and the key is unique."""
        keys = {each.key for each in fields}
        is_whole = any(each.value.strip() == self.tokens[index].text for each in fields)
        self._exact.append((index, is_whole and len(self.record.of(keys)) == len(keys)))

    def _note_elements(self, fields: Sequence[Field]) -> None:
        """Remember the list elements of a value, so that values of two elements are not mixed."""
        found = frozenset(tuple(part for part in each.path if part.startswith("=")) for each in fields)
        if found and () not in found and not all(each.key in ("name", "type") for each in fields):
            self._elements.append(found)

    def _note_condition(self, state: str) -> None:
        """Remember the condition of a state."""
        names = lexicon().states[state].conditions.split()
        self._note_elements(
            [
                each
                for each in self.record.fields
                if each.key == "status" and any(plain_key(label) in names for label in each.labels)
            ]
        )


def _by_sentences(text: str) -> str:
    return tokens_of(_SENTENCE.sub(" ; ", text)).casefold()


def are_nothing(fields: Sequence[Field]) -> bool | None:
    """Whether all of these fields are empty; None without fields."""
    if not fields:
        return None
    numbers = [next(numbers_of([each]), None) for each in fields]
    return all(
        is_nothing(each.value) or (number is not None and number.number("count") == 0)
        for each, number in zip(fields, numbers, strict=True)
    )


@dataclass(slots=True, kw_only=True)
class Computed(Account):
    """Values computed from one record. Each method returns whether it judged the number."""

    def _times(self, index: int, quantity: Quantity) -> bool:
        """`25 times`, for an event with a count."""
        fields = self.record.of(("count",)) if self.record.form == "event" else ()
        words = self._beside(index, "times") if fields and "count" in quantity.dimensions else set()
        if not words:
            return False
        self._open -= words
        self._judge(self.tokens[index].text, shown=any(has_number(each, quantity) for each in fields))
        return True

    def _time(self, index: int, quantity: Quantity, sign: str) -> bool:
        """A time without a field word: an age, a duration or a period."""
        if "time" not in quantity.dimensions:
            return False
        beside = {each for each in (index - 2, index - 1, index + 1, index + 2) if 0 <= each < len(self.tokens)}
        agos = {each for each in beside if self.tokens[each].has("ago")}
        if (
            self._counts_restarts()
            and not agos
            and any(has_number(each, quantity) for each in self.record.of(("age",)))
        ):
            self.proved += 1  # `12 restarts in 18 hours`, for an object of that age
            return True
        fields = self._ago_fields() if agos else self.record.of(("window",))
        fields = fields if agos or self._has("state") else self.record.of(("window", "duration"))
        if not agos and not any(has_number(each, quantity, sign) for each in fields):
            return False
        if not fields:
            return False
        self._open -= agos
        self._judge(self.tokens[index].text, shown=any(has_number(each, quantity, sign) for each in fields))
        return True

    def _counts_restarts(self) -> bool:
        has_key = any("restarts" in token.concept("field") for token in self.tokens)
        return has_key and any(token.is_count for token in self.tokens)

    def _ago_fields(self) -> tuple[Field, ...]:
        """The fields with the time of the last occurrence."""
        if self.record.form == "event":
            return self.record.of(("age", "lastseen"))
        restarted = any(
            "restarts" in token.concept("field") or token.concept("state") == "restarted" for token in self.tokens
        )
        is_last = self._has("last") and not self._has("state")
        return self.record.of(("ago",)) if restarted or is_last else ()

    def _gap(self, index: int, quantity: Quantity) -> bool:
        """`2 more`, `40Gi of memory are left`: the difference between the parts of a ratio."""
        words = {each for each, token in enumerate(self.tokens) if token.has("gap") and each in self._open}
        is_lack = any(self.tokens[each].text.casefold().split()[0] in words_of("lack") for each in words)
        named = [place for run in self._runs(index) for place in run]
        named = [place for place in named if keys_of(self.tokens[place]) != REPLICAS]
        gaps = set(
            self._gaps(
                frozenset(key for place in named for key in keys_of(self.tokens[place])), quantity, is_lack=is_lack
            )
        )
        if not words or len(gaps) != 1:
            return False
        self._open -= {*words, *named}
        self._judge(self.tokens[index].text, shown=gaps == {True})
        return True

    def _gaps(self, keys: frozenset[str], quantity: Quantity, *, is_lack: bool) -> Iterator[bool]:
        """For each ratio with these keys, whether its parts differ by `quantity`."""
        totals = {each.path[:-1]: each for each in self.record.fields if each.key == "total" and len(each.path) > 1}
        for each in self.record.fields:
            if ("ready" in each.path) is not is_lack:
                continue  # replicas are missing, capacity is left
            if each.key == "current" and each.path[:-1] in totals and (not keys or keys & ways(each)):
                pair = tuple(numbers_of([each, totals[each.path[:-1]]]))
                measure: Dimension = "cpu" if "cpu" in ways(each) else "memory" if "memory" in ways(each) else "count"
                claimed = quantity.measured(measure)
                for dimension in claimed.dimensions if len(pair) == 2 else ():
                    some, every, told = pair[0].number(dimension), pair[1].number(dimension), claimed.number(dimension)
                    if some is not None and every is not None:
                        yield every - some == told

    def _counted_elements(self, index: int, token: Token) -> bool:
        """`has 2 containers`, `5 keys`: the elements of an object, or the second part of `1/2`."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following is None or token.quantity is None or token.parts:
            return self._ready_elements(token) if token.parts else False
        number = token.quantity.number("count")
        if following.concept("field") == "data":
            entries = [each for each in self.record.fields if each.path[0] == "data"]
            count = len(entries)
        elif following.concept("kind") == "container":
            named = {each.labels for each in self.record.fields if each.path[:-2] and "containers" in each.path[-3:-1]}
            totals = [each for each in self.record.fields if each.path == ("ready", "total")]
            if self.record.form == "row" and totals:
                is_of_state = bool(states_of(self.tokens) & {"running", "ready"})
                ready = self._lookup.of_path("ready", "current")
                is_part = ready and ready[0].value != totals[0].value
                if is_of_state and is_part and "ready" not in states_of(self.tokens):
                    self.doubts.append(token.text)
                    return True  # a running container may not be ready
                meant = ready if is_of_state else totals
                self._judge(token.text, shown=any(has_number(each, token.quantity) for each in meant))
                return True
            count = len(named)
        else:
            return False
        if not count or self.record.form != "object":
            return False
        self._open.discard(index + 1)
        self._judge(token.text, shown=number == count)
        return True

    def _ready_elements(self, token: Token) -> bool:
        """`1 of 2 containers is ready`: the elements of an object."""
        ready = next((index for index, each in enumerate(self.tokens) if each.concept("state") == "ready"), None)
        values = [each.value.casefold() for each in self.record.of(("ready",)) if each.labels]
        if self.record.form != "object" or ready is None or not values or not set(values) <= {"true", "false"}:
            return False
        if ready in self._denied:
            self.doubts.append(token.text)
            return True
        self._open.discard(ready)
        part, whole = (each.number("count") for each in token.parts)
        self._judge(token.text, shown=part == values.count("true") and whole == len(values))
        return True
