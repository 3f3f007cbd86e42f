"""How full the model's window is, as a bar with a word for it (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import click

from holmes.cli.render.terminal import one_line
from holmes.cli.render.wording import counted, tokens

if TYPE_CHECKING:
    from holmes.core.upkeep import ContextUsage

_BAR_CELLS = 40
# (up to this share of the window, word, colour); 214 is the terminals' orange.
_LEVELS: tuple[tuple[float, str, str | int], ...] = (
    (0.50, "PEAK", "green"),
    (0.70, "GOOD", "yellow"),
    (0.85, "DEGRADING", 214),
)
_FULL: tuple[str, str | int] = ("POOR", "red")


def context_lines(usage: ContextUsage, *, color: bool) -> tuple[str, ...]:
    """The bar, what fills it, and when the conversation is compacted next."""
    word, shade = _level(usage.used_share)
    filled = min(_BAR_CELLS, round(usage.used_share * _BAR_CELLS))
    bar = "█" * filled + "░" * (_BAR_CELLS - filled)
    sizes = f"{tokens(usage.used_tokens)} of {tokens(usage.window_tokens)} tokens"
    head = f"{bar} {usage.used_share:.0%} {word}"
    parts = [f"{role} {tokens(count)}" for role, count in (*usage.by_role, ("tools", usage.schema_tokens)) if count]
    return (
        click.style(head, fg=shade) if color else head,
        f"{one_line(usage.model)}: {sizes} in {counted(usage.messages, 'message')}; {' · '.join(parts)}",
        f"policy {usage.policy}: {_when(usage)}; {tokens(usage.reserve_tokens)} are kept for the reply",
    )


def _when(usage: ContextUsage) -> str:
    """When the conversation is compacted next."""
    match usage.compaction:
        case "off":
            return "compaction is off, except when the provider refuses a request as too long"
        case "due":
            return "compacts before the next step"
        case "resting":
            return "just compacted, rests for some steps"
        case "later":
            after = f"compacts in {tokens(max(0, usage.trigger_tokens - usage.used_tokens))} tokens"
            return after if usage.messages_left is None else f"{after} or {counted(usage.messages_left, 'message')}"
        case _:
            assert_never(usage.compaction)


def _level(share: float) -> tuple[str, str | int]:
    """Below 50% PEAK, to 70% GOOD, to 85% DEGRADING, above that POOR."""
    if share < _LEVELS[0][0]:
        return _LEVELS[0][1:]
    return next((level[1:] for level in _LEVELS[1:] if share <= level[0]), _FULL)
