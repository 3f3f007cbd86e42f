"""`read_stored_result_lines`: a range of lines, or as much of one long line as fits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holmes.previews import clip_line, prefix_that_fits
from holmes.toolsets.stored_results.reader import lines_of, number
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from holmes.toolsets.stored_results.reader import Reader
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import StoredResult
    from holmes.values.tools import ToolResult

MAX_LINE_CHARACTERS = 2_000
DEFAULT_LINES = 200


async def read_lines(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Lines `first_line` to `last_line`. Raises `ResultStoreError`, and `ToolError` for a range that is not there."""
    first = max(1, number(arguments, "first_line", 1))
    last = number(arguments, "last_line", first + DEFAULT_LINES - 1)
    column = max(1, number(arguments, "start_column", 1))
    if last < first:
        raise ToolError(f"last_line {last} is before first_line {first}")
    content, stored = await reader.text(str(arguments["result_id"]))
    return await asyncio.to_thread(_range, reader, content, stored, (first, last), column)


def _range(reader: Reader, content: bytes, stored: StoredResult, wanted: tuple[int, int], column: int) -> ToolResult:
    lines = lines_of(content)
    first, last = wanted[0], min(wanted[1], len(lines))
    if first > len(lines):
        raise ToolError(f"result {stored.id} has {len(lines):,} lines; first_line {first:,} is beyond its end")
    if first == last:
        heading = f"Result {stored.id}, line {first:,} of {len(lines):,}"
        return _one_line(reader, lines[first - 1], heading, first, column)
    width = max(20, min(MAX_LINE_CHARACTERS, reader.cap_tokens // 4))
    rendered = [
        f"{count}: {clip_line(line[column - 1 :], width)}"
        for count, line in enumerate(lines[first - 1 : last], start=first)
    ]
    shown = reader.fitting(rendered)
    end = first + shown - 1
    left = len(lines) - end
    more = f"; {left:,} more lines follow, go on with first_line={end + 1}" if left else ""
    where = f", from column {column:,}" if column > 1 else ""
    heading = f"Result {stored.id}, lines {first:,}-{end:,} of {len(lines):,}{where}{more}."
    return reader.bounded("\n".join((heading, *rendered[:shown])))


def _one_line(reader: Reader, line: str, heading: str, count: int, column: int) -> ToolResult:
    """As much of a single line as fits, so that a line of any length can be paged through."""
    window = line[column - 1 : column - 1 + 8 * reader.room_tokens]
    piece = window[: prefix_that_fits(window, reader.room_tokens, reader.counter)]
    if line and not piece:
        raise ToolError(f"line {count:,} has {len(line):,} characters; start_column {column:,} is beyond its end")
    end = column - 1 + len(piece)
    left = len(line) - end
    more = f"; {left:,} more characters, go on with start_column={end + 1}" if left else ""
    return reader.bounded(f"{heading}, columns {column:,}-{end:,} of {len(line):,}{more}.\n{piece}")
