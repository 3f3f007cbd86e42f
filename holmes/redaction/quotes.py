r"""Finds the end of a quoted value, at any depth of escaping. Called by everything that reads JSON in texts.

JSON inside of a JSON string escapes its quotes: `"`, then `\"`, then `\\\"`. At depth k a quote has 2^k - 1
backslashes.
"""

from __future__ import annotations

import re
from typing import Final

QUOTE: Final = re.compile(r"\\{0,7}[\"'`]")
_DOUBLE_QUOTED: Final = re.compile(r"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+")
# The lookbehind makes a run of backslashes start once.
_ESCAPED_QUOTE: Final = re.compile(r"(?<!\\)\\*+(\"|')|\n")
_SCAN_CHARACTERS: Final = 256 * 1024


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
