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

from holmes.evidence.judgements import CHECKED, CITED, Judgement, Passage
from holmes.evidence.judging import judge, stands_there
from holmes.evidence.markers import MAX_MISSING, shown_missing
from holmes.evidence.parsing import records_of
from holmes.evidence.quantities import QUANTITY
from holmes.evidence.records import tokens_of
from holmes.evidence.sources import Source, says_it_was_cut
from holmes.evidence.words import assertions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.claims import Claim
    from holmes.evidence.lines import NumberedText
    from holmes.evidence.markers import Marker
    from holmes.evidence.records import Record
    from holmes.values.events import CitationOutcome

_MOST_LINES: Final = 20_000
_MOST_CHARACTERS: Final = 3_000_000
_LINES_AROUND: Final = 1_000
_LINES_OF_HEADER: Final = 3
_MOST_PLACES: Final = 50
_LONGEST_LINE: Final = 20_000
_CUT_LINE: Final = 200
_SHORTEST_MOVED: Final = 4
_LONGEST_ELEMENT: Final = 10
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
        text = "\n".join(line for _, line in self._lines(first_line, min(last_line, first_line + _LINES_AROUND)))
        heading = "\n".join(self.text.lines(1, 1))[:_LONGEST_LINE]
        if self.is_read_whole:
            return replace(self.whole.within(first_line, last_line, text), heading=heading)
        start = max(1, first_line - _LINES_AROUND)
        end = min(self.text.total_lines, min(last_line, first_line + _LINES_AROUND) + _LINES_AROUND)
        header = self._lines(1, min(_LINES_OF_HEADER, start - 1)) if start > 1 else []
        records = self._records([*header, *self._lines(start, end)])
        passage = Passage(cited=(), records=records, source=self.source, heading=heading)
        return passage.within(first_line, last_line, text)

    def _records(self, lines: list[tuple[int, str]]) -> tuple[Record, ...]:
        """The records of `lines`; log entries are of the object that the command names."""
        return tuple(
            replace(record, names=self.source.names) if record.form == "entry" else record
            for record in records_of(lines, self.source)
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
    cited = "".join(tokens_of(text) for passage in passages for text in (passage.text, passage.heading))
    missing = tuple(line.strip() for line in claim.block if not _is_quoted_from(line, cited))
    if missing:
        return Judgement(outcome="not_found", missing=missing)
    has_words = any(not token.is_neutral for each in assertions_of(claim.statement) for token in each.tokens)
    lead = judge(claim.statement, passages) if has_words else CHECKED
    return (
        CITED if lead.missing and all(QUANTITY.fullmatch(item.partition(" of ")[0]) for item in lead.missing) else lead
    )


def _is_quoted_from(line: str, cited: str) -> bool:
    """Whether a line of a block stands in the cited words. A long one may be cut; `...` says that some are left out."""
    words = tokens_of(line)
    if len(line) >= _CUT_LINE:
        words = f"{words.rstrip().rpartition(' ')[0]} "
    return words in cited or line.lstrip().startswith(("...", "…"))


def _moved(text: CitedText | None, marker: Marker, claim: Claim, deadline: float) -> Marker | None:
    """`marker` at the only other place that shows all of the claim, which names that record or quotes it at length.

    It is *cited* there and no more: other lines than those that were named do not check a claim.
    """
    if text is None or claim.block or marker.outcome != "checked":
        return None
    values = [
        token for each in assertions_of(claim.statement) for token in each.tokens if token.is_value or token.quoted
    ]
    longest = max((token.text for token in values), key=len, default="")
    if len(longest) < _SHORTEST_MOVED:
        return None
    found: list[tuple[int, int]] = []
    for count, (record, lines) in enumerate(_places(text, longest, deadline)):
        if count >= _MOST_PLACES or time.monotonic() > deadline:
            return None
        is_named = any(token.text.rpartition("/")[2] in record.names for token in values)
        is_quoted = (" " in longest or "." in longest) and record.says(longest)
        passage = text.passage(*lines)
        is_said = is_quoted and stands_there(claim.statement, passage)
        if is_said:
            return replace(marker, first_line=lines[0], last_line=lines[1], outcome="cited")
        if (is_named or is_quoted) and judge(claim.statement, [passage]).outcome == "checked":
            found.append(lines)
        if len(found) > 1:
            return None
    return replace(marker, first_line=found[0][0], last_line=found[0][1], outcome="cited") if found else None


def _places(text: CitedText, literal: str, deadline: float) -> Iterator[tuple[Record, tuple[int, int]]]:
    """The records in which `literal` stands, and their lines: of a log entry the line, of an object the element."""
    if text.is_read_whole:
        records = (record for record in text.whole.records if record.says(literal))
    else:
        pattern = re.compile(re.escape(literal))
        matches = text.text.find(pattern, (0, text.characters), contains=literal, deadline=deadline)
        records = (record for lines in matches for record in text.passage(*lines).cited)
    for record in records:
        yield from ((record, lines) for lines in _lines_of(record, literal))


def _lines_of(record: Record, literal: str) -> list[tuple[int, int]]:
    """Where in `record` the words of `literal` stand."""
    if record.form in ("row", "event"):
        return [(record.first_line, record.last_line)]
    words = tokens_of(literal)
    numbers = [number for number, line in record.lines if words in tokens_of(line)][:_MOST_PLACES]
    if record.form == "entry":
        return [(number, number) for number in numbers] or [(record.first_line, record.last_line)]
    return [_element_around(record, number) for number in numbers]


def _element_around(record: Record, number: int) -> tuple[int, int]:
    """The lines next to `number` that have values of the same object, at most ten on each side."""
    paths = {each.line: each.path[:-1] for each in reversed(record.fields)}
    first = last = number
    while first > number - _LONGEST_ELEMENT and paths.get(first - 1) == paths.get(number, ()):
        first -= 1
    while last < number + _LONGEST_ELEMENT and paths.get(last + 1) == paths.get(number, ()):
        last += 1
    return first, last
