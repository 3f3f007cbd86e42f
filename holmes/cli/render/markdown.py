"""Renders Markdown on a terminal, and splits it into blocks while it is streamed.

A finished block is printed once. Only the unfinished rest, a few lines, is redrawn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, TextIO

from rich.console import Console
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment, Segments

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult


class _LeftHeading(Heading):
    """A left-aligned heading, unlike the centred headings of rich."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _LeftHeading}


def markdown_console(stream: TextIO) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji codes, no highlighting."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def markdown_lines(console: Console, text: str) -> list[list[Segment]]:
    """Render sanitised Markdown as screen lines. Links show their URL."""
    lines = console.render_lines(_Markdown(text, hyperlinks=False), pad=False)
    while lines and _is_blank(lines[-1]):
        lines.pop()
    while lines and _is_blank(lines[0]):
        lines.pop(0)
    return lines


def as_renderable(lines: list[list[Segment]]) -> Segments:
    return Segments([segment for line in lines for segment in (*line, Segment.line())])


def print_markdown(console: Console, text: str) -> None:
    """Print a block of sanitised Markdown and an empty line."""
    console.print(as_renderable(markdown_lines(console, text)))
    console.print()


def _is_blank(line: list[Segment]) -> bool:
    return not "".join(segment.text for segment in line).strip()


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])(\s|$)")


class MarkdownBlocks:
    """Collects streamed text and returns complete blocks."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._partial_line = ""
        self._fence = ""
        self._blank_seen = False

    @property
    def rest(self) -> str:
        """The text that may still change."""
        return "\n".join([*self._open, self._partial_line])

    def feed(self, piece: str) -> list[str]:
        """Add text and return the blocks that it completes."""
        *lines, self._partial_line = (self._partial_line + piece).split("\n")
        finished = [block for line in lines for block in self._take_line(line)]
        return [block for block in finished if block.strip()]

    def finish(self) -> str:
        """Return the rest as a complete block."""
        rest = self.rest
        self._open, self._partial_line, self._fence, self._blank_seen = [], "", "", False
        return rest

    def _take_line(self, line: str) -> list[str]:
        finished = []
        if self._blank_seen and line.strip() and not self._fence and not self._continues(line):
            finished.append("\n".join(self._open))
            self._open = []
        self._open.append(line)
        if line.strip():
            self._blank_seen = False
        elif not self._fence:
            self._blank_seen = True
        self._follow_fence(line)
        return finished

    def _continues(self, line: str) -> bool:
        """Return whether `line`, which follows a blank line, is still part of the previous block."""
        if line[0] in " \t":
            return True
        first = next((text for text in self._open if text.strip()), "")
        return bool(_LIST_ITEM.match(first) and _LIST_ITEM.match(line))

    def _follow_fence(self, line: str) -> None:
        match = _FENCE.match(line)
        if not match:
            return
        if not self._fence:
            self._fence = match[1]
        elif match[1].startswith(self._fence) and not line.strip().strip(self._fence[0]):
            self._fence = ""
