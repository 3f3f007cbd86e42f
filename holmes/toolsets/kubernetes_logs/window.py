"""Counts log lines and keeps the last matching lines, within a memory limit.

`total_lines` and `matching_lines` are exact for the bytes that `feed` received.
"""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holmes.values.errors import ToolError
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    import regex

    from holmes.toolsets.kubernetes_logs.request import LineFilter

LONGEST_LINE_BYTES = 8_000
_RECENT_LINES = 2_000
_RECENT_LINE_BYTES = 1_000
_SEARCH_SECONDS = 10.0
_STORED_PIECE_BYTES = 8_000  # minimum size of the pieces into which a container runtime splits a long line
_OUT_OF_ORDER = timedelta(minutes=1)  # lines of stdout and stderr may be slightly out of order


class LineWindow:
    """Keeps the last `tail_lines` matching lines, at most `kept_limit_bytes` in total.

    `stored_lines` is at least the number of lines that the node counts for `tailLines`. The node counts a long line as
    several lines. `past_end` becomes true after a line that is later than the end of the time range. `begins` is the
    time of the first line, if it has one.
    """

    def __init__(self, *, tail_lines: int, kept_limit_bytes: int, line_filter: LineFilter) -> None:
        self.total_lines = 0
        self.matching_lines = 0
        self.stored_lines = 0
        self.past_end = False
        self.begins: datetime | None = None
        self._tail_lines = tail_lines
        self._kept_limit_bytes = kept_limit_bytes
        self._filter = line_filter
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._recent: deque[bytes] = deque(maxlen=_RECENT_LINES)
        self._pending = bytearray()
        self._search_seconds_left = _SEARCH_SECONDS

    @property
    def kept(self) -> tuple[bytes, ...]:
        """The last matching lines with their timestamps, oldest first. Very long lines are truncated and marked."""
        return tuple(self._kept)

    @property
    def recent(self) -> tuple[bytes, ...]:
        """The last lines whether they match or not, for the analysis of the log. Long lines are truncated."""
        return tuple(self._recent)

    def feed(self, piece: bytes) -> None:
        """Add bytes, which may end in the middle of a line. Raises `ToolError` if a pattern is too slow."""
        end = piece.rfind(b"\n")
        if end < 0:
            self._pending += piece
            return
        block = bytes(self._pending + piece[:end])
        self._pending = bytearray(piece[end + 1 :])
        self._take(block.split(b"\n"))

    def finish(self) -> None:
        """Process the last line of the log, which may have no line end."""
        if self._pending:
            block, self._pending = bytes(self._pending), bytearray()
            self._take([block])

    def _take(self, lines: list[bytes]) -> None:
        if not self.total_lines:
            self.begins = _timestamp_of(lines[0].partition(b" ")[0])
        self.total_lines += len(lines)
        self._recent.extend(line[:_RECENT_LINE_BYTES] for line in lines[-_RECENT_LINES:])
        long_lines = sum(len(line) // _STORED_PIECE_BYTES for line in lines if len(line) >= _STORED_PIECE_BYTES)
        self.stored_lines += len(lines) + long_lines
        if self._filter.takes_all:
            matching = lines
        else:
            try:
                matching = [line for line in lines if self._matches(line)]
            except TimeoutError as error:
                raise ToolError(
                    "matching include or exclude took too long; use a simpler pattern, without nested repetition"
                ) from error
        self.matching_lines += len(matching)
        for line in matching[-self._tail_lines :]:
            self._keep(line)

    def _keep(self, line: bytes) -> None:
        shown = line if len(line) <= LONGEST_LINE_BYTES else _cut(line)
        self._kept.append(shown)
        self._kept_bytes += len(shown)
        while len(self._kept) > self._tail_lines or (self._kept_bytes > self._kept_limit_bytes and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft())

    def _matches(self, line: bytes) -> bool:
        stamp, _, message = line.partition(b" ")
        moment = _timestamp_of(stamp)
        if moment is None:
            message = line
        elif self._filter.until is not None and moment > self._filter.until:
            self.past_end = self.past_end or moment > self._filter.until + _OUT_OF_ORDER
            return False
        words = message.decode("utf-8", "replace")
        included = self._filter.include is None or self._finds(self._filter.include, words)
        return included and not (self._filter.exclude is not None and self._finds(self._filter.exclude, words))

    def _finds(self, pattern: regex.Pattern[str], words: str) -> bool:
        if self._search_seconds_left <= 0:
            raise TimeoutError
        begin = time.monotonic()
        try:
            return pattern.search(words, timeout=min(2.0, self._search_seconds_left)) is not None
        finally:
            self._search_seconds_left -= time.monotonic() - begin


def _timestamp_of(stamp: bytes) -> datetime | None:
    """Parse the timestamp that the kubelet wrote before a line. Returns None if it is missing."""
    if not 20 <= len(stamp) <= 40 or stamp[10:11] != b"T":
        return None
    try:
        moment = datetime.fromisoformat(stamp.decode("ascii"))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _cut(line: bytes) -> bytes:
    shown = without_last_word(line[:LONGEST_LINE_BYTES].decode("utf-8", "replace"))
    return f"{shown} … [cut: the line has {len(line):,} bytes]".encode()
