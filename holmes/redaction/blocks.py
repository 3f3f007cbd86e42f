"""Lines of YAML that belong together: the column of a line's content and the end of an indented block.

Called by the readers of values and of Secrets. Works on the whole text, because a block may be longer than a window.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_SCALAR: Final = re.compile(r"[|>][+\-0-9]{0,2}[ \t]*(?:#[^\n]*)?(?=\r?\n)")
_MARKS: Final = " +-\t"


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
