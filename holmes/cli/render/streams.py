"""The three streams of the process, which may be terminals, pipes, files, or closed. Used all over this package."""

from __future__ import annotations

import sys
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream` is open and a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def write_line(stream: TextIO | None, text: str) -> None:
    """Write a line at once; a stream that was closed before we started swallows it."""
    if stream is not None:
        stream.write(f"{text}\n")
        stream.flush()


def tolerate_narrow_encodings() -> None:
    """Show `?` for characters that the user's terminal cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
