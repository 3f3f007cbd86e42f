"""Chooses the system prompt and the tools that suit a model.

A model with a small context window gets a short system prompt, the essential tools, and other tools that fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.prompts import render_prompt
from holmes.settings.model import BUILTIN_MODEL
from holmes.toolsets.wrappers import Selected
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.messages import SystemMessage
from holmes.values.tools import LINES_TOOL, SEARCH_TOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.model_chain import LoopModel
    from holmes.settings.settings import Settings
    from holmes.tokens import TokenCounter
    from holmes.values.tools import Toolset

_SMALL_WINDOW_TOKENS: Final = 32_000
SHORT_FORM_TOKENS: Final = 2_500
"""Maximum size of the short system prompt with the schemas of all offered tools."""
_SHORT_FORM_SHARE: Final = 0.25
"""Maximum share of the context window for the short system prompt and these schemas."""
_MOST_ESSENTIAL: Final = (
    FIRST_LOOK_TOOL,
    "kubernetes_logs",
    "kubectl_describe",
    "kubectl_get",
    SEARCH_TOOL,
    LINES_TOOL,
    "kubectl_events",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """The system prompt and the tools of a model. `warnings` name the omitted tools."""

    system: SystemMessage
    toolsets: tuple[Toolset, ...]
    warnings: tuple[str, ...] = ()


def outfit_of(
    settings: Settings,
    model: LoopModel,
    toolsets: tuple[Toolset, ...],
    unavailable: tuple[str, ...],
    *,
    first_look: bool,
) -> Outfit:
    """Choose the full form or the short form. `first_look` is true if conversations get a first look.

    The built-in rules read no prompt.
    """
    if model.model.name == BUILTIN_MODEL:
        return Outfit(system=SystemMessage(text=""), toolsets=toolsets)
    if not _wants_short_form(settings, model):
        instructed = [toolset for toolset in toolsets if toolset.instructions]
        variables = {"toolsets": instructed, "unavailable": unavailable, "first_look": first_look}
        system = SystemMessage(text=render_prompt("system", {**_place(settings, model), **variables}))
        return Outfit(system=system, toolsets=toolsets)
    text, counter = render_prompt("system_short", _place(settings, model)), model.make_counter()
    room_tokens = min(SHORT_FORM_TOKENS, int(model.model.limits.context_window_tokens * _SHORT_FORM_SHARE))
    offered = fit_tools(toolsets, room_tokens - counter.count_text(text), counter)
    return Outfit(system=SystemMessage(text=text), toolsets=offered, warnings=_left_out(model, toolsets, offered))


def fit_tools(toolsets: Sequence[Toolset], room_tokens: int, counter: TokenCounter) -> tuple[Toolset, ...]:
    """Select the tools with schemas that fit in `room_tokens`, the essential tools first."""
    ranks = {name: rank for rank, name in enumerate(_MOST_ESSENTIAL)}
    kept: set[str] = set()
    tools = [tool for toolset in toolsets for tool in toolset.tools]
    for tool in sorted(tools, key=lambda tool: ranks.get(tool.name, len(ranks))):
        size_tokens = counter.count_tools((tool,))
        if size_tokens <= room_tokens:
            kept.add(tool.name)
            room_tokens -= size_tokens
    if len(kept) == len(tools):
        return tuple(toolsets)
    offered = (Selected(toolset, frozenset(kept)) for toolset in toolsets)
    return tuple(toolset for toolset in offered if toolset.tools)


def _left_out(model: LoopModel, toolsets: Sequence[Toolset], offered: Sequence[Toolset]) -> tuple[str, ...]:
    kept = {tool.name for toolset in offered for tool in toolset.tools}
    names = [tool.name for toolset in toolsets for tool in toolset.tools if tool.name not in kept]
    if not names:
        return ()
    omitted = f"{model.model.name!r} gets the short prompt for small models, without these tools: {', '.join(names)}"
    return (f"{omitted}; `prompt: full` in the configuration offers all tools",)


def _wants_short_form(settings: Settings, model: LoopModel) -> bool:
    form = settings.investigation.prompt
    small = model.model.limits.context_window_tokens <= _SMALL_WINDOW_TOKENS
    return form == "short" or (form == "auto" and small)


def _place(settings: Settings, model: LoopModel) -> dict[str, object]:
    investigation = settings.investigation
    return {
        "cluster_name": investigation.cluster_name,
        "context_name": investigation.kube_context,
        "namespace": investigation.namespace,
        "additions": investigation.system_prompt_additions,
        "citations": model.policy.evidence.citations and settings.storage.results_enabled,
    }
