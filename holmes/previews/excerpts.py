"""Reads the lines of texts of any size, and cuts texts to both ends, a prefix that fits, or a clipped line.

Long texts are processed in pieces, so that no call blocks the interpreter for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.tokens import utf8_bytes
from holmes.values.expressions import expression
from holmes.values.texts import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.tokens import TokenCounter

_PIECE_CHARACTERS = 131_072
_LONG_LINE_CHARACTERS = 65_536
_EXCERPT_CHARACTERS = 1_500
_AROUND_CHARACTERS = 150
_MAX_EXCERPTS = 4
_ALARMING = ("panic", "fatal", "exception", "error", "fail", "refused", "denied", "killed", "out of memory")
_TERMINAL_CODE = expression(r"\x1b\[[0-9;]*[A-Za-z]")
DEFAULT_CHARACTERS_PER_TOKEN = 2.5
_HEAD_SHARE = 0.7


def lines_in_pieces(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield blocks of lines, each with the number of its first line.

    Numbers start at 1. A trailing line feed does not start another line.
    """
    start, number = 0, 1
    while start < len(text):
        end = text.rfind("\n", start, start + _PIECE_CHARACTERS)
        if end < 0:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            lines = [_long_line_excerpt(text, start, end)]
        else:
            lines = text[start:end].split("\n")
        yield number, lines
        number += len(lines)
        start = end + 1


def _long_line_excerpt(text: str, start: int, end: int) -> str:
    """Return line `text[start:end]`.

    A very long line is cut to its beginning and the text around its first severe words.
    """
    if end - start <= _LONG_LINE_CHARACTERS:
        return text[start:end]
    parts = [text[start : start + _EXCERPT_CHARACTERS]]
    seen = start + _EXCERPT_CHARACTERS
    for piece_start in range(seen, end, _LONG_LINE_CHARACTERS):
        piece_end = min(end, piece_start + _LONG_LINE_CHARACTERS + 20)
        from_here = max(seen, piece_start)
        lowered = text[from_here:piece_end].lower()
        found = min((place for word in _ALARMING if (place := lowered.find(word)) >= 0), default=-1)
        if found >= 0 and len(parts) <= _MAX_EXCERPTS:
            at = from_here + found
            left, seen = max(seen, at - _AROUND_CHARACTERS), at + _AROUND_CHARACTERS
            parts.append(f"[... character {left - start + 1:,}:] {text[left : min(seen, end)]}")
    parts.append(f"[line of {end - start:,} characters]")
    return " ".join(parts)


def count_lines(text: str) -> int:
    """Count the lines. A trailing line feed does not start another line."""
    if not text:
        return 0
    size = _PIECE_CHARACTERS * 8
    total = sum(text.count("\n", start, start + size) for start in range(0, len(text), size))
    return total + (not text.endswith("\n"))


def without_terminal_codes(line: str) -> str:
    """Remove colours and carriage returns from `line`."""
    return _TERMINAL_CODE.sub("", line).rstrip("\r") if "\x1b" in line or line.endswith("\r") else line


def clip_around(line: str, width: int, position: int = 0) -> str:
    """Clip `line` to about `width` characters.

    The beginning of the line is kept. If `position` is further right, the text around it is also kept.
    """
    if len(line) <= width:
        return line
    if position < width * 3 // 4:
        end = before_placeholder(line, width)
        return f"{line[:end]} [+{len(line) - end:,} characters]"
    head = before_placeholder(line, width // 3)
    left = after_placeholder(line, max(head, position - width // 4))
    right = before_placeholder(line, min(len(line), left + width - head))
    more = f" [+{len(line) - right:,} characters]" if right < len(line) else ""
    return f"{line[:head]} [...] {line[left:right]}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadAndTail:
    """Both ends of a text. `omitted_lines` is the number of lines between them, including lines that are cut."""

    head: str
    tail: str
    omitted_lines: int
    omitted_characters: int

    def render(self) -> str:
        """Return both ends. A line between them states the size of the omitted part."""
        if not self.omitted_characters:
            return self.head
        gap = f"[... {self.omitted_lines:,} lines, {self.omitted_characters:,} characters not shown ...]"
        return "\n".join(part for part in (self.head.rstrip("\n"), gap, self.tail.lstrip("\n")) if part)


def head_and_tail(
    text: str, cap_tokens: int, counter: TokenCounter, *, characters_per_token: float = DEFAULT_CHARACTERS_PER_TOKEN
) -> HeadAndTail:
    """Return the beginning and the end of `text` within `cap_tokens`, preferably cut at line ends.

    If the whole text fits, it is the head, and the tail is empty. `characters_per_token` is an initial estimate that
    saves token counting.
    """
    if utf8_bytes(text[: cap_tokens + 1]) <= cap_tokens:
        return HeadAndTail(head=text, tail="", omitted_lines=0, omitted_characters=0)
    head_cap = int(cap_tokens * _HEAD_SHARE)
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
    """Return the length of a prefix of `text` that fits `cap_tokens`.

    A longer prefix may fit too, because the search stops early to save token counting.
    """
    return before_placeholder(text, _length_that_fits(text, cap_tokens, counter, characters_per_token, from_end=False))


def suffix_that_fits(
    text: str, cap_tokens: int, counter: TokenCounter, *, characters_per_token: float = DEFAULT_CHARACTERS_PER_TOKEN
) -> int:
    """Return the length of a suffix of `text` that fits `cap_tokens`.

    A longer suffix may fit too, because the search stops early to save token counting.
    """
    length = _length_that_fits(text, cap_tokens, counter, characters_per_token, from_end=True)
    return len(text) - after_placeholder(text, len(text) - length)


def _length_that_fits(
    text: str, cap_tokens: int, counter: TokenCounter, characters_per_token: float, *, from_end: bool
) -> int:
    counter = counter.exact  # an estimate could exceed the limit
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
    """Return the end of the last whole line before `position`, or `position` if this would omit a fifth or more."""
    newline = text.rfind("\n", position - position // 5, position)
    return position if newline < 0 or position == len(text) else newline + 1


def _line_start(text: str, position: int) -> int:
    """Return the start of the next whole line, or `position` if this would omit a fifth or more."""
    newline = text.find("\n", position, position + (len(text) - position) // 5)
    return position if newline < 0 else newline + 1


def first_that_fits(options: tuple[str, ...], cap_tokens: int, counter: TokenCounter) -> str:
    """Return the first of `options` that fits `cap_tokens`. If no option fits, cuts the last option."""
    for option in options:
        if counter.fits(option, cap_tokens):
            return option
    return options[-1][: prefix_that_fits(options[-1], cap_tokens, counter)]


def clip_line(line: str, width: int) -> str:
    """Limit `line` to `width` characters, and append the number of omitted characters."""
    if len(line) <= width:
        return line
    end = before_placeholder(line, width)
    return f"{line[:end]} [... {len(line) - end:,} more characters in this line]"
