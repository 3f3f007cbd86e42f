"""Plain excerpts: the ends of a text, a prefix that fits, a clipped line.

Called by the spill, by the cuts of compaction, by the tools over stored results and by the structured previews. Every
result is bounded by real tokens; what is left out is counted, never summarised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.tokens import utf8_bytes
from holmes.values.cutting import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter

DEFAULT_CHARACTERS_PER_TOKEN = 2.5
HEAD_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadAndTail:
    """Both ends of a text. `omitted_lines` is what lies between them, a cut line included."""

    head: str
    tail: str
    omitted_lines: int
    omitted_characters: int

    def render(self) -> str:
        """The ends with a line between them that says how much is missing."""
        if not self.omitted_characters:
            return self.head
        gap = f"[... {self.omitted_lines:,} lines, {self.omitted_characters:,} characters not shown ...]"
        return "\n".join(part for part in (self.head.rstrip("\n"), gap, self.tail.lstrip("\n")) if part)


def head_and_tail(
    text: str, cap_tokens: int, counter: TokenCounter, *, characters_per_token: float = DEFAULT_CHARACTERS_PER_TOKEN
) -> HeadAndTail:
    """The beginning and the end of `text`, together at most `cap_tokens`, cut at line ends where that costs little.

    A text that fits comes back whole as the head. `characters_per_token` is a first guess that saves counting.
    """
    if utf8_bytes(text[: cap_tokens + 1]) <= cap_tokens:
        return HeadAndTail(head=text, tail="", omitted_lines=0, omitted_characters=0)
    head_cap = int(cap_tokens * HEAD_SHARE)
    head_end = line_end(text, prefix_that_fits(text, head_cap, counter, characters_per_token=characters_per_token))
    rest = text[max(head_end, len(text) - 8 * max(1, cap_tokens)) :]
    tail_length = suffix_that_fits(rest, cap_tokens - head_cap, counter, characters_per_token=characters_per_token)
    tail_start = _line_start(text, len(text) - min(tail_length, len(text) - head_end))
    return HeadAndTail(
        head=text[:head_end],
        tail=text[tail_start:],
        omitted_lines=text.count("\n", head_end, tail_start) + (0 if text[tail_start - 1 : tail_start] == "\n" else 1),
        omitted_characters=tail_start - head_end,
    )


def prefix_that_fits(
    text: str, cap_tokens: int, counter: TokenCounter, *, characters_per_token: float = DEFAULT_CHARACTERS_PER_TOKEN
) -> int:
    """How many characters from the start of `text` are at most `cap_tokens`. Not always the most that would fit."""
    return before_placeholder(text, _length_that_fits(text, cap_tokens, counter, characters_per_token, from_end=False))


def suffix_that_fits(
    text: str, cap_tokens: int, counter: TokenCounter, *, characters_per_token: float = DEFAULT_CHARACTERS_PER_TOKEN
) -> int:
    """How many characters at the end of `text` are at most `cap_tokens`. Not always the most that would fit."""
    length = _length_that_fits(text, cap_tokens, counter, characters_per_token, from_end=True)
    return len(text) - after_placeholder(text, len(text) - length)


def _length_that_fits(
    text: str, cap_tokens: int, counter: TokenCounter, characters_per_token: float, *, from_end: bool
) -> int:
    counter = counter.exact  # what is shown is within its cap whatever an estimate says
    length = min(len(text), max(0, int(cap_tokens * characters_per_token)))
    while length > 0:
        piece = text[len(text) - length :] if from_end else text[:length]
        if utf8_bytes(piece) <= cap_tokens:
            return length
        tokens = counter.count_text(piece)
        if tokens <= cap_tokens:
            return length
        length = min(length - 1, int(length * cap_tokens / tokens * 0.95))
    return 0


def line_end(text: str, position: int) -> int:
    """`position`, or the end of the last whole line before it when that loses less than a fifth."""
    newline = text.rfind("\n", position - position // 5, position)
    return position if newline < 0 or position == len(text) else newline + 1


def _line_start(text: str, position: int) -> int:
    """`position`, or the start of the first whole line after it when that loses less than a fifth."""
    newline = text.find("\n", position, position + (len(text) - position) // 5)
    return position if newline < 0 else newline + 1


def first_that_fits(options: tuple[str, ...], cap_tokens: int, counter: TokenCounter) -> str:
    """The first of `options` of at most `cap_tokens`; the last one is cut if it must be."""
    for option in options:
        if counter.fits(option, cap_tokens):
            return option
    return options[-1][: prefix_that_fits(options[-1], cap_tokens, counter)]


def clip_line(line: str, width: int) -> str:
    """`line` with at most `width` characters and a note of how many follow."""
    if len(line) <= width:
        return line
    end = before_placeholder(line, width)
    return f"{line[:end]} [... {len(line) - end:,} more characters in this line]"
