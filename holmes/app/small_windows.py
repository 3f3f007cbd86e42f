"""Leaves out tools where their schemas would fill a small window (context.md, section 2). Called by `holmes.app`.

What is looked at first in every investigation stays; other tools follow, in their order, while there is room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.toolsets.selected import Selected
from holmes.values.tools import LINES_TOOL, SEARCH_TOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.tokens import TokenCounter
    from holmes.values.tools import Toolset

SMALL_WINDOW_TOKENS: Final = 16_000
SCHEMA_SHARE: Final = 0.12
ESSENTIAL_TOOLS: Final = frozenset(
    {"kubectl_get", "kubectl_describe", "kubectl_events", "kubernetes_logs", SEARCH_TOOL, LINES_TOOL}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTools:
    """The toolsets to offer, and the names of the tools that are left out."""

    toolsets: tuple[Toolset, ...]
    left_out: tuple[str, ...] = ()


def fit_tools(toolsets: Sequence[Toolset], window_tokens: int, counter: TokenCounter) -> FittedTools:
    """All of `toolsets` for a window of 16,000 tokens and more; else the essential tools and what 12% have room for."""
    if window_tokens >= SMALL_WINDOW_TOKENS:
        return FittedTools(toolsets=tuple(toolsets))
    tools = [tool for toolset in toolsets for tool in toolset.tools]
    room_tokens = int(window_tokens * SCHEMA_SHARE)
    kept: set[str] = set()
    for tool in sorted(tools, key=lambda tool: tool.name not in ESSENTIAL_TOOLS):
        size_tokens = counter.count_tools((tool,))
        if tool.name in ESSENTIAL_TOOLS or size_tokens <= room_tokens:
            kept.add(tool.name)
            room_tokens -= size_tokens
    if len(kept) == len(tools):
        return FittedTools(toolsets=tuple(toolsets))
    names = frozenset(kept)
    offered = (Selected(toolset, names) for toolset in toolsets)
    return FittedTools(
        toolsets=tuple(toolset for toolset in offered if toolset.tools),
        left_out=tuple(tool.name for tool in tools if tool.name not in names),
    )
