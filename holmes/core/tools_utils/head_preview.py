"""The beginning of a stored result, for policies that show that and nothing else. Called by the pointers.

A JSON array keeps its first items and stays valid JSON; any other text is cut where the room ends. Reads only about as
much of the text as it shows.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.previews import prefix_that_fits

if TYPE_CHECKING:
    from holmes.core.tokens import TokenCounter

_OPENING = re.compile(r"\s*\[\s*")
_BETWEEN = re.compile(r"\s*,\s*")
_CLOSING = "\n]"
_CLOSING_TOKENS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRoom:
    """How much may be shown. `characters_per_token` is a first guess that saves counting."""

    tokens: int
    characters: int | None
    characters_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning; `items` counts those of a JSON array, 0 for a text that was cut."""

    text: str
    items: int


def head_that_fits(text: str, room: HeadRoom, counter: TokenCounter) -> Head:
    """As much of the beginning of `text` as `room` has place for; empty when that is nothing."""
    most = len(text) if room.characters is None else max(0, room.characters)
    length = prefix_that_fits(text[:most], room.tokens, counter, characters_per_token=room.characters_per_token)
    if _OPENING.match(text[:length]) is not None:
        shorter = max(0, room.tokens - _CLOSING_TOKENS)
        inside = text[: min(length, most - len(_CLOSING))]
        inside = inside[: prefix_that_fits(inside, shorter, counter, characters_per_token=room.characters_per_token)]
        items, end = _first_items(inside)
        if items:
            return Head(text=inside[:end] + _CLOSING, items=items)
    return Head(text=text[:length], items=0)


def _first_items(text: str) -> tuple[int, int]:
    """How many items the beginning of an array holds whole, and where the last of them ends.

    No items when the array ends here: what is shortened goes on, so then it is a text like `[1] started`.
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
