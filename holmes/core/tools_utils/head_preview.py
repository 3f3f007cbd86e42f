"""Previews that show only the beginning of a stored result.

A JSON array keeps its first items and stays valid JSON. Other text ends with the last line that fits, or with the last
character if the line is very long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews import line_end, prefix_that_fits
from holmes.previews.excerpts import count_lines
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.tokens import TokenCounter

_OPENING = expression(r"\s*\[\s*")
_BETWEEN = expression(r"\s*,\s*")
_CLOSING = "\n]"
_CLOSING_TOKENS = 2
_PIECE_CHARACTERS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRoom:
    """The limits of a preview. `characters_per_token` is an initial estimate, so that tokens are counted less often."""

    tokens: int
    characters: int | None
    characters_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of a text. `items` is the number of JSON array items in it, or 0 for other text."""

    text: str
    items: int

    def shown_of(self, whole: str) -> str:
        """Return the shown share of `whole` in items, lines or characters, for example `showing 200 of 5,000 items`."""
        total = _count_items(whole) if self.items else 0
        if total >= self.items > 0:
            return f"showing {self.items:,} of {total:,} items"
        lines = self.text.count("\n")
        if lines and not self.items:
            return f"showing {lines:,} of {count_lines(whole):,} lines"
        return f"showing {len(self.text):,} of {len(whole):,} characters"


def head_that_fits(text: str, room: HeadRoom, counter: TokenCounter) -> Head:
    """Return the beginning of `text` that fits within `room`. The beginning can be empty."""
    array = _OPENING.match(text) is not None  # the closing bracket also needs space
    most = len(text) if room.characters is None else max(0, room.characters - len(_CLOSING) * array)
    tokens = max(0, room.tokens - _CLOSING_TOKENS * array)
    length = prefix_that_fits(text[:most], tokens, counter, characters_per_token=room.characters_per_token)
    if array:
        items, end = _first_items(text[:length])
        if items:
            return Head(text=text[:end] + _CLOSING, items=items)
    return Head(text=text[: line_end(text, length)], items=0)


def _count_items(text: str) -> int:
    """Return the number of items in a JSON array, or 0 if the array is incomplete."""
    import ijson  # imported here, because only oversized results need it

    events = ijson.sendable_list()
    parser = ijson.items_coro(events, "item")
    items = 0
    try:
        for start in range(0, len(text), _PIECE_CHARACTERS):
            parser.send(text[start : start + _PIECE_CHARACTERS].encode("utf-8", "replace"))
            items += len(events)
            del events[:]
        parser.close()
    except (ijson.JSONError, ValueError):
        return 0
    return items + len(events)


def _first_items(text: str) -> tuple[int, int]:
    """Return the number of complete items at the beginning of an array, and the end position of the last one.

    `text` is the beginning of a longer text. If it contains a complete array, that array is only part of a line such as
    `[1] started`, and the function returns 0 and 0.
    """
    opening = _OPENING.match(text)
    position = opening.end() if opening is not None else len(text)
    decoder = json.JSONDecoder()
    items = end = 0
    while position < len(text):
        try:
            _, after = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        between = _BETWEEN.match(text, after)
        if between is None:
            return (0, 0) if text[after:].lstrip()[:1] == "]" else (items, end)
        items, end, position = items + 1, after, between.end()
    return items, end
