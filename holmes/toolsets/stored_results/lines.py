"""Searches stored text by regular expression, reads line ranges, and calculates statistics.

A pattern that takes too long causes an error and never blocks the run. The results state how many matches and lines are
omitted.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews import clip_line, prefix_that_fits, readable_json, structured_preview
from holmes.previews.excerpts import count_lines
from holmes.toolsets.patterns import bounded_pattern
from holmes.toolsets.stored_results.reader import decoded, lines_of, number
from holmes.values.errors import ToolError
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from regex import Pattern

    from holmes.toolsets.stored_results.reader import Reader
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import StoredResult

_MAX_MATCHES = 100
_SEARCH_TIMEOUT_SECONDS = 10.0
_MAX_CONTEXT_LINES = 20
_WHOLE_LINE_CHARACTERS = 500
_EXCERPT_CHARACTERS = 160
_CONTEXT_CHARACTERS = 300
_MAX_LINE_CHARACTERS = 2_000
_DEFAULT_LINES = 200
_MAX_STATS_TOKENS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The parameters of a search for `pattern` in each line. A long line can have several matches."""

    pattern: str
    ignore_case: bool
    context_lines: int
    skip_matches: int
    max_matches: int
    timeout_seconds: float = _SEARCH_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatch:
    """A match with its context lines, as text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFound:
    """The requested matches, and the total number of matches."""

    matches: tuple[SearchMatch, ...]
    total_matches: int


async def search_result(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Search a stored result for `pattern`. Raises `ResultStoreError`, and `ToolError` for a rejected pattern."""
    query = SearchQuery(
        pattern=str(arguments["pattern"]),
        ignore_case=bool(arguments.get("ignore_case", False)),
        context_lines=max(0, number(arguments, "context_lines", 2)),
        skip_matches=max(0, number(arguments, "skip_matches", 0)),
        max_matches=_MAX_MATCHES,
    )
    content, stored = await reader.text(str(arguments["result_id"]))
    return await asyncio.to_thread(_search, reader, content, stored, query)


def _search(reader: Reader, content: bytes, stored: StoredResult, query: SearchQuery) -> ToolResult:
    lines = lines_of(content)
    found = search_lines(lines, query)
    if not found.total_matches:
        text = f"No line of result {stored.id} ({len(lines):,} lines) matches {query.pattern!r}."
        return ToolResult(status="no_data", error=text, spillable=False)
    shown = reader.fitting([match.text for match in found.matches])
    last = query.skip_matches + shown
    left = found.total_matches - last
    more = f"; {left:,} more matches: narrow the pattern or use skip_matches={last}" if left > 0 else ""
    heading = (
        f"Result {stored.id}, {len(lines):,} lines: {found.total_matches:,} matches of {query.pattern!r}, "
        f"showing {query.skip_matches + 1}-{last}{more}."
    )
    body = "\n--\n".join(match.text for match in found.matches[:shown])
    return reader.bounded(f"{heading}\n{body}")


def search_lines(lines: Sequence[str], query: SearchQuery) -> SearchFound:
    """Search all `lines`. Raises `ToolError` for a rejected or slow pattern."""
    pattern = bounded_pattern(query.pattern, name="pattern", ignore_case=query.ignore_case)
    deadline = time.monotonic() + query.timeout_seconds
    shown: list[SearchMatch] = []
    total = 0
    try:
        for index, line in enumerate(lines):
            for start, end in _matches_in(pattern, line, deadline):
                total += 1
                if query.skip_matches < total <= query.skip_matches + query.max_matches:
                    shown.append(SearchMatch(text=_render(lines, index, (start, end), query.context_lines)))
    except TimeoutError as error:
        reason = f"the search for {query.pattern!r} took longer than {query.timeout_seconds:g} seconds"
        raise ToolError(f"{reason}; use a simpler pattern, without nested repetition") from error
    return SearchFound(matches=tuple(shown), total_matches=total)


def _matches_in(pattern: Pattern[str], line: str, deadline: float) -> Iterator[tuple[int, int]]:
    """Yield at most one match in a normal line, but all matches in a long line.

    Raises `TimeoutError` after `deadline`.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if len(line) <= _WHOLE_LINE_CHARACTERS:
        if match := pattern.search(line, timeout=left, concurrent=True):
            yield match.span()
        return
    for match in pattern.finditer(line, timeout=left, concurrent=True):
        if time.monotonic() > deadline:
            raise TimeoutError
        yield match.span()


def _render(lines: Sequence[str], index: int, span: tuple[int, int], context_lines: int) -> str:
    context = min(context_lines, _MAX_CONTEXT_LINES)
    before = range(max(0, index - context), index)
    after = range(index + 1, min(len(lines), index + 1 + context))
    return "\n".join(
        (
            *(f"{number + 1}- {clip_line(lines[number], _CONTEXT_CHARACTERS)}" for number in before),
            f"{index + 1}: {_excerpt(lines[index], span)}",
            *(f"{number + 1}- {clip_line(lines[number], _CONTEXT_CHARACTERS)}" for number in after),
        )
    )


def _excerpt(line: str, span: tuple[int, int]) -> str:
    """Return a normal line unchanged. For a long line, return the part around the match, with its columns."""
    if len(line) <= _WHOLE_LINE_CHARACTERS:
        return line
    start = max(0, span[0] - _EXCERPT_CHARACTERS)
    end = min(len(line), min(span[1], span[0] + _EXCERPT_CHARACTERS) + _EXCERPT_CHARACTERS)
    return f"(columns {start + 1:,}-{end:,} of {len(line):,}) {line[start:end]}"


async def read_lines(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Read the lines from `first_line` to `last_line`.

    Raises `ResultStoreError`, and `ToolError` for an invalid range.
    """
    first = max(1, number(arguments, "first_line", 1))
    last = number(arguments, "last_line", first + _DEFAULT_LINES - 1)
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
    width = max(20, min(_MAX_LINE_CHARACTERS, reader.cap_tokens // 4))
    rendered = [
        f"{count}: {clip_line(line[column - 1 :], width)}"
        for count, line in enumerate(lines[first - 1 : last], start=first)
    ]
    shown = reader.fitting(rendered)
    end = first + shown - 1
    left = len(lines) - end
    more = f"; {left:,} more lines follow; continue with first_line={end + 1}" if left else ""
    where = f", from column {column:,}" if column > 1 else ""
    heading = f"Result {stored.id}, lines {first:,}-{end:,} of {len(lines):,}{where}{more}."
    return reader.bounded("\n".join((heading, *rendered[:shown])))


def _one_line(reader: Reader, line: str, heading: str, count: int, column: int) -> ToolResult:
    """Return as much of a single line as fits. The result states the `start_column` of the next part."""
    window = line[column - 1 : column - 1 + 8 * reader.room_tokens]
    piece = window[: prefix_that_fits(window, reader.room_tokens, reader.counter)]
    if line and not piece:
        raise ToolError(f"line {count:,} has {len(line):,} characters; start_column {column:,} is beyond its end")
    end = column - 1 + len(piece)
    left = len(line) - end
    more = f"; {left:,} more characters follow; continue with start_column={end + 1}" if left else ""
    return reader.bounded(f"{heading}, columns {column:,}-{end:,} of {len(line):,}{more}.\n{piece}")


async def summarize(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Describe the kind, size and structure of a stored text.

    Raises `ResultStoreError`, and `ToolError` for an image.
    """
    content, stored = await reader.text(str(arguments["result_id"]))
    return await asyncio.to_thread(_summary, reader, content, stored)


def _summary(reader: Reader, content: bytes, stored: StoredResult) -> ToolResult:
    view = readable_json(decoded(content))
    preview = structured_preview(view, min(_MAX_STATS_TOKENS, reader.room_tokens), reader.counter)
    size = f"{count_lines(view):,} lines, {stored.size_bytes:,} bytes"
    return reader.bounded(f"Result {stored.id}: {preview.kind}, {size}; {preview.shown}.\n{preview.text}")
