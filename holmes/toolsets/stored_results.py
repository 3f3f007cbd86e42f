"""Toolset `holmes/results`: reads back what the spill moved out of the conversation (T17, N2).

Made in `holmes.app` when results are stored. Reads through the `ResultStore` only: no path outside it, no shell. Every
answer is bounded by the cap of a single result, says how much more there is, and is never spilled again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.errors import ResultStoreError, ToolError
from holmes.core.messages import Image, ResultId
from holmes.core.previews import clip_line, prefix_that_fits, readable_json
from holmes.core.tokens import MESSAGE_OVERHEAD_TOKENS, image_tokens, utf8_bytes
from holmes.core.tools import Parameter, ParameterSchema, Tool, ToolResult
from holmes.core.tools_utils.tool_context_window_limiter import IMAGE_TOOL, LINES_TOOL, SEARCH_TOOL
from holmes.toolsets.stored_search import SearchQuery, search_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.json_types import JsonObject
    from holmes.core.messages import StoredResult
    from holmes.core.results import ResultStore
    from holmes.core.tokens import TokenCounter
    from holmes.core.tools import ToolInvocation

MAX_LINE_CHARACTERS = 2_000
DEFAULT_LINES = 200
MAX_MATCHES = 100
_OVERHEAD_TOKENS = 120

_RESULT_ID = Parameter(
    name="result_id",
    schema=ParameterSchema(types=("string",), description="The id that the pointer names"),
)


def _integer(name: str, description: str, default: int) -> Parameter:
    schema = ParameterSchema(types=("integer",), description=description)
    return Parameter(name=name, schema=schema, required=False, default=default)


_TOOLS = (
    Tool(
        name=SEARCH_TOOL,
        description="Find lines of a stored result by regular expression, with line numbers and context.",
        parameters=(
            _RESULT_ID,
            Parameter(
                name="pattern",
                schema=ParameterSchema(types=("string",), description="Regular expression, matched line by line"),
            ),
            Parameter(name="ignore_case", schema=ParameterSchema(types=("boolean",)), required=False, default=False),
            _integer("context_lines", "Lines shown before and after each match", 2),
            _integer("skip_matches", "Leave out this many matches at the start, to see the next ones", 0),
        ),
    ),
    Tool(
        name=LINES_TOOL,
        description="Read a range of lines of a stored result. Long lines are clipped; start_column pages through one.",
        parameters=(
            _RESULT_ID,
            _integer("first_line", "Counts from 1", 1),
            Parameter(
                name="last_line",
                schema=ParameterSchema(types=("integer",), description="Included; 200 lines when left out"),
                required=False,
            ),
            _integer("start_column", "First character of each line that is shown, counts from 1", 1),
        ),
    ),
    Tool(
        name=IMAGE_TOOL,
        description="Look at a stored picture.",
        parameters=(
            Parameter(
                name="result",
                schema=ParameterSchema(types=("string",), description="Id or path that the pointer names"),
            ),
        ),
    ),
)

TOOLSET_NAME = "holmes/results"
TOOL_NAMES = tuple(tool.name for tool in _TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResultsToolset:
    """Search, line ranges and pictures over a store.

    `cap_tokens` is the cap of a single result (T2), the smallest of the models that may read the answer;
    `vision` says whether the model can look at pictures.
    """

    store: ResultStore
    counter: TokenCounter
    cap_tokens: int
    vision: bool

    @property
    def name(self) -> str:
        """The toolset's name."""
        return TOOLSET_NAME

    @property
    def instructions(self) -> str:
        """What the system prompt says; the pointers themselves explain the rest."""
        return (
            "A tool result that is too large is stored and replaced by a pointer with a preview. "
            f"Use {SEARCH_TOOL} first and {LINES_TOOL} around what it finds; never conclude from the preview alone."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The picture tool is only offered to a model that can see."""
        return _TOOLS if self.vision else _TOOLS[:2]

    def describe(self, invocation: ToolInvocation) -> str:
        """One line for people."""
        arguments = invocation.arguments
        match invocation.tool.name:
            case name if name == SEARCH_TOOL:
                return f"search stored result {arguments.get('result_id')} for {arguments.get('pattern')!r}"
            case name if name == LINES_TOOL:
                first, last = arguments.get("first_line", 1), arguments.get("last_line")
                return f"read lines {first}-{last or '...'} of stored result {arguments.get('result_id')}"
            case _:
                return f"look at stored picture {arguments.get('result')}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run one of the tools. A wrong id, pattern or range is an error result that says what to do."""
        try:
            match invocation.tool.name:
                case name if name == SEARCH_TOOL:
                    return await self._search(invocation.arguments)
                case name if name == LINES_TOOL:
                    return await self._lines(invocation.arguments)
                case _:
                    return await self._image(invocation.arguments)
        except (ResultStoreError, ToolError) as error:
            return ToolResult(status="error", error=str(error), spillable=False)

    async def _search(self, arguments: JsonObject) -> ToolResult:
        query = SearchQuery(
            pattern=str(arguments["pattern"]),
            ignore_case=bool(arguments.get("ignore_case", False)),
            context_lines=max(0, _number(arguments, "context_lines", 2)),
            skip_matches=max(0, _number(arguments, "skip_matches", 0)),
            max_matches=MAX_MATCHES,
        )
        content, stored = await self._text(str(arguments["result_id"]))
        return await asyncio.to_thread(self._search_text, content, stored, query)

    def _search_text(self, content: bytes, stored: StoredResult, query: SearchQuery) -> ToolResult:
        lines = _lines_of(content)
        found = search_lines(lines, query)
        if not found.total_matches:
            text = f"No line of result {stored.id} ({len(lines):,} lines) matches {query.pattern!r}."
            return ToolResult(status="no_data", error=text, spillable=False)
        shown = self._fitting([match.text for match in found.matches])
        last = query.skip_matches + shown
        left = found.total_matches - last
        more = f"; {left:,} more matches: narrow the pattern or use skip_matches={last}" if left > 0 else ""
        heading = (
            f"Result {stored.id}, {len(lines):,} lines: {found.total_matches:,} matches of {query.pattern!r}, "
            f"showing {query.skip_matches + 1}-{last}{more}."
        )
        body = "\n--\n".join(match.text for match in found.matches[:shown])
        return self._bounded(f"{heading}\n{body}")

    async def _lines(self, arguments: JsonObject) -> ToolResult:
        first = max(1, _number(arguments, "first_line", 1))
        last = _number(arguments, "last_line", first + DEFAULT_LINES - 1)
        column = max(1, _number(arguments, "start_column", 1))
        if last < first:
            raise ToolError(f"last_line {last} is before first_line {first}")
        content, stored = await self._text(str(arguments["result_id"]))
        return await asyncio.to_thread(self._read_lines, content, stored, (first, last), column)

    def _read_lines(self, content: bytes, stored: StoredResult, wanted: tuple[int, int], column: int) -> ToolResult:
        lines = _lines_of(content)
        first, last = wanted[0], min(wanted[1], len(lines))
        if first > len(lines):
            raise ToolError(f"result {stored.id} has {len(lines):,} lines; first_line {first:,} is beyond its end")
        if first == last:
            return self._one_line(lines[first - 1], stored, first, len(lines), column)
        width = max(20, min(MAX_LINE_CHARACTERS, self.cap_tokens // 4))
        rendered = [
            f"{number}: {clip_line(line[column - 1 :], width)}"
            for number, line in enumerate(lines[first - 1 : last], start=first)
        ]
        shown = self._fitting(rendered)
        end = first + shown - 1
        left = len(lines) - end
        more = f"; {left:,} more lines follow, go on with first_line={end + 1}" if left else ""
        where = f", from column {column:,}" if column > 1 else ""
        heading = f"Result {stored.id}, lines {first:,}-{end:,} of {len(lines):,}{where}{more}."
        return self._bounded("\n".join((heading, *rendered[:shown])))

    def _one_line(self, line: str, stored: StoredResult, number: int, total: int, column: int) -> ToolResult:
        """As much of a single line as fits, so that a line of any length can be paged through."""
        room = max(1, self.cap_tokens - _OVERHEAD_TOKENS)
        window = line[column - 1 : column - 1 + 8 * room]
        piece = window[: prefix_that_fits(window, room, self.counter)]
        if line and not piece:
            raise ToolError(f"line {number:,} has {len(line):,} characters; start_column {column:,} is beyond its end")
        end = column - 1 + len(piece)
        left = len(line) - end
        more = f"; {left:,} more characters, go on with start_column={end + 1}" if left else ""
        heading = (
            f"Result {stored.id}, line {number:,} of {total:,}, columns {column:,}-{end:,} of {len(line):,}{more}."
        )
        return self._bounded(f"{heading}\n{piece}")

    async def _image(self, arguments: JsonObject) -> ToolResult:
        content, stored = await self.store.read(ResultId(str(arguments["result"]).strip()))
        if not stored.media_type.startswith("image/"):
            raise ToolError(f"result {stored.id} is {stored.media_type}, not a picture; use {LINES_TOOL}")
        if not self.vision:
            raise ToolError("this model cannot look at pictures")
        image = Image(data=content, media_type=stored.media_type)
        tokens, cap = image_tokens(image), self.cap_tokens
        if tokens > cap:
            raise ToolError(
                f"the picture takes about {tokens:,} tokens and a result may take {cap:,}; "
                "ask for a smaller picture or another source"
            )
        text = f"Picture {stored.id}, {stored.media_type}, {stored.size_bytes:,} bytes."
        return ToolResult(status="success", data=text, images=(image,), spillable=False)

    async def _text(self, result_id: str) -> tuple[bytes, StoredResult]:
        content, stored = await self.store.read(ResultId(result_id.strip()))
        if stored.media_type.startswith("image/"):
            raise ToolError(f"result {stored.id} is a picture ({stored.media_type}); use {IMAGE_TOOL}")
        return content, stored

    def _bounded(self, text: str) -> ToolResult:
        """`text` as the answer; where the cap is so small that a single match is above it, its beginning."""
        room = max(1, self.cap_tokens - MESSAGE_OVERHEAD_TOKENS)
        if utf8_bytes(text) > room and self.counter.count_text(text) > room:
            text = text[: prefix_that_fits(text, room, self.counter)]
        return ToolResult(status="success", data=text, spillable=False)

    def _fitting(self, blocks: Sequence[str]) -> int:
        """How many of `blocks`, at least one, fit into one result together."""
        room = max(1, self.cap_tokens - _OVERHEAD_TOKENS)
        total = 0
        for count, block in enumerate(blocks):
            total += utf8_bytes(block) + 4
            if total > 8 * room:
                blocks = blocks[: max(1, count)]
                break
        count = len(blocks)
        while count > 1:
            text = "\n--\n".join(blocks[:count])
            if utf8_bytes(text) <= room or (tokens := self.counter.count_text(text)) <= room:
                return count
            count = max(1, min(count - 1, int(count * room / tokens * 0.95)))
        return count


def _lines_of(content: bytes) -> list[str]:
    """The lines that pointers and answers count: of the text, or of one-line JSON laid out one value per line."""
    text = readable_json(content.decode("utf-8", "replace"))
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def _number(arguments: JsonObject, name: str, default: int) -> int:
    value = arguments.get(name)
    return int(value) if isinstance(value, int | float) else default
