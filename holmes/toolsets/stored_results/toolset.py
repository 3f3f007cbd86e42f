"""The toolset: which tools are offered, what people read of a call, and which file runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.toolsets.stored_results.image import show_image
from holmes.toolsets.stored_results.lines import read_lines
from holmes.toolsets.stored_results.query import run_query
from holmes.toolsets.stored_results.reader import Reader
from holmes.toolsets.stored_results.search import search_result
from holmes.toolsets.stored_results.stats import summarize
from holmes.toolsets.stored_results.tools import IMAGE_TOOLS, TEXT_TOOLS, TOOLSET_NAME
from holmes.values.errors import ResultStoreError, ToolError
from holmes.values.tools import LINES_TOOL, QUERY_TOOL, SEARCH_TOOL, STATS_TOOL, ToolResult

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter
    from holmes.values.tools import ResultStore, Tool, ToolInvocation


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResultsToolset:
    """Search, line ranges, jq, statistics and pictures over a store.

    `cap_tokens` is the cap of a single result (T2), the smallest of the models that may read the answer;
    `vision` says whether the model can look at pictures; `query_seconds` is how long a jq expression may have the
    processor.
    """

    store: ResultStore
    counter: TokenCounter
    cap_tokens: int
    vision: bool
    query_seconds: int = 8

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
        return (*TEXT_TOOLS, *IMAGE_TOOLS) if self.vision else TEXT_TOOLS

    def describe(self, invocation: ToolInvocation) -> str:
        """One line for people."""
        arguments = invocation.arguments
        result = arguments.get("result_id")
        match invocation.tool.name:
            case name if name == SEARCH_TOOL:
                return f"search stored result {result} for {arguments.get('pattern')!r}"
            case name if name == LINES_TOOL:
                first, last = arguments.get("first_line", 1), arguments.get("last_line")
                return f"read lines {first}-{last or '...'} of stored result {result}"
            case name if name == QUERY_TOOL:
                return f"query stored result {result} with jq {arguments.get('expression')!r}"
            case name if name == STATS_TOOL:
                return f"summarize stored result {result}"
            case _:
                return f"look at stored picture {arguments.get('result')}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run one of the tools. A wrong id, pattern or range is an error result that says what to do."""
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
                    return await show_image(reader, arguments)
        except (ResultStoreError, ToolError) as error:
            return ToolResult(status="error", error=str(error), spillable=False)
