r"""Where a value ends: at its closing quote, at any depth of escaping, or with its indented block of YAML.

JSON inside of a JSON string escapes its quotes: `"`, then `\"`, then `\\\"`. At depth k a quote has 2^k - 1
backslashes. Blocks are read on the whole text, because one may be longer than a window.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTE: Final = re.compile(r"\\{0,7}[\"'`]")
_DOUBLE_QUOTED: Final = re.compile(r"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+")
# The lookbehind makes a run of backslashes start once.
_ESCAPED_QUOTE: Final = re.compile(r"(?<!\\)\\*+(\"|')|\n")
_SCAN_CHARACTERS: Final = 256 * 1024
BLOCK_SCALAR: Final = re.compile(r"[|>][+\-0-9]{0,2}[ \t]*(?:#[^\n]*)?(?=\r?\n)")
_MARKS: Final = " +-\t"


def closes(backslashes: int, depth: int) -> bool:
    """Whether a quote behind so many backslashes ends a string whose own quotes have `depth` of them."""
    return backslashes < depth or backslashes % (2 * depth + 2) == depth


def closing_quote(text: str, start: int, quote: str, limit: int) -> int:
    """Where the string that begins at `start`, after `quote`, ends: at its closing quote, its line's end or `limit`."""
    limit = min(limit, start + _SCAN_CHARACTERS)
    if quote == '"':
        match = _DOUBLE_QUOTED.match(text, start, limit)
        return match.end() if match else start
    if len(quote) == 1:
        return _closing_single(text, start, quote, limit)
    depth = len(quote) - 1
    for match in _ESCAPED_QUOTE.finditer(text, start, limit):
        if match[1] is None:
            return match.start()
        backslashes = match.end() - match.start() - 1
        if match[1] == quote[-1] and closes(backslashes, depth):
            return match.end() - 1 - min(backslashes, depth)
    return limit


def _closing_single(text: str, start: int, quote: str, limit: int) -> int:
    line_end = text.find("\n", start, limit)
    limit = limit if line_end < 0 else line_end
    if text.startswith(quote, start):
        return start
    position = text.find(quote, start, limit)
    # YAML doubles a quote inside of a string.
    while position >= 0 and quote == "'" and text.startswith("''", position):
        position = text.find(quote, position + 2, limit)
    return limit if position < 0 else position


def column_of(line: str) -> int:
    """Where the content starts. Dashes of lists and marks of a diff count as blanks; a blank line gives -1."""
    content = line.strip()
    if not content:
        return -1
    if content in {"-", "+"}:
        return len(line) - len(line.lstrip())
    return len(line) - len(line.lstrip(_MARKS))


def next_line(text: str, position: int) -> tuple[int, int]:
    """Start and end (without the line break) of the line after the one that holds `position`; -1, -1 at the end."""
    line_break = text.find("\n", position)
    if line_break < 0 or line_break + 1 >= len(text):
        return -1, -1
    start = line_break + 1
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


def lines_from(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Start and end of every line after the one that holds `position`."""
    start, end = next_line(text, position)
    while start >= 0:
        yield start, end
        start, end = next_line(text, end)


def indented_block(text: str, position: int, column: int) -> tuple[int, int]:
    """The lines after the one that holds `position` whose indentation is deeper than `column`.

    Start of the first and end of the last of them; equal when there are none.
    """
    first = last = -1
    for start, end in lines_from(text, position):
        line = text[start : min(end, start + 4096)]
        if line.strip():
            if len(line) - len(line.lstrip(" \t")) <= column:
                break
            first = start if first < 0 else first
            last = end
    return (first, last) if first >= 0 else (position, position)
