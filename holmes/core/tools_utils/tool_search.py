"""The search for tools that requests do not contain.

The list of tools in requests is fixed, because it is the beginning of the cached prefix. A model reaches all other
tools, also those that an MCP server offers since, with `find_tools` and `use_tool`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ToolError
from holmes.values.expressions import expression
from holmes.values.on_demand import FIND_TOOLS, USE_TOOL
from holmes.values.texts import excerpt
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.values.tools import Tool, ToolInvocation, Toolset, WrapperToolset

FINDER_NAME: Final = "holmes/tools"
_MOST_FOUND: Final = 6
_LONGEST_INSTRUCTIONS: Final = 1_500
_NAME_WEIGHT: Final = 3
_WORD: Final = expression(r"[a-z]+|\d+")
_SHORTEST_WORD: Final = 3
_LONGEST_STEM: Final = 6
"""`certificate` and `certificates`, `scaled` and `scaling` are one word: their first letters count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedTool:
    """A tool and the toolset that runs it."""

    tool: Tool
    toolset: WrapperToolset


def stems(*texts: str) -> frozenset[str]:
    """Return the words of the texts in the form in which they are compared."""
    return frozenset(
        word[:_LONGEST_STEM] for word in _WORD.findall(" ".join(texts).lower()) if len(word) >= _SHORTEST_WORD
    )


def name_stems(toolset: Toolset) -> frozenset[str]:
    """Return the words in the names of a toolset and its tools."""
    return stems(toolset.name, *(tool.name for tool in toolset.tools))


def found_tools(owned: Sequence[OwnedTool], query: str) -> tuple[OwnedTool, ...]:
    """Return the tools that fit the words of `query`, the best first. Rare words count more than frequent ones."""
    wanted = stems(query)
    spoken = [(each, _weights(each)) for each in owned]
    frequency = Counter(stem for _, weights in spoken for stem in weights)
    scored = [
        (sum(weights[stem] * math.log(1 + len(spoken) / frequency[stem]) for stem in wanted & weights.keys()), each)
        for each, weights in spoken
    ]
    best = sorted(scored, key=lambda each: -each[0])
    least = best[0][0] / 3 if best else 0.0
    return tuple(each for score, each in best[:_MOST_FOUND] if score > 0 and score >= least)


@dataclass(frozen=True, slots=True)
class ToolFinder:
    """The toolset of `find_tools`, which searches the `current` tools.

    The executor runs `use_tool`, because approval, redaction and limits are those of the called tool.
    """

    current: Callable[[], Awaitable[Sequence[OwnedTool]]]

    @property
    def name(self) -> str:
        return FINDER_NAME

    @property
    def instructions(self) -> str:
        return ""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (FIND_TOOLS, USE_TOOL)

    def describe(self, invocation: ToolInvocation) -> str:
        query = text_argument(invocation.arguments, "query")
        return f"Find tools for {query!r}" if query else "List all tools"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Return the names and schemas of the tools that fit, or the names of all tools."""
        if invocation.tool.name == USE_TOOL.name:
            raise ToolError('The arguments of use_tool are not valid. Expected: {"name": "…", "arguments": {…}}.')
        owned = await self.current()
        query = text_argument(invocation.arguments, "query")
        if found := found_tools(owned, query):
            return ToolResult(status="success", data=_schemas_text(found))
        note = f"No tool fits {query!r}. All tools:\n" if query else ""
        return ToolResult(status="success", data=note + _names_text(owned))


def _names_text(owned: Sequence[OwnedTool]) -> str:
    by_toolset: dict[str, list[str]] = {}
    for each in owned:
        by_toolset.setdefault(each.toolset.name, []).append(each.tool.name)
    return "\n".join(f"{toolset}: {', '.join(names)}" for toolset, names in by_toolset.items())


def _weights(owned: OwnedTool) -> dict[str, int]:
    """Return the words of a tool with their weights. A word counts once, so that long descriptions gain nothing."""
    described = stems(owned.tool.description, owned.toolset.instructions[:300])
    named = stems(owned.toolset.name, owned.tool.name)
    return {**dict.fromkeys(described, 1), **dict.fromkeys(named, _NAME_WEIGHT)}


def _schemas_text(found: Sequence[OwnedTool]) -> str:
    lines: list[str] = []
    told: set[str] = set()
    for each in found:
        tool, toolset = each.tool, each.toolset
        lines.append(f"## {tool.name} (toolset {toolset.name})\n{tool.description}")
        lines.append(f"parameters: {json.dumps(tool.parameters_json_schema(), ensure_ascii=False)}")
        if toolset.instructions and toolset.name not in told:
            lines.append(f"about {toolset.name}: {excerpt(toolset.instructions, _LONGEST_INSTRUCTIONS)}")
        told.add(toolset.name)
    return "\n".join(lines)
