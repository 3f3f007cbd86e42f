"""Markdown on a terminal, with rich. Imported by the renderers when there is something to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TextIO

from rich.console import Console
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment, Segments

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult


class _LeftHeading(Heading):
    """A heading where the text below it begins; rich would put it in the middle of a wide screen."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _LeftHeading}


def markdown_console(stream: TextIO) -> Console:
    """A console that shows text as it is: no markup, no emoji codes, no guessing of what could be coloured."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def markdown_lines(console: Console, text: str) -> list[list[Segment]]:
    """Sanitised Markdown as lines of the screen. Links are spelled out: what is shown is where they lead."""
    lines = console.render_lines(_Markdown(text, hyperlinks=False), pad=False)
    while lines and _is_blank(lines[-1]):
        lines.pop()
    while lines and _is_blank(lines[0]):
        lines.pop(0)
    return lines


def as_renderable(lines: list[list[Segment]]) -> Segments:
    """Lines that the console can print."""
    return Segments([segment for line in lines for segment in (*line, Segment.line())])


def print_markdown(console: Console, text: str) -> None:
    """Print a block of sanitised Markdown and an empty line."""
    console.print(as_renderable(markdown_lines(console, text)))
    console.print()


def _is_blank(line: list[Segment]) -> bool:
    return not "".join(segment.text for segment in line).strip()
