"""What a claim's citations come to, given the texts that they cite: outcome and lines of each.

Pure; CPU work for a thread. Of a large result only what is around the cited lines is read, so nothing about the whole
of it can be checked. `TimeoutError` after the deadline.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.judgements import Judgement, Passage
from holmes.core.evidence.judging import judge
from holmes.core.evidence.markers import MAX_MISSING, shown_missing
from holmes.core.evidence.parsing import records_of
from holmes.core.evidence.records import tokens_of
from holmes.core.evidence.sources import Source, says_it_was_cut
from holmes.core.evidence.words import assertions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.core.events import CitationOutcome
    from holmes.core.evidence.claims import Claim
    from holmes.core.evidence.lines import NumberedText
    from holmes.core.evidence.markers import Marker
    from holmes.core.evidence.records import Record

_MOST_LINES: Final = 20_000
_MOST_CHARACTERS: Final = 3_000_000
_LINES_AROUND: Final = 1_000
_LINES_OF_HEADER: Final = 3
_MOST_PLACES: Final = 50
_LONGEST_LINE: Final = 20_000
_EMPTY_LIST = re.compile(r"\s*No resources found")


class CitedText:
    """A stored result as text, and where it is from. Its records are read once."""

    def __init__(self, text: NumberedText, source: Source) -> None:
        self.text = text
        self.source = source

    @property
    def characters(self) -> int:
        """How long it is."""
        return len(self.text.text)

    @cached_property
    def is_read_whole(self) -> bool:
        """Whether it is small enough to read all of its records."""
        return self.text.total_lines <= _MOST_LINES and self.characters <= _MOST_CHARACTERS

    @cached_property
    def whole(self) -> Passage:
        """All of its records; none cited. Only for a text that is read whole."""
        return Passage(
            cited=(),
            records=self._records(self._lines(1, self.text.total_lines)),
            source=self.source,
            is_whole=not says_it_was_cut(self.text.text),
            is_empty_list=bool(_EMPTY_LIST.match(self.text.text)),
        )

    def passage(self, first_line: int, last_line: int) -> Passage:
        """The records of these lines."""
        if self.is_read_whole:
            return self.whole.within(first_line, last_line)
        start = max(1, first_line - _LINES_AROUND)
        end = min(self.text.total_lines, min(last_line, first_line + _LINES_AROUND) + _LINES_AROUND)
        header = self._lines(1, min(_LINES_OF_HEADER, start - 1)) if start > 1 else []
        records = self._records([*header, *self._lines(start, end)])
        return Passage(cited=(), records=records, source=self.source).within(first_line, last_line)

    def _records(self, lines: list[tuple[int, str]]) -> tuple[Record, ...]:
        """The records of `lines`; log entries are of the object that the command names."""
        return tuple(
            replace(record, names=self.source.names) if record.form == "entry" else record
            for record in records_of(lines)
        )

    def _lines(self, first_line: int, last_line: int) -> list[tuple[int, str]]:
        lines = self.text.lines(first_line, last_line)
        return [(number, line[:_LONGEST_LINE]) for number, line in enumerate(lines, first_line)]

    def has(self, marker: Marker) -> bool:
        """Whether its lines exist."""
        return 1 <= marker.first_line <= marker.last_line <= self.text.total_lines


def judge_cited(
    texts: Sequence[CitedText | None], markers: Sequence[Marker], claim: Claim, deadline: float
) -> tuple[Marker, ...]:
    """`markers` with what came of each. Of several that check a claim together, only those that do are kept."""
    pairs = list(zip(texts, markers, strict=True))
    passages = [
        text.passage(marker.first_line, marker.last_line) if text is not None and text.has(marker) else None
        for text, marker in pairs
    ]
    readable = [passage for passage in passages if passage is not None]
    if time.monotonic() > deadline:
        raise TimeoutError
    judgement = _judged(claim, readable) if readable else Judgement(outcome="not_found", missing=("no such lines",))
    if all(text is None for text in texts):
        judgement = replace(judgement, missing=("no such result",))
    if judgement.outcome == "not_found":
        moved = _moved(texts[0], markers[0], claim, deadline) if len(markers) == 1 else None
        return (moved,) if moved else _with_outcome(markers, judgement)
    kept = [marker for marker, passage in zip(markers, passages, strict=True) if passage is not None]
    if judgement.outcome == "checked" and len(kept) > 1 and not claim.block:
        kept = _needed(kept, readable, claim)
    was_cited = any(marker.outcome == "cited" for marker in kept)
    outcome: CitationOutcome = "cited" if was_cited or judgement.outcome == "cited" else "checked"
    return tuple(dict.fromkeys(replace(marker, outcome=outcome, missing=()) for marker in kept))


def _needed(markers: Sequence[Marker], passages: Sequence[Passage], claim: Claim) -> list[Marker]:
    """The markers that show the claim by themselves; if none does, those without which it is not shown."""
    own = [m for m, p in zip(markers, passages, strict=True) if judge(claim.statement, [p]).outcome == "checked"]
    if own:
        return own
    others = [[p for p in passages if p is not passage] for passage in passages]
    return [m for m, rest in zip(markers, others, strict=True) if judge(claim.statement, rest).outcome != "checked"]


def _with_outcome(markers: Sequence[Marker], judgement: Judgement) -> tuple[Marker, ...]:
    """Every marker as not found; the first names what is missing."""
    first, *others = markers
    shown = tuple(filter(None, map(shown_missing, judgement.missing)))[:MAX_MISSING]
    return (
        replace(first, outcome="not_found", missing=tuple(dict.fromkeys(shown))),
        *(replace(marker, outcome="not_found", missing=()) for marker in others),
    )


def _judged(claim: Claim, passages: Sequence[Passage]) -> Judgement:
    """A statement, and the lines of its fenced block, which stand there word for word."""
    if not claim.block:
        return judge(claim.statement, passages)
    cited = " ".join(record.tokens for passage in passages for record in passage.cited)
    missing = tuple(line.strip() for line in claim.block if tokens_of(line) not in cited)
    if missing:
        return Judgement(outcome="not_found", missing=missing)
    has_words = any(not token.is_neutral for tokens in assertions_of(claim.statement) for token in tokens)
    return judge(claim.statement, passages) if has_words else Judgement(outcome="checked")


def _moved(text: CitedText | None, marker: Marker, claim: Claim, deadline: float) -> Marker | None:
    """`marker` at the only other record that shows all of the claim, which names that record or quotes it at length."""
    if text is None or claim.block or marker.outcome != "checked":
        return None
    values = [token for tokens in assertions_of(claim.statement) for token in tokens if token.is_value]
    longest = max((token.text for token in values), key=len, default="")
    if len(longest) < 4:
        return None
    found: list[Record] = []
    for count, (passage, record) in enumerate(_places(text, longest, deadline)):
        is_named = any(token.text.rpartition("/")[2] in record.names for token in values)
        is_quoted = record.form in ("entry", "event") and " " in longest and record.says(longest)
        if count >= _MOST_PLACES or time.monotonic() > deadline:
            return None
        if record.form == "object" or not (is_named or is_quoted):
            continue
        if judge(claim.statement, [replace(passage, cited=(record,))]).outcome == "checked":
            found.append(record)
        if len(found) > 1:
            return None
    return replace(marker, first_line=found[0].first_line, last_line=found[0].last_line) if found else None


def _places(text: CitedText, literal: str, deadline: float) -> Iterator[tuple[Passage, Record]]:
    """The records in which `literal` stands."""
    if text.is_read_whole:
        for record in text.whole.records:
            if record.says(literal):
                yield text.whole, _line_of(record, literal)
        return
    pattern = re.compile(re.escape(literal))
    for first, last in text.text.find(pattern, (0, text.characters), contains=literal, deadline=deadline):
        passage = text.passage(first, last)
        for record in passage.cited:
            yield passage, _line_of(record, literal)


def _line_of(record: Record, literal: str) -> Record:
    """The line of a log entry that has `literal`; the record where it goes over several."""
    if record.form != "entry":
        return record
    parts = (record.within(number, number) for number, _ in record.lines)
    found = next((part for part in parts if part is not None and part.says(literal)), None)
    return record if found is None else replace(found, first_line=found.lines[0][0], last_line=found.lines[0][0])
