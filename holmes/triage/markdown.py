"""Quotes text from the cluster in Markdown, so that it cannot change the layout of an answer.

Functions that format text return one line, except `fenced` and `table`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.expressions import expression
from holmes.values.texts import plural, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_CONTROL = expression(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_BACKTICKS = expression(r"`+")
_TAG = expression(r"<(?=[A-Za-z/!?])")
_MARKER = expression(r"\[(?=\[)")


def one_line(text: str, most_characters: int = 0) -> str:
    """Return `text` on one line without control characters, optionally shortened to `most_characters`."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return shortened(line, most_characters) if most_characters else line


def plain(text: str, most_characters: int = 600) -> str:
    """Return `text` as running text. Code, emphasis, links, tags and citations are escaped."""
    line = one_line(text, most_characters).replace("`", "'").replace("*", r"\*").replace("](", r"]\(")
    return _MARKER.sub("[ ", _TAG.sub(r"\\<", line))


def sentence(text: str) -> str:
    """Add a full stop to `text` unless it ends with punctuation."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def code(text: str, most_characters: int = 240) -> str:
    """Format `text` as a code span, even if it contains backticks."""
    line = _MARKER.sub("[ ", one_line(text, most_characters)) or " "
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def fenced(lines: Iterable[str], language: str = "") -> str:
    """Format `lines` as a code block that none of the lines can close."""
    shown = [_MARKER.sub("[ ", _CONTROL.sub(" ", line).rstrip()) for line in lines]
    longest = max((len(run) for line in shown for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", *shown, fence))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table with single-line cells. Vertical bars in cells are escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    shown = code(text, 160) if "*" in text else plain(text, 160)  # an escaped schedule cannot be copied
    return shown.replace("|", r"\|") or "-"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first names of a list, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 pod`, `3 pods`, `2 Ingresses`."""
    return f"1 {noun}" if number == 1 else f"{number:,} {plural(noun)}"
