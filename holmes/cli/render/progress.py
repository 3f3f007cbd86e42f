"""One line on a terminal that says how far the reading of a cluster is, and disappears at the end. Used by `scan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TextIO

from holmes.cli.render.sanitize import one_line
from holmes.cli.render.streams import is_terminal

if TYPE_CHECKING:
    from types import TracebackType

_ERASE = "\r\x1b[2K"
_LONGEST_NAME = 40


class ListProgress:
    """Shows nothing when the stream is not a terminal."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and is_terminal(stream) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(_ERASE)

    def show(self, what: str, done: int, planned: int) -> None:
        """`what` was just read, which makes `done` of `planned`."""
        self._write(f"{_ERASE}reading the cluster: {done}/{planned} {one_line(what, _LONGEST_NAME)}")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
