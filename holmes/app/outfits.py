"""Chooses the system prompt and the tools that suit a model and a question.

All tools that a question does not need are left to `find_tools`, so that the prompt with all schemas stays small,
whatever is configured. A conversation keeps its tools, because they begin the cached prefix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.core.tools_utils.tool_search import name_stems, stems
from holmes.prompts import render_prompt
from holmes.settings.model import BUILTIN_MODEL
from holmes.tokens import tool_schema_text, utf8_bytes
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.messages import SystemMessage
from holmes.values.on_demand import FIND_TOOLS, USE_TOOL
from holmes.values.texts import excerpt
from holmes.values.tools import LINES_TOOL, SEARCH_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holmes.core.model_chain import LoopModel
    from holmes.settings.settings import Settings
    from holmes.tokens import TokenCounter
    from holmes.values.tools import Tool, Toolset

_SMALL_WINDOW_TOKENS: Final = 32_000
FULL_FORM_TOKENS: Final = 8_000
"""Maximum size of the system prompt with the schemas of all offered tools, without the user's own additions."""
SHORT_FORM_TOKENS: Final = 2_500
"""The same for the short system prompt."""
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
_SHORTEST_NAME: Final = 4
"""Shorter words of a question, such as `app`, say too little about the toolset that it needs."""
_LEAST_BYTES_PER_TOKEN: Final = 2.5
"""Prompts and schemas have about four bytes per token, and also in other scripts hardly fewer than this."""
_MOST_NAMED: Final = 30
_MOST_UNAVAILABLE: Final = 12
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """The system prompt and the names of the tools in requests. If `tools` is None, requests contain all tools."""

    system: SystemMessage
    tools: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutfitParts:
    """The inputs of the choice.

    `on_demand` are the names of the toolsets that only some questions need. `changing` is true if tools may be added
    during a run. `unavailable` are lines about toolsets that cannot run. `first_look` is true if conversations get one.
    """

    settings: Settings
    model: LoopModel
    toolsets: tuple[Toolset, ...]
    on_demand: frozenset[str]
    changing: bool
    unavailable: tuple[str, ...]
    first_look: bool


@dataclass(slots=True)
class Outfits:
    """Makes the outfits of one model. Questions that need the same toolsets share one outfit."""

    parts: OutfitParts
    _made: dict[frozenset[str], Outfit] = field(default_factory=dict)

    def of(self, question: str) -> Outfit:
        """Return the outfit for a conversation that begins with `question`."""
        if self.parts.model.model.name == BUILTIN_MODEL:  # the rules read no prompt
            return Outfit(system=SystemMessage(text=""))
        needed = _needed(self.parts, question)
        if needed not in self._made:
            self._made[needed] = _outfit(self.parts, needed)
        return self._made[needed]


def _needed(parts: OutfitParts, question: str) -> frozenset[str]:
    """Return the toolsets on demand of which the question has a word that names them or one of their tools."""
    if not parts.on_demand:
        return frozenset()
    usual = {stem for each in parts.toolsets if each.name not in parts.on_demand for stem in name_stems(each)}
    asked = {stem for stem in stems(question) - usual if len(stem) >= _SHORTEST_NAME}
    return frozenset(each.name for each in parts.toolsets if each.name in parts.on_demand and asked & name_stems(each))


def _outfit(parts: OutfitParts, needed: frozenset[str]) -> Outfit:
    model = parts.model.model
    short = _wants_short_form(parts.settings, parts.model)
    template = "system_short" if short else "system"
    room_tokens = FULL_FORM_TOKENS
    if short:
        room_tokens = min(SHORT_FORM_TOKENS, int(model.limits.context_window_tokens * _SHORT_FORM_SHARE))
    variables: dict[str, object] = {
        **_place(parts.settings, parts.model),
        "unavailable": _few(parts.unavailable, _MOST_UNAVAILABLE),
        "first_look": parts.first_look,
    }
    everything = {tool.name for toolset in parts.toolsets for tool in toolset.tools}
    bare = render_prompt(template, {**variables, "toolsets": (), "more": _named(parts.toolsets), "additions": None})
    wanted = [each for each in parts.toolsets if each.name not in parts.on_demand or each.name in needed]
    chosen = _fitting(parts, wanted, bare, room_tokens, instructed=not short)
    if chosen == everything and not parts.changing:
        return Outfit(system=_system(template, variables, parts.toolsets, ()))
    chosen = _fitting(parts, wanted, bare, room_tokens, (FIND_TOOLS, USE_TOOL), instructed=not short)
    offered = [each for each in parts.toolsets if any(tool.name in chosen for tool in each.tools)]
    more = [each for each in parts.toolsets if any(tool.name not in chosen for tool in each.tools)]
    return Outfit(system=_system(template, variables, offered, _named(more)), tools=chosen)


def _system(
    template: str, variables: Mapping[str, object], offered: Sequence[Toolset], more: Sequence[str]
) -> SystemMessage:
    instructed = [toolset for toolset in offered if toolset.instructions]
    return SystemMessage(text=render_prompt(template, {**variables, "toolsets": instructed, "more": more}))


def _fitting(
    parts: OutfitParts,
    wanted: Sequence[Toolset],
    bare: str,
    room_tokens: int,
    others: tuple[Tool, ...] = (),
    *,
    instructed: bool,
) -> frozenset[str]:
    """Select the tools that fit in `room_tokens` beside the prompt `bare` and the tools `others`.

    Loading the tokenizer takes as long as a tenth of all imports, so it decides only if the number of bytes does not.
    """
    tools = [tool for toolset in wanted for tool in toolset.tools]
    texts = [bare, *map(tool_schema_text, (*tools, *others)), *(each.instructions for each in wanted if instructed)]
    if sum(map(utf8_bytes, texts)) <= room_tokens * _LEAST_BYTES_PER_TOKEN:
        return frozenset(tool.name for tool in tools)
    counter = parts.model.make_counter()
    room_tokens -= counter.count_text(bare) + (counter.count_tools(others) if others else 0)
    return fit_tools(wanted, room_tokens, counter, instructed=instructed)


def fit_tools(
    toolsets: Sequence[Toolset], room_tokens: int, counter: TokenCounter, *, instructed: bool
) -> frozenset[str]:
    """Select the tools with schemas that fit in `room_tokens`, the essential tools first.

    If `instructed` is true, the first tool of a toolset also takes the room of its instructions.
    """
    ranks = {name: rank for rank, name in enumerate(_MOST_ESSENTIAL)}
    kept: set[str] = set()
    told: set[str] = set()
    tools = [(tool, toolset) for toolset in toolsets for tool in toolset.tools]
    for tool, toolset in sorted(tools, key=lambda each: ranks.get(each[0].name, len(ranks))):
        size_tokens = counter.count_tools((tool,))
        if instructed and toolset.name not in told:
            size_tokens += counter.count_text(f"\n\n# Toolset {toolset.name}\n{toolset.instructions}")
        if size_tokens <= room_tokens:
            kept.add(tool.name)
            told.add(toolset.name)
            room_tokens -= size_tokens
    return frozenset(kept)


def _named(toolsets: Iterable[Toolset]) -> tuple[str, ...]:
    return _few(tuple(toolset.name for toolset in toolsets), _MOST_NAMED)


def _few(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Return the first of `lines`, shortened, and how many more there are."""
    shown = tuple(excerpt(line, _LONGEST_REASON) for line in lines[:most])
    return shown if len(lines) <= most else (*shown, f"{len(lines) - most} more")


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
