"""Markdown on a terminal, with rich. Imported by the renderers when there is something to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.markdown import Markdown

if TYPE_CHECKING:
    from rich.console import RenderableType


def markdown_console(stream: TextIO) -> Console:
    """A console that shows text as it is: no markup, no emoji codes, no guessing of what could be coloured."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def markdown(text: str) -> RenderableType:
    """Sanitised text as Markdown. Links are spelled out: what is shown is where they lead."""
    return Markdown(text, hyperlinks=False)


def print_markdown(console: Console, text: str) -> None:
    """Print a block of sanitised Markdown and an empty line."""
    console.print(markdown(text))
    console.print()
