"""What is judged, and what came of it. Values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.sources import UNKNOWN_SOURCE, canonical_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.evidence.records import Record
    from holmes.evidence.sources import Source
    from holmes.evidence.words import Token
    from holmes.values.events import CitationOutcome

_ORDER: Final = ("not_found", "cited", "checked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The records of the cited lines, and all records of their result as far as they could be read.

    `is_whole` says that `records` are the whole result and that nothing was cut from it; `is_empty_list` that the
    result says that there are none. `text` are the cited lines, headings too; `heading` is the first line
    of the result, which a quoted table may begin with.
    """

    cited: tuple[Record, ...]
    records: tuple[Record, ...]
    source: Source
    is_whole: bool = False
    is_empty_list: bool = False
    text: str = ""
    heading: str = ""

    @classmethod
    def joined(cls, passages: Sequence[Passage]) -> Passage:
        """All of `passages` as one; of several results nothing is known as a whole."""
        first = passages[0]
        if len(passages) == 1:
            return first
        is_one = all(each.records is first.records for each in passages)
        own = [record for each in passages for record in each.cited]
        return cls(
            cited=tuple({id(record): record for record in own}.values()),
            records=first.records if is_one else tuple(record for each in passages for record in each.records),
            source=first.source if all(each.source == first.source for each in passages) else UNKNOWN_SOURCE,
            is_whole=is_one and first.is_whole,
            text="\n".join(each.text for each in passages),
        )

    def within(self, first_line: int, last_line: int, text: str) -> Passage:
        """The same result with these lines cited, which are `text`."""
        parts = (record.within(first_line, last_line) for record in self.records)
        return replace(self, cited=tuple(part for part in parts if part is not None), text=text)

    def is_chosen(self, tokens: Sequence[Token]) -> bool:
        """Whether the result shows only some of what an assertion is about: those that a filter let through.

        A filter that the assertion names itself is none.
        """
        told = {token.text for token in tokens}
        return not all(told & {each, each.rpartition("=")[2]} for each in self.source.filters)

    def objects(self, kind: str) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The cited records that are objects of `kind`, and all of them; log entries and events for an empty kind."""
        cited, everything = (
            tuple(record for record in records if self._is_of(record, kind)) for records in (self.cited, self.records)
        )
        return cited, everything

    def _is_of(self, record: Record, kind: str) -> bool:
        if not kind or kind == "event":
            return record.form == "event" or (not kind and record.form == "entry")
        return record.form != "entry" and (canonical_kind(record.kind) or self.source.kind) == kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of a claim or of one assertion; `missing` names what is not there."""

    outcome: CitationOutcome
    missing: tuple[str, ...] = ()


CHECKED: Final = Judgement(outcome="checked")
CITED: Final = Judgement(outcome="cited")
EMPTY: Final = Judgement(outcome="cited")
"""What asserts nothing, so that it says nothing about the rest of a claim."""


def not_found(*missing: str) -> Judgement:
    """The judgement that these are not there."""
    return Judgement(outcome="not_found", missing=tuple(dict.fromkeys(missing)))


def best_of(judgements: Sequence[Judgement]) -> Judgement:
    """The best; of those not found the one that lacks least."""
    return max(judgements, key=lambda each: (_ORDER.index(each.outcome), -len(each.missing)))


def all_of(judgements: Sequence[Judgement]) -> Judgement:
    """What all of them come to: the worst, with everything that is missing."""
    judgements = [each for each in judgements if each is not EMPTY]
    if not judgements:
        return EMPTY
    worst = min((each.outcome for each in judgements), key=_ORDER.index)
    missing = tuple(dict.fromkeys(item for each in judgements for item in each.missing))
    return Judgement(outcome=worst, missing=missing if worst == "not_found" else ())


def names_of(token: Token) -> frozenset[str]:
    """What a name means with and without the kind and namespace before it."""
    return frozenset({token.text.rpartition("/")[2], token.text})
