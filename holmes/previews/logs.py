"""Previews a log: rare and severe lines, then patterns that start or stop midway, then frequent patterns.

Every example is a numbered line of the log. Only long lines are clipped.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Layout, StructuredPreview, compose
from holmes.previews.excerpts import clip_around, without_terminal_codes
from holmes.previews.log_lines import clock_of
from holmes.previews.log_patterns import Pattern, read_patterns
from holmes.previews.severity import ERROR, FATAL, INFO, WARNING, severe_position
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.previews.log_patterns import LogPatterns
    from holmes.tokens import TokenCounter

_WORD = expression(r"[A-Za-z]{2,}")
_MAX_BLOCKS = 120
_MANY = 20
_LEVEL_NAMES = {FATAL: "fatal", ERROR: "error", WARNING: "warning", INFO: "info"}
_HEADINGS = (
    "Rare or severe ([count] line number| original line):",
    "Started or stopped midway:",
    "Most frequent:",
    "Last line:",
)


def log_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """Preview a log by its patterns."""
    log = read_patterns(text)
    blocks = _blocks(log, cap_tokens)
    layout = Layout(opening=_opening(log), headings=_HEADINGS, closing=lambda taken: _closing(log, taken))
    composed = compose(layout, blocks, cap_tokens, counter)
    shown = f"{composed.units:,} of {log.lines:,} lines as {len(log.patterns):,} patterns"
    return StructuredPreview(kind="logs", text=composed.text, shown=shown)


def _opening(log: LogPatterns) -> str:
    levels: Counter[str] = Counter()
    for pattern in log.patterns:
        if pattern.level is not None and not pattern.is_cause:
            levels[_LEVEL_NAMES[pattern.level]] += pattern.count
    ordered = [f"{levels[name]:,} {name}" for name in _LEVEL_NAMES.values() if levels[name]]
    first = min(log.patterns, key=lambda each: each.first_number).first_line if log.patterns else ""
    last = max(log.patterns, key=lambda each: each.last_number).last_line if log.patterns else ""
    span = f", {clock_of(first)} to {clock_of(last)}" if clock_of(first) and clock_of(last) else ""
    stated = f"; levels: {', '.join(ordered)}" if ordered else ""
    return f"Log, {log.lines:,} lines{span}, {len(log.patterns):,} patterns{stated}."


def _closing(log: LogPatterns, taken: tuple[Block, ...]) -> str:
    hidden = len(log.patterns) - len({block.order for block in taken if block.section < 3})
    return f"Not shown: repetitions and {hidden:,} more patterns." if hidden > 0 else "Not shown: repetitions."


def _blocks(log: LogPatterns, cap_tokens: int) -> list[Block]:
    width = max(160, min(400, cap_tokens * 2 // 3))
    common = _word_frequencies(log.patterns)
    scored = sorted(
        ((_value(pattern, log, common), pattern) for pattern in log.patterns),
        key=lambda item: (-item[0], item[1].first_number),
    )
    shown_causes: set[str] = set()
    blocks: list[Block] = []
    for order, (value, pattern) in enumerate(scored[:_MAX_BLOCKS]):
        if pattern.is_cause and pattern.first_line.strip() in shown_causes:
            continue
        if pattern.cause and pattern.severity > 0:
            shown_causes.add(pattern.cause)
        blocks.append(_block(pattern, value, order, width))
        blocks[-1] = _placed(blocks[-1], pattern, log)
    last = max(log.patterns, key=lambda each: each.last_number, default=None)
    if last is not None:
        line = clip_around(without_terminal_codes(last.last_line), width)
        blocks.append(Block(section=3, order=0, value=4.0, text=f"{last.last_number}| {line}", units=1))
    return blocks


def _placed(block: Block, pattern: Pattern, log: LogPatterns) -> Block:
    change = _change(pattern, log)
    if pattern.severity >= WARNING or pattern.count <= 3 or not change:
        section = 0 if pattern.severity > 0 or pattern.count <= 3 else 2
        note = f" ({change})" if change and section == 0 and pattern.count > 3 else ""
        return Block(
            section=section,
            order=block.order,
            value=block.value,
            text=block.text + note,
            units=block.units,
            instead=block.instead,
        )
    return Block(
        section=1, order=block.order, value=block.value + 4, text=f"{block.text} ({change})", units=1, instead=""
    )


def _block(pattern: Pattern, value: float, order: int, width: int) -> Block:
    line = without_terminal_codes(pattern.first_line)
    if pattern.count > _MANY:
        width = min(width, 180)
    short = width * 2 // 3
    position = severe_position(line) if len(line) > short else 0
    where = _where(pattern)
    text = f"{where}| {clip_around(line, width, position)}"
    instead = f"{where}| {clip_around(line, min(short, 150), position)}"
    if pattern.trace and pattern.severity > 0:
        text += _trace(pattern, width)
        if pattern.cause:
            instead += f"\n  {clip_around(pattern.cause, 140)}"
    return Block(section=0, order=order, value=value, text=text, units=1, instead=instead if instead != text else "")


def _trace(pattern: Pattern, width: int) -> str:
    """Return the first line and the innermost exception of the stack trace."""
    shown = [clip_around(pattern.trace[0].strip(), width // 2)]
    if pattern.cause and pattern.cause != pattern.trace[0].strip():
        shown.append(clip_around(pattern.cause, width))
    elif len(pattern.trace) > 1:
        shown.append(clip_around(pattern.trace[-1].strip(), width))
    left = len(pattern.trace) - len(shown)
    more = f"\n  [{left} more lines of this trace]" if left > 0 else ""
    return "".join(f"\n  {line}" for line in shown) + more


def _where(pattern: Pattern) -> str:
    if pattern.count == 1:
        return f"[1x] {pattern.first_number}"
    first, last = clock_of(pattern.first_line), clock_of(pattern.last_line)
    times = f" {first}-{last}" if first and last and first != last else ""
    return f"[{pattern.count:,}x to line {pattern.last_number}{times}] {pattern.first_number}"


def _change(pattern: Pattern, log: LogPatterns) -> str:
    """Return a note if a frequent pattern starts or stops far from the ends of the log, otherwise an empty string.

    The frequency of the pattern determines the minimum distance.
    """
    if pattern.count < 12 or log.lines < 50:
        return ""
    gap = max(1.0, (pattern.last_number - pattern.first_number) / (pattern.count - 1))
    after, before = log.lines - pattern.last_number, pattern.first_number - 1
    enough = max(8 * gap, log.lines * 0.08)
    if after > enough and before > enough:
        return f"only in lines {pattern.first_number}-{pattern.last_number}"
    if after > enough:
        return f"stops at line {pattern.last_number} of {log.lines}"
    return f"begins at line {pattern.first_number} of {log.lines}" if before > enough else ""


def _value(pattern: Pattern, log: LogPatterns, common: Counter[str]) -> float:
    rarity = 1 / (1 + math.log10(max(1, pattern.count)))
    severe = 12 * pattern.severity * (0.25 + 0.75 * rarity)
    words = _words(pattern)
    alone = sum(common[word] == 1 for word in words) / (len(words) + 2)
    novel = log.novelty * alone * rarity**2 * _unhurried(pattern, log)
    bulk = 4 * pattern.count / max(1, log.lines)
    change = 5.0 if _change(pattern, log) else 0.0
    return severe + novel + bulk + change + 0.5


def _unhurried(pattern: Pattern, log: LogPatterns) -> float:
    """Return a factor that halves the value of messages at the start of the log.

    Many of these messages occur only once, because programs write them at startup.
    """
    return 0.5 if pattern.first_number <= max(10, log.lines // 200) else 1.0


def _words(pattern: Pattern) -> set[str]:
    return {word.lower() for word in _WORD.findall(pattern.text[:300])}


def _word_frequencies(patterns: list[Pattern]) -> Counter[str]:
    frequencies: Counter[str] = Counter()
    for pattern in patterns:
        frequencies.update(_words(pattern))
    return frequencies
