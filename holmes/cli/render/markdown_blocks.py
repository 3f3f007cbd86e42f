"""Cuts streamed Markdown into blocks that will not change any more. Used by the live renderer.

A finished block is printed once and scrolls away like any output; only the rest, a few lines, is drawn again and again.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])(\s|$)")


class MarkdownBlocks:
    """Collects pieces of text and gives back what is complete."""

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
        """Add a piece; returns the blocks that it completed."""
        *lines, self._partial_line = (self._partial_line + piece).split("\n")
        finished = [block for line in lines for block in self._take_line(line)]
        return [block for block in finished if block.strip()]

    def finish(self) -> str:
        """The rest, which is now complete too."""
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
        """Whether `line` belongs to the block before the blank line: indented, or the next item of its list."""
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
