"""Determines the outcome and the lines of a claim's citations, given the cited texts.

This code runs in a thread and in short steps, so that no call blocks the interpreter for long. It raises `TimeoutError`
after the deadline. For a large result, only the lines around the citation are read, so claims about the whole result
cannot be checked.

All tools and citations use the same line numbers. Lines end at a line feed, and numbers start at 1. A trailing line
feed does not start another line. Each value of one-line JSON is treated as a separate line, as in `readable_json`.
"""

from __future__ import annotations

import codecs
import re
import time
from bisect import bisect_left
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from holmes.evidence.markers import MAX_MISSING, shown_missing
from holmes.evidence.parsing import records_of
from holmes.evidence.quantities import QUANTITY
from holmes.evidence.records import CHECKED, CITED, Judgement, Passage, tokens_of
from holmes.evidence.sources import Source, says_it_was_cut
from holmes.evidence.words import assertions_of
from holmes.previews import readable_json
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from re import Match, Pattern

    from holmes.evidence.markers import Claim, Marker
    from holmes.evidence.records import Record
    from holmes.values.events import CitationOutcome

_DECODED_BYTES = 262_144
_COUNTED_CHARACTERS = 65_536
_SEARCHED_CHARACTERS = 16_384
_OVERLAP_CHARACTERS = 2_048
_MOST_LINES: Final = 20_000
_MOST_CHARACTERS: Final = 3_000_000
_LINES_AROUND: Final = 1_000
_LINES_OF_HEADER: Final = 3
_MOST_PLACES: Final = 50
_LONGEST_LINE: Final = 20_000
_CUT_LINE: Final = 200
_SHORTEST_MOVED: Final = 4
_LONGEST_ELEMENT: Final = 10
_EMPTY_LIST = expression(r"\s*No resources found")


class NumberedText:
    """The text of stored bytes with line numbers. Bytes that are not valid UTF-8 become replacement characters."""

    __slots__ = ("_ends", "text", "total_lines")

    def __init__(self, content: bytes) -> None:
        self.text = readable_json(_decoded(content))
        starts = range(0, len(self.text), _COUNTED_CHARACTERS)
        self._ends = list(accumulate(self.text.count("\n", start, start + _COUNTED_CHARACTERS) for start in starts))
        line_feeds = self._ends[-1] if self._ends else 0
        self.total_lines = line_feeds + (not self.text.endswith("\n"))

    def lines(self, first_line: int, last_line: int) -> list[str]:
        """Return lines `first_line` to `last_line`, inclusive, without their line feeds.

        Returns fewer lines if the text ends before `last_line`.
        """
        if first_line > self.total_lines:
            return []
        start, end = self.span(first_line, min(last_line, self.total_lines))
        return [line.rstrip("\r") for piece in self._pieces(start, end) for line in piece.split("\n")]

    def span(self, first_line: int, last_line: int) -> tuple[int, int]:
        """Return the start and end of these lines in `text`, without the last line feed. Both lines must exist."""
        start = self._line_end(first_line - 1) + 1 if first_line > 1 else 0
        return start, self._line_end(last_line)

    def line_at(self, position: int) -> int:
        """Return the line number of the character at `position`."""
        piece = position // _COUNTED_CHARACTERS
        before = self._ends[piece - 1] if piece else 0
        return before + self.text.count("\n", piece * _COUNTED_CHARACTERS, position) + 1

    def find(
        self, pattern: Pattern[str], span: tuple[int, int], *, contains: str = "", deadline: float = float("inf")
    ) -> Iterator[tuple[int, int]]:
        """Yield the first and last line of each match of `pattern` in `span`.

        A match has at most 2,048 characters. `contains` is text that every match contains. It makes the search fast.
        `deadline` is a monotonic time. Raises `TimeoutError` after the deadline.
        """
        start, end = span
        searched = start
        while searched < end:
            if time.monotonic() > deadline:
                raise TimeoutError
            stop = min(end, searched + _SEARCHED_CHARACTERS)
            limit = min(end, stop + _OVERLAP_CHARACTERS)
            if self.text.find(contains, searched, limit) < 0:
                searched = stop
                continue
            match = pattern.search(self.text, searched, limit)
            if match is None or match.start() >= stop:
                searched = stop
                continue
            yield self._lines_of(match)
            searched = max(match.end(), searched + 1)

    def _lines_of(self, match: Match[str]) -> tuple[int, int]:
        return self.line_at(match.start()), self.line_at(max(match.start(), match.end() - 1))

    def _line_end(self, line: int) -> int:
        """Return the position of the line feed that ends `line`, or the end of the text."""
        piece = bisect_left(self._ends, line)
        if piece == len(self._ends):
            return len(self.text)
        left = line - (self._ends[piece - 1] if piece else 0)
        position = piece * _COUNTED_CHARACTERS - 1
        for _ in range(left):
            position = self.text.index("\n", position + 1)
        return position

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        """Yield `text[start:end]` in chunks that are cut at line feeds, without these line feeds."""
        while end - start > _COUNTED_CHARACTERS:
            cut = self.text.rfind("\n", start, start + _COUNTED_CHARACTERS)
            cut = self.text.find("\n", start, end) if cut < 0 else cut
            if cut < 0:
                break
            yield self.text[start:cut]
            start = cut + 1
        yield self.text[start:end]


def _decoded(content: bytes) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    view = memoryview(content)
    pieces = [decoder.decode(view[start : start + _DECODED_BYTES]) for start in range(0, len(content), _DECODED_BYTES)]
    return "".join((*pieces, decoder.decode(b"", final=True)))


class CitedText:
    """A stored result as text, with its source. The records of the text are parsed once."""

    def __init__(self, text: NumberedText, source: Source) -> None:
        self.text = text
        self.source = source

    @property
    def characters(self) -> int:
        return len(self.text.text)

    @cached_property
    def is_read_whole(self) -> bool:
        """Whether the text is small enough to be parsed completely."""
        return self.text.total_lines <= _MOST_LINES and self.characters <= _MOST_CHARACTERS

    @cached_property
    def whole(self) -> Passage:
        """A passage with all records and no citation. Use it only if `is_read_whole` is true."""
        return Passage(
            cited=(),
            records=self._records(self._lines(1, self.text.total_lines)),
            source=self.source,
            is_whole=not says_it_was_cut(self.text.text),
            is_empty_list=bool(_EMPTY_LIST.match(self.text.text)),
        )

    def passage(self, first_line: int, last_line: int) -> Passage:
        """Return a passage that cites these lines."""
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
        """Return the records of `lines`. Log entries belong to the object that the command names."""
        return tuple(
            replace(record, names=self.source.names) if record.form == "entry" else record
            for record in records_of(lines, self.source)
        )

    def _lines(self, first_line: int, last_line: int) -> list[tuple[int, str]]:
        lines = self.text.lines(first_line, last_line)
        return [(number, line[:_LONGEST_LINE]) for number, line in enumerate(lines, first_line)]

    def has(self, marker: Marker) -> bool:
        """Return whether the cited lines of `marker` exist."""
        return 1 <= marker.first_line <= marker.last_line <= self.text.total_lines


def judge_cited(
    texts: Sequence[CitedText | None], markers: Sequence[Marker], claim: Claim, deadline: float
) -> tuple[Marker, ...]:
    """Return `markers` with their outcomes. If several markers prove a claim, only the necessary markers are kept."""
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
    """Return the markers that each prove the claim alone.

    If no marker does, return the markers without which the claim is not proved.
    """
    own = [m for m, p in zip(markers, passages, strict=True) if _shown(claim.statement, [p]).outcome == "checked"]
    if own:
        return own
    others = [[p for p in passages if p is not passage] for passage in passages]
    return [m for m, rest in zip(markers, others, strict=True) if _shown(claim.statement, rest).outcome != "checked"]


def _with_outcome(markers: Sequence[Marker], judgement: Judgement) -> tuple[Marker, ...]:
    """Set the outcome of every marker to *not found*. The first marker lists the missing parts."""
    first, *others = markers
    shown = tuple(filter(None, map(shown_missing, judgement.missing)))[:MAX_MISSING]
    return (
        replace(first, outcome="not_found", missing=tuple(dict.fromkeys(shown))),
        *(replace(marker, outcome="not_found", missing=()) for marker in others),
    )


def _judged(claim: Claim, passages: Sequence[Passage]) -> Judgement:
    """Judge a statement, or a fenced block that must be quoted word for word."""
    if not claim.block:
        return _shown(claim.statement, passages)
    cited = "".join(tokens_of(text) for passage in passages for text in (passage.text, passage.heading))
    missing = tuple(line.strip() for line in claim.block if not _is_quoted_from(line, cited))
    if missing:
        return Judgement(outcome="not_found", missing=missing)
    has_words = any(not token.is_neutral for each in assertions_of(claim.statement) for token in each.tokens)
    lead = _shown(claim.statement, passages) if has_words else CHECKED
    return (
        CITED if lead.missing and all(QUANTITY.fullmatch(item.partition(" of ")[0]) for item in lead.missing) else lead
    )


def _shown(statement: str, passages: Sequence[Passage]) -> Judgement:
    # Imported late, because this module loads most of this package.
    from holmes.evidence.judging import judge

    return judge(statement, passages)


def _stands_there(statement: str, passage: Passage) -> bool:
    from holmes.evidence.judging import stands_there

    return stands_there(statement, passage)


def _is_quoted_from(line: str, cited: str) -> bool:
    """Return whether the cited words contain a line of a block.

    A long line may be cut, and `...` marks an omission.
    """
    words = tokens_of(line)
    if len(line) >= _CUT_LINE:
        words = f"{words.rstrip().rpartition(' ')[0]} "
    return words in cited or line.lstrip().startswith(("...", "…"))


def _moved(text: CitedText | None, marker: Marker, claim: Claim, deadline: float) -> Marker | None:
    """Return a marker for the only other lines that prove the whole claim, or None if they are not found or not unique.

    These lines must belong to a record of a named object or contain a long quote. The outcome is at most *cited*,
    because the answer cited other lines.
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
        is_said = is_quoted and _stands_there(claim.statement, passage)
        if is_said:
            return replace(marker, first_line=lines[0], last_line=lines[1], outcome="cited")
        if (is_named or is_quoted) and _shown(claim.statement, [passage]).outcome == "checked":
            found.append(lines)
        if len(found) > 1:
            return None
    return replace(marker, first_line=found[0][0], last_line=found[0][1], outcome="cited") if found else None


def _places(text: CitedText, literal: str, deadline: float) -> Iterator[tuple[Record, tuple[int, int]]]:
    """Yield the records that contain `literal`, with their lines.

    For a log entry, these are the matching lines. For an object, these are the lines of the matching element.
    """
    if text.is_read_whole:
        records = (record for record in text.whole.records if record.says(literal))
    else:
        pattern = re.compile(re.escape(literal))
        matches = text.text.find(pattern, (0, text.characters), contains=literal, deadline=deadline)
        records = (record for lines in matches for record in text.passage(*lines).cited)
    for record in records:
        yield from ((record, lines) for lines in _lines_of(record, literal))


def _lines_of(record: Record, literal: str) -> list[tuple[int, int]]:
    """Return the lines of `record` that contain the words of `literal`."""
    if record.form in ("row", "event"):
        return [(record.first_line, record.last_line)]
    words = tokens_of(literal)
    numbers = [number for number, line in record.lines if words in tokens_of(line)][:_MOST_PLACES]
    if record.form == "entry":
        return [(number, number) for number in numbers] or [(record.first_line, record.last_line)]
    return [_element_around(record, number) for number in numbers]


def _element_around(record: Record, number: int) -> tuple[int, int]:
    """Return the first and last line of the element that contains line `number`, at most ten lines on each side."""
    paths = {each.line: each.path[:-1] for each in reversed(record.fields)}
    first = last = number
    while first > number - _LONGEST_ELEMENT and paths.get(first - 1) == paths.get(number, ()):
        first -= 1
    while last < number + _LONGEST_ELEMENT and paths.get(last + 1) == paths.get(number, ()):
        last += 1
    return first, last
