"""Selects the preview for the kind of a text, and previews plain text and binary data.

If a text cannot be parsed as the detected kind, it is previewed as plain text.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Layout, StructuredPreview, compose
from holmes.previews.excerpts import clip_around, count_lines, lines_in_pieces, without_terminal_codes
from holmes.previews.severity import may_be_severe, severe_position, severity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.previews.budget import PreviewKind
    from holmes.tokens import TokenCounter

_MAX_CANDIDATES = 80
_MOST_ALIKE = 5
_SHORT = 4
_MAX_JUDGED = 8_000
_HEAD_LINES = 12
_TAIL_LINES = 8
_HEADINGS = ("Start (line number| line):", "Possible errors:", "End:")
_MAGIC = (
    ("\x1f", "gzip"), ("PK", "zip"), ("\x7fELF", "ELF program"), ("\x89PNG", "PNG image"), ("%PDF", "PDF"),
    ("GIF8", "GIF image"), ("ÿØ", "JPEG image"), ("BZh", "bzip2"), ("SQLite format 3", "SQLite database"),
)  # fmt: skip


def structured_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """Preview `text` within `cap_tokens`.

    The preview takes about 60 ms of CPU time per MB. Call this function outside the event loop for large texts.
    """
    from holmes.previews.log_lines import detect

    read = _reader(detect(text))
    return read(text, cap_tokens, counter) or _text_preview(text, cap_tokens, counter)


def _reader(  # noqa: PLR0911  one return for each kind
    kind: PreviewKind,
) -> Callable[[str, int, TokenCounter], StructuredPreview | None]:
    """Return the preview function for `kind`. Imports only the module that contains it."""
    match kind:
        case "logs":
            from holmes.previews.logs import log_preview

            return log_preview
        case "table":
            from holmes.previews.tables import table_preview

            return table_preview
        case "events":
            from holmes.previews.events import event_preview

            return event_preview
        case "json":
            from holmes.previews.outlines import json_preview

            return json_preview
        case "yaml":
            from holmes.previews.outlines import yaml_preview

            return yaml_preview
        case "binary":
            return _binary_preview
        case "text":
            return _text_preview


class _Severe:
    """Collects the most severe lines.

    Limits the number of lines with the same beginning, and the total number of lines.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[float, int, str]] = []
        self._alike: Counter[str] = Counter()
        self._judged = 0

    def look_at(self, number: int, line: str) -> None:
        """Collect `line` if it is severe."""
        if len(line) < _SHORT or self._judged >= _MAX_JUDGED or not may_be_severe(line):
            return
        start = line[:40]
        self._alike[start] += 1
        if self._alike[start] > _MOST_ALIKE:
            return
        self._judged += 1
        severity = severity_of(line)
        if severity > 0:
            self._lines.append((-severity / self._alike[start], number, line))
        if len(self._lines) > _MAX_CANDIDATES * 10:
            self._lines = self.worst()

    def worst(self) -> list[tuple[float, int, str]]:
        """Return the score, number and text of each of the most severe lines.

        The most severe line is first and has the lowest score.
        """
        return sorted(self._lines)[:_MAX_CANDIDATES]


def _text_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """Preview plain text: its beginning, its severe lines and its end."""
    total = count_lines(text)
    width = max(100, min(400, cap_tokens // 2)) if total > 3 else cap_tokens * 2
    head: list[tuple[int, str]] = []
    tail: list[tuple[int, str]] = []
    severe = _Severe()
    for first, lines in lines_in_pieces(text):
        for number, line in enumerate(lines, start=first):
            if number <= _HEAD_LINES:
                head.append((number, line))
            elif number > total - _TAIL_LINES:
                tail.append((number, line))
            severe.look_at(number, line)
    blocks = _ends(head, tail, width)
    at_ends = {block.order for block in blocks}
    for points, number, line in severe.worst():
        value = 14 * -points
        if number in at_ends:
            blocks = [block for block in blocks if block.order != number]
        blocks.append(_block(number, line, value, width, 1))

    def closing(taken: tuple[Block, ...]) -> str:
        return f"Not shown: {total - len(taken):,} of {total:,} lines."

    opening = f"Text, {total:,} line{'' if total == 1 else 's'}, {len(text):,} characters."
    composed = compose(Layout(opening=opening, headings=_HEADINGS, closing=closing), blocks, cap_tokens, counter)
    shown = f"{len(composed.taken):,} of {total:,} lines"
    return StructuredPreview(kind="text", text=composed.text, shown=shown)


def _ends(head: list[tuple[int, str]], tail: list[tuple[int, str]], width: int) -> list[Block]:
    blocks = [
        _block(number, line, 14.0 / (1 + place), width, 0) for place, (number, line) in enumerate(head) if line.strip()
    ]
    last_first = enumerate(reversed(tail))
    return blocks + [
        _block(number, line, 14.0 / (1 + place), width, 2) for place, (number, line) in last_first if line.strip()
    ]


def _block(number: int, line: str, value: float, width: int, section: int) -> Block:
    clean = without_terminal_codes(line)
    position = severe_position(clean) if len(clean) > width else 0
    return Block(
        section=section,
        order=number,
        value=value,
        text=f"{number}| {clip_around(clean, width, position)}",
        instead=f"{number}| {clip_around(clean, 60, position)}" if len(clean) > 60 else "",
        units=1,
    )


def _binary_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """Preview binary data: its probable format, its size, and its first bytes in hexadecimal."""
    start = text[:64].encode("utf-8", "surrogateescape" if _decodes(text[:64]) else "surrogatepass")
    kind = next((name for magic, name in _MAGIC if text.startswith(magic)), "unknown format")
    opening = f"Binary data ({kind}), {len(text):,} characters; it cannot be shown as text."
    blocks = [
        Block(section=0, order=0, value=5.0, text=f"first bytes: {start[:32].hex(' ')}", instead=start[:8].hex(" "))
    ]
    layout = Layout(opening=opening, headings=("",), closing=lambda _: "")
    composed = compose(layout, blocks, cap_tokens, counter)
    return StructuredPreview(kind="binary", text=composed.text, shown="first 32 bytes")


def _decodes(text: str) -> bool:
    """Return whether every lone surrogate represents a byte that is not valid UTF-8."""
    return all(not "\ud800" <= letter <= "\udfff" or "\udc80" <= letter <= "\udcff" for letter in text)
