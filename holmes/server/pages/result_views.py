"""Outputs of tools as lines that the page shows: a bounded window around the cited lines.

Lines are numbered as citations number them (`NumberedText`). Nothing here reads the store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.evidence import NumberedText
from holmes.server.pages.page_format import count, visible
from holmes.values.texts import before_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW_LINES: Final = 400
_LINES_BEFORE = 30
_LINE_CHARACTERS = 2_000
_CITED_LINE_CHARACTERS = 20_000
_WINDOW_CHARACTERS = 400_000
_MAX_CITED_LINES = 2_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """One line. `cut` says how many characters of it are not shown; empty when all are."""

    number: int
    text: str
    cited: bool = False
    cut: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWindow:
    """The lines that one page shows. `earlier` and `later` are the first lines of the pages around it."""

    lines: tuple[LineView, ...]
    total_lines: int
    first: int
    last: int
    earlier: int | None
    later: int | None


def lines_range(text: str | None) -> tuple[int, int] | None:
    """The lines that an address names, `12` or `12-18`; None when it says nothing that makes sense."""
    match = _RANGE.fullmatch(text or "")
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last else None


def cited_range(text: str | None) -> tuple[int, int] | None:
    """As `lines_range`, but not more lines than a page marks."""
    found = lines_range(text)
    return (found[0], min(found[1], found[0] + _MAX_CITED_LINES)) if found else None


def window_of(content: bytes, cited: tuple[int, int] | None, first: int | None = None) -> LineWindow:
    """The window that begins at line `first`, by default a little before the cited lines. CPU work."""
    text = NumberedText(content)
    begin = first if first is not None else (cited[0] - _LINES_BEFORE if cited else 1)
    begin = min(max(1, begin), max(1, text.total_lines))
    lines = tuple(_bounded(text, begin, cited))
    end = lines[-1].number if lines else 0
    return LineWindow(
        lines=lines,
        total_lines=text.total_lines,
        first=begin,
        last=end,
        earlier=max(1, begin - WINDOW_LINES) if begin > 1 else None,
        later=end + 1 if lines and end < text.total_lines else None,
    )


def cited_window(content: bytes, cited: tuple[int, int]) -> tuple[LineView, ...]:
    """Only the cited lines, for the evidence below an answer. CPU work."""
    return tuple(_bounded(NumberedText(content), cited[0], cited, stop=cited[1]))


def _bounded(
    text: NumberedText, begin: int, cited: tuple[int, int] | None, stop: int | None = None
) -> Iterator[LineView]:
    """Lines from `begin` on until the window is full; at least one."""
    shown = 0
    first, last = cited or (0, -1)
    for offset, line in enumerate(text.lines(begin, min(stop or begin + WINDOW_LINES - 1, begin + WINDOW_LINES - 1))):
        number = begin + offset
        is_cited = first <= number <= last
        limit = _CITED_LINE_CHARACTERS if is_cited else _LINE_CHARACTERS
        end = before_placeholder(line, limit)
        left = len(line) - end
        cut = f"{count(left)} more characters" if left > 0 else ""
        yield LineView(number=number, text=visible(line[:end]), cited=is_cited, cut=cut)
        shown += min(len(line), limit)
        if shown > _WINDOW_CHARACTERS:
            return
