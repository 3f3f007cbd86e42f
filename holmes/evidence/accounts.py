"""What became of the words of one assertion so far, and which words stand beside which. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.evidence.fields import (
    FREE_TEXT,
    RESOURCES,
    Lookup,
    keys_of,
    numbers_of,
)
from holmes.evidence.lexicon import lexicon, words_of
from holmes.evidence.phrases import with_keys
from holmes.evidence.predicates import is_nothing
from holmes.evidence.records import plain_key, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.records import Field, Record
    from holmes.evidence.sources import Source
    from holmes.evidence.words import Token


_SENTENCE = re.compile(r"\.(?=\s)")
_SKIPPED: Final = ("not", "compare", "approximate", "times", "last", "kind", "ago", "later")


@dataclass(slots=True, kw_only=True)
class Account:
    """`missing` is what the record lacks or contradicts, `doubts` what cannot be judged, `proved` how much holds."""

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
        """True when all of it is shown, False when something is missing, None when something cannot be judged."""
        return False if self.missing else None if self.doubts or not self.proved else True

    @property
    def _is_text(self) -> bool:
        return self.record.form in ("entry", "event")

    def _has(self, category: str) -> bool:
        return any(token.has(category) and not token.quoted for token in self.tokens)

    def _has_word(self, category: str) -> bool:
        """Whether a word of one of the plain lists of the lexicon is said."""
        return any(word in words_of(category) for token in self.tokens for word in token.text.casefold().split())

    def _texts(self) -> Iterator[str]:
        """What the record says in sentences: all of a log entry or an event, the messages of an object."""
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
        """The runs of words for fields on both sides of a value; the one right beside it first, else the left one."""
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
        """Whether the word for a field may stand beyond this token."""
        token = self.tokens[place]
        if token.quoted or (self._lookup.names_field(token) and place in self._open):
            return False
        return token.is_neutral or any(token.has(each) for each in _SKIPPED)

    def _beside(self, index: int, *categories: str) -> set[int]:
        """The tokens of some classes that stand near another one."""
        near = range(max(0, index - 2), min(len(self.tokens), index + 3))
        return {each for each in near if any(self.tokens[each].has(category) for category in categories)}

    def _note_exact(self, index: int, fields: Sequence[Field]) -> None:
        """Remember whether a number or name is all that its field says, and no other field is called so."""
        keys = {each.key for each in fields}
        is_whole = any(each.value.strip() == self.tokens[index].text for each in fields)
        self._exact.append((index, is_whole and len(self.record.of(keys)) == len(keys)))

    def _note_elements(self, fields: Sequence[Field]) -> None:
        """Remember to which elements of lists a value belongs, so that two of them are not mixed."""
        found = frozenset(tuple(part for part in each.path if part.startswith("=")) for each in fields)
        if found and () not in found and not all(each.key in ("name", "type") for each in fields):
            self._elements.append(found)

    def _note_condition(self, state: str) -> None:
        """Remember to which condition a state belongs."""
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
    """Whether all of these fields say that there is none; None without any."""
    if not fields:
        return None
    numbers = [next(numbers_of([each]), None) for each in fields]
    return all(
        is_nothing(each.value) or (number is not None and number.number("count") == 0)
        for each, number in zip(fields, numbers, strict=True)
    )
