"""The lines of a stored result, numbered as every pointer, read-back tool and citation numbers them.

Used by the verification of citations and by whatever shows or counts lines of stored bytes. Lines end at a line feed
and count from 1; a line feed at the very end opens no further line, and one-line JSON counts one value per line, as
`readable_json` lays it out. Large results belong into a thread: the work is cut into small pieces, so that no single
call holds the interpreter for long.
"""

from __future__ import annotations

import codecs
import time
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from holmes.previews import readable_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match, Pattern

_DECODED_BYTES = 262_144
_COUNTED_CHARACTERS = 65_536
_SEARCHED_CHARACTERS = 16_384
_OVERLAP_CHARACTERS = 2_048


class NumberedText:
    """The text of stored bytes and the numbers of its lines. What is no UTF-8 becomes replacement characters."""

    __slots__ = ("_ends", "text", "total_lines")

    def __init__(self, content: bytes) -> None:
        self.text = readable_json(_decoded(content))
        starts = range(0, len(self.text), _COUNTED_CHARACTERS)
        self._ends = list(accumulate(self.text.count("\n", start, start + _COUNTED_CHARACTERS) for start in starts))
        line_feeds = self._ends[-1] if self._ends else 0
        self.total_lines = line_feeds + (not self.text.endswith("\n"))

    def lines(self, first_line: int, last_line: int) -> list[str]:
        """Lines `first_line` to `last_line`, both included, without their ends. Fewer where the text ends."""
        if first_line > self.total_lines:
            return []
        start, end = self.span(first_line, min(last_line, self.total_lines))
        return [line.rstrip("\r") for piece in self._pieces(start, end) for line in piece.split("\n")]

    def span(self, first_line: int, last_line: int) -> tuple[int, int]:
        """Where these lines begin and end in `text`, without the last line feed. Both must lie in the text."""
        start = self._line_end(first_line - 1) + 1 if first_line > 1 else 0
        return start, self._line_end(last_line)

    def line_at(self, position: int) -> int:
        """The number of the line that holds the character at `position`."""
        piece = position // _COUNTED_CHARACTERS
        before = self._ends[piece - 1] if piece else 0
        return before + self.text.count("\n", piece * _COUNTED_CHARACTERS, position) + 1

    def find(
        self, pattern: Pattern[str], span: tuple[int, int], *, contains: str = "", deadline: float = float("inf")
    ) -> Iterator[tuple[int, int]]:
        """First and last line of each match of `pattern` that lies in `span` and is at most 2,048 characters long.

        `contains` is a literal part of every match, which makes the search fast. `deadline` is on the monotonic clock;
        `TimeoutError` after it.
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
        """The position of the line feed that ends `line`, or the end of the text."""
        piece = bisect_left(self._ends, line)
        if piece == len(self._ends):
            return len(self.text)
        left = line - (self._ends[piece - 1] if piece else 0)
        position = piece * _COUNTED_CHARACTERS - 1
        for _ in range(left):
            position = self.text.index("\n", position + 1)
        return position

    def _pieces(self, start: int, end: int) -> Iterator[str]:
        """`text[start:end]` in pieces cut at line feeds, which are left out."""
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
