"""Cuts a text of any size into lists of lines, so that no single call holds the interpreter for long.

Called by the modules that read lines. A line above 64 KB is replaced by an excerpt: its beginning and what surrounds
the first severe words in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holmes.values.cutting import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_CHARACTERS = 131_072
LONG_LINE_CHARACTERS = 65_536
_EXCERPT_CHARACTERS = 1_500
_AROUND_CHARACTERS = 150
_MAX_EXCERPTS = 4
_ALARMING = ("panic", "fatal", "exception", "error", "fail", "refused", "denied", "killed", "out of memory")
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def lines_in_pieces(text: str) -> Iterator[tuple[int, list[str]]]:
    """Pairs of a first line number (counts from 1) and lines, in order. The last line end opens no further line."""
    start, number = 0, 1
    while start < len(text):
        end = text.rfind("\n", start, start + PIECE_CHARACTERS)
        if end < 0:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            lines = [long_line_excerpt(text, start, end)]
        else:
            lines = text[start:end].split("\n")
        yield number, lines
        number += len(lines)
        start = end + 1


def long_line_excerpt(text: str, start: int, end: int) -> str:
    """Line `text[start:end]`, or for a very long one its beginning and what surrounds its first alarming words."""
    if end - start <= LONG_LINE_CHARACTERS:
        return text[start:end]
    parts = [text[start : start + _EXCERPT_CHARACTERS]]
    seen = start + _EXCERPT_CHARACTERS
    for piece_start in range(seen, end, LONG_LINE_CHARACTERS):
        piece_end = min(end, piece_start + LONG_LINE_CHARACTERS + 20)
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
    """Lines as the tools over stored results count them: a line end at the very end opens no further line."""
    if not text:
        return 0
    size = PIECE_CHARACTERS * 8
    total = sum(text.count("\n", start, start + size) for start in range(0, len(text), size))
    return total + (not text.endswith("\n"))


def without_terminal_codes(line: str) -> str:
    """`line` without colours and carriage returns."""
    return _TERMINAL_CODE.sub("", line).rstrip("\r") if "\x1b" in line or line.endswith("\r") else line


def clip_around(line: str, width: int, position: int = 0) -> str:
    """At most about `width` characters of `line`: its beginning, and what surrounds `position` when that is further."""
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
