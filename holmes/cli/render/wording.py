"""Numbers as people read them, and the line that says what an answer cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.values.stats import RequestStats


def counted(count: int, noun: str) -> str:
    """`1 step`, `3 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tokens(count: int) -> str:
    """`950`, `23.4k`, `1.2M`."""
    if count < 1_000:
        return str(count)
    if count < 999_950:
        return f"{count / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"


def size(size_bytes: int) -> str:
    """`950 B`, `1.2 KB`, `20 MB`."""
    value, units = float(size_bytes), ["B", "KB", "MB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1_000, units[1:]
    return f"{value:,.1f}".removesuffix(".0") + f" {units[0]}"


def duration(seconds: float) -> str:
    """`3.2 s`, `34 s`, `2 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def dollars(cost: float) -> str:
    """`$0.012`, `$1.50`; tiny amounts keep two digits."""
    if cost == 0 or cost >= 0.995:
        return f"${cost:.2f}"
    digits = 2
    while round(cost, digits) < 10 * 10**-digits and digits < 8:
        digits += 1
    return f"${cost:.{digits}f}"


def price(stats: RequestStats) -> str:
    """What the calls cost, as far as their prices are known."""
    if not stats.unpriced_calls:
        return dollars(stats.cost)
    if stats.cost == 0:
        return "price unknown"
    return f"at least {dollars(stats.cost)} (price of {counted(stats.unpriced_calls, 'call')} unknown)"


def usage(stats: RequestStats) -> str:
    """Tokens and price: `23.4k tokens (18k cached) · $0.012`."""
    notes = [f"{tokens(stats.cached_tokens)} cached"] if stats.cached_tokens else []
    notes += ["estimated"] if stats.estimated else []
    suffix = f" ({', '.join(notes)})" if notes else ""
    about = "about " if stats.estimated else ""
    return f"{about}{tokens(stats.total_tokens)} tokens{suffix} · {price(stats)}"


def _compaction_share(stats: RequestStats) -> str:
    """What of tokens and price went into summaries; nothing did when older messages were only put away."""
    if not stats.compaction_tokens:
        return "free"
    share = f"{tokens(stats.compaction_tokens)} tokens · {dollars(stats.compaction_cost)} of it"
    if len(stats.summaries) == 1:
        return f"{share} by {stats.summaries[0].model}"
    models = ", ".join(f"{each.model} {usage(each.stats)}" for each in stats.summaries)
    return f"{share}: {models}" if models else share


def spending(stats: RequestStats) -> str:
    """Tokens and price, and what of them compaction took, also where its summaries were of no use."""
    if stats.compactions:
        return f"{usage(stats)} · {counted(stats.compactions, 'compaction')} ({_compaction_share(stats)})"
    if stats.compaction_tokens:
        return f"{usage(stats)} · summaries that failed ({_compaction_share(stats)})"
    return usage(stats)


def cost_line(model: str, steps: int, tool_calls: int, stats: RequestStats, elapsed_seconds: float) -> str:
    """The last line of an answer: `gpt-4.1 · 5 steps · 9 tool calls · 23.4k tokens (18k cached) · $0.012 · 34 s`."""
    parts = [model] if model else []
    parts += [counted(steps, "step"), counted(tool_calls, "tool call"), spending(stats)]
    return " · ".join([*parts, duration(elapsed_seconds)])
