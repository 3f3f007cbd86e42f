"""The toolset `holmes/results`: its tools, their descriptions for the model, and the tool for images.

Descriptions are short, because all of them are part of every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.toolsets.stored_results.lines import read_lines, search_result, summarize
from holmes.toolsets.stored_results.query import run_query
from holmes.toolsets.stored_results.reader import Reader
from holmes.values.errors import ResultStoreError, ToolError
from holmes.values.messages import Image
from holmes.values.tools import (
    IMAGE_TOOL,
    LINES_TOOL,
    QUERY_TOOL,
    SEARCH_TOOL,
    STATS_TOOL,
    Parameter,
    ParameterSchema,
    Tool,
    ToolResult,
)

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import ResultStore, ToolInvocation

TOOLSET_NAME: Final = "holmes/results"

_RESULT_ID = Parameter(name="result_id", schema=ParameterSchema(types=("string",), description="Id from the pointer"))


def _text(name: str, description: str) -> Parameter:
    return Parameter(name=name, schema=ParameterSchema(types=("string",), description=description))


def _integer(name: str, description: str, default: int) -> Parameter:
    schema = ParameterSchema(types=("integer",), description=description)
    return Parameter(name=name, schema=schema, required=False, default=default)


_TEXT_TOOLS: Final = (
    Tool(
        name=SEARCH_TOOL,
        description="Find lines of a stored result by regular expression, with line numbers and context.",
        parameters=(
            _RESULT_ID,
            _text("pattern", "Regular expression, matched line by line"),
            Parameter(name="ignore_case", schema=ParameterSchema(types=("boolean",)), required=False, default=False),
            _integer("context_lines", "Number of lines to show before and after each match", 2),
            _integer("skip_matches", "Number of matches to skip, to see later matches", 0),
        ),
    ),
    Tool(
        name=LINES_TOOL,
        description="Read a range of lines of a stored result. Long lines are truncated; start_column shows the rest.",
        parameters=(
            _RESULT_ID,
            _integer("first_line", "First line to read, counted from 1", 1),
            Parameter(
                name="last_line",
                schema=ParameterSchema(
                    types=("integer",), description="Last line to read. Default: 200 lines in total"
                ),
                required=False,
            ),
            _integer("start_column", "First column to show in each line, counted from 1", 1),
        ),
    ),
    Tool(
        name=QUERY_TOOL,
        description="Run a jq expression on a stored JSON or JSON Lines result. Strings are shown without quotes.",
        parameters=(
            _RESULT_ID,
            _text("expression", 'jq expression, e.g. .items[] | select(.status.phase != "Running")'),
        ),
    ),
    Tool(
        name=STATS_TOOL,
        description="Show statistics of a stored result: patterns and levels of logs, columns of tables, keys of JSON.",
        parameters=(_RESULT_ID,),
    ),
)
_IMAGE_TOOLS: Final = (
    Tool(
        name=IMAGE_TOOL,
        description="View a stored image.",
        parameters=(_text("result", "Id or path from the pointer"),),
    ),
)
TOOL_NAMES: Final = tuple(tool.name for tool in (*_TEXT_TOOLS, *_IMAGE_TOOLS))


async def _show_image(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Return the image with the given id or path. Raises `ResultStoreError` and `ToolError`."""
    content, stored = await reader.read(str(arguments["result"]))
    if not stored.media_type.startswith("image/"):
        raise ToolError(f"result {stored.id} is {stored.media_type}, not an image; use {LINES_TOOL}")
    if not reader.vision:
        raise ToolError("this model cannot read images")
    image = Image(data=content, media_type=stored.media_type)
    tokens, cap = reader.counter.image_tokens(image), reader.cap_tokens
    if tokens > cap:
        raise ToolError(
            f"the image takes about {tokens:,} tokens; the limit for a result is {cap:,}: "
            "use a smaller image or another source"
        )
    text = f"Image {stored.id}, {stored.media_type}, {stored.size_bytes:,} bytes."
    return ToolResult(status="success", data=text, images=(image,), spillable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResultsToolset:
    """Tools for stored results: search, line ranges, jq, statistics and images.

    `cap_tokens` is the lowest limit for a single result among the models that may read it. `vision` means that the
    model can read images. `query_seconds` limits the CPU time of a jq expression.
    """

    store: ResultStore
    counter: TokenCounter
    cap_tokens: int
    vision: bool
    query_seconds: int = 8

    @property
    def name(self) -> str:
        return TOOLSET_NAME

    @property
    def instructions(self) -> str:
        """Short instructions for the system prompt. Each pointer contains further instructions."""
        return (
            "A tool result that is too large is stored and replaced by a pointer with a preview. "
            f"Use {SEARCH_TOOL} first and {LINES_TOOL} around the matches. Never conclude from the preview alone."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools. The image tool is included only if the model can read images."""
        return (*_TEXT_TOOLS, *_IMAGE_TOOLS) if self.vision else _TEXT_TOOLS

    def describe(self, invocation: ToolInvocation) -> str:
        arguments = invocation.arguments
        result = arguments.get("result_id")
        match invocation.tool.name:
            case name if name == SEARCH_TOOL:
                return f"Search stored result {result} for {arguments.get('pattern')!r}"
            case name if name == LINES_TOOL:
                first, last = arguments.get("first_line", 1), arguments.get("last_line")
                return f"Read lines {first}-{last or '...'} of stored result {result}"
            case name if name == QUERY_TOOL:
                return f"Query stored result {result} with jq {arguments.get('expression')!r}"
            case name if name == STATS_TOOL:
                return f"Show statistics of stored result {result}"
            case _:
                return f"View stored image {arguments.get('result')}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run one of the tools. For an invalid id, pattern or range, returns an error result with the next step."""
        reader = Reader(
            store=self.store,
            handed_over=invocation.handed_over,
            counter=self.counter,
            cap_tokens=self.cap_tokens,
            vision=self.vision,
            query_seconds=self.query_seconds,
        )
        arguments = invocation.arguments
        try:
            match invocation.tool.name:
                case name if name == SEARCH_TOOL:
                    return await search_result(reader, arguments)
                case name if name == LINES_TOOL:
                    return await read_lines(reader, arguments)
                case name if name == QUERY_TOOL:
                    return await run_query(reader, arguments)
                case name if name == STATS_TOOL:
                    return await summarize(reader, arguments)
                case _:
                    return await _show_image(reader, arguments)
        except (ResultStoreError, ToolError) as error:
            return ToolResult(status="error", error=str(error), spillable=False)
