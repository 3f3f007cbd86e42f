"""Formats text and numbers for a terminal, and draws the context bar.

Every untrusted string is sanitised here. A log line can contain sequences that move the cursor, set the window title or
hide text. These sequences never reach the terminal. Stored text and text for the model are not changed.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TextIO, assert_never

import click

from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.core.context_usage import ContextUsage
    from holmes.values.stats import RequestStats

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, clear
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: title, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # short escape sequences
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def sanitized(text: str) -> str:
    """Return `text` without terminal sequences, control characters and marks that reorder text.

    Keeps newlines and tabs. Windows line endings become newlines. Idempotent.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
    before = None
    while before != text:  # removing a sequence may create a new one from the text around it
        before, text = text, _ESCAPE_SEQUENCE.sub("", text)
    return _CONTROL_CHARACTER.sub("", text)


def one_line(text: str, limit: int = 300) -> str:
    """Return `text` sanitised, on one line of at most `limit` characters."""
    return shortened(" ".join(sanitized(text).split()), limit)


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def write_line(stream: TextIO | None, text: str) -> None:
    """Write a line and flush. Does nothing if the stream is closed."""
    if stream is not None:
        stream.write(f"{text}\n")
        stream.flush()


def tolerate_narrow_encodings() -> None:
    """Make the streams write `?` for characters that the terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def counted(count: int, noun: str) -> str:
    """Format a number with its noun, for example `1 step` or `3 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tokens(count: int) -> str:
    """Format a number of tokens, for example `950`, `23.4k` or `1.2M`."""
    if count < 1_000:
        return str(count)
    if count < 999_950:
        return f"{count / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"


def size(size_bytes: int) -> str:
    """Format a size, for example `950 B`, `1.2 KB` or `20 MB`."""
    value, units = float(size_bytes), ["B", "KB", "MB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1_000, units[1:]
    return f"{value:,.1f}".removesuffix(".0") + f" {units[0]}"


def duration(seconds: float) -> str:
    """Format a duration, for example `3.2 s`, `34 s` or `2 min 5 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def dollars(cost: float) -> str:
    """Format US dollars, for example `$0.012` or `$1.50`. Tiny amounts keep two significant digits."""
    if cost == 0 or cost >= 0.995:
        return f"${cost:.2f}"
    digits = 2
    while round(cost, digits) < 10 * 10**-digits and digits < 8:
        digits += 1
    return f"${cost:.{digits}f}"


def price(stats: RequestStats) -> str:
    """Return the cost of the calls with known prices."""
    if not stats.unpriced_calls:
        return dollars(stats.cost)
    if stats.cost == 0:
        return "price unknown"
    return f"at least {dollars(stats.cost)} (price of {counted(stats.unpriced_calls, 'call')} unknown)"


def usage(stats: RequestStats) -> str:
    """Return tokens and price, for example `23.4k tokens (18k cached) · $0.012`."""
    notes = [f"{tokens(stats.cached_tokens)} cached"] if stats.cached_tokens else []
    notes += ["estimated"] if stats.estimated else []
    suffix = f" ({', '.join(notes)})" if notes else ""
    about = "about " if stats.estimated else ""
    return f"{about}{tokens(stats.total_tokens)} tokens{suffix} · {price(stats)}"


def _compaction_share(stats: RequestStats) -> str:
    """Return the tokens and price of summaries, or `free` if no summary was written."""
    if not stats.compaction_tokens:
        return "free"
    share = f"{tokens(stats.compaction_tokens)} tokens · {dollars(stats.compaction_cost)} of the total"
    if len(stats.summaries) == 1:
        return f"{share}, by {stats.summaries[0].model}"
    models = ", ".join(f"{each.model} {usage(each.stats)}" for each in stats.summaries)
    return f"{share}: {models}" if models else share


def spending(stats: RequestStats) -> str:
    """Return tokens and price, with the share of compaction. Failed summaries are included."""
    if stats.compactions:
        return f"{usage(stats)} · {counted(stats.compactions, 'compaction')} ({_compaction_share(stats)})"
    if stats.compaction_tokens:
        return f"{usage(stats)} · failed summaries ({_compaction_share(stats)})"
    return usage(stats)


def cost_line(model: str, steps: int, tool_calls: int, stats: RequestStats, elapsed_seconds: float) -> str:
    """Return the cost line of an answer.

    Example: `gpt-4.1 · 5 steps · 9 tool calls · 23.4k tokens (18k cached) · $0.012 · 34 s`.
    """
    parts = [model] if model else []
    parts += [counted(steps, "step"), counted(tool_calls, "tool call"), spending(stats)]
    return " · ".join([*parts, duration(elapsed_seconds)])


_BAR_CELLS = 40
# The maximum used share, the word and the colour of each level. The colour 214 is orange.
_LEVELS: tuple[tuple[float, str, str | int], ...] = (
    (0.50, "PEAK", "green"),
    (0.70, "GOOD", "yellow"),
    (0.85, "DEGRADING", 214),
)
_FULL: tuple[str, str | int] = ("POOR", "red")


def context_lines(usage: ContextUsage, *, color: bool) -> tuple[str, ...]:
    """Return three lines: the bar, its composition, and the next compaction."""
    word, shade = _level(usage.used_share)
    filled = min(_BAR_CELLS, round(usage.used_share * _BAR_CELLS))
    bar = "█" * filled + "░" * (_BAR_CELLS - filled)
    sizes = f"{tokens(usage.used_tokens)} of {tokens(usage.window_tokens)} tokens"
    head = f"{bar} {usage.used_share:.0%} {word}"
    parts = [f"{role} {tokens(count)}" for role, count in (*usage.by_role, ("tools", usage.schema_tokens)) if count]
    return (
        click.style(head, fg=shade) if color else head,
        f"{one_line(usage.model)}: {sizes} in {counted(usage.messages, 'message')}; {' · '.join(parts)}",
        f"policy {usage.policy}: {_when(usage)}; {tokens(usage.reserve_tokens)} tokens are reserved for the reply",
    )


def _when(usage: ContextUsage) -> str:
    """Describe when the conversation is compacted next."""
    match usage.compaction:
        case "off":
            return "compaction is off, except after the provider rejects a request as too long"
        case "due":
            return "next compaction before the next step"
        case "resting":
            return "compacted recently; the next compaction runs some steps later"
        case "later":
            after = f"next compaction in {tokens(max(0, usage.trigger_tokens - usage.used_tokens))} tokens"
            return after if usage.messages_left is None else f"{after} or {counted(usage.messages_left, 'message')}"
        case _:
            assert_never(usage.compaction)


def _level(share: float) -> tuple[str, str | int]:
    """Return the name and the colour of the level: PEAK below 50%, GOOD up to 70%, DEGRADING up to 85%, else POOR."""
    if share < _LEVELS[0][0]:
        return _LEVELS[0][1:]
    return next((level[1:] for level in _LEVELS[1:] if share <= level[0]), _FULL)
