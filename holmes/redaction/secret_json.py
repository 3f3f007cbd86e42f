"""Values of Kubernetes Secrets in JSON, also in JSON that is a string of other JSON or of YAML.

Called by the redactor for each window. `last-applied-configuration` is such a string. An object is read from its first
to its last brace; the depth of escaping is that of the quotes around `kind`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.quotes import closes
from holmes.redaction.secret_values import may_be_shown, secret_span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.kinds import Span
    from holmes.redaction.pieces import Window

_BLANK: Final = r"(?:\s|\\+[nrt]){0,40}"
_KIND: Final = re.compile(
    rf"kind(?P<quote>\\{{0,15}}\"){_BLANK}:{_BLANK}(?P=quote)Secret(?P<list>List)?(?P=quote)|stringData(?P<bare>\\{{0,15}}\"){_BLANK}:{_BLANK}\{{"
)
_BRACE: Final = re.compile(r"[{}]")
_PART: Final = re.compile(r"(?<!\\)\\*+\"|[{}\[\]]")
_COLON: Final = re.compile(rf"{_BLANK}:{_BLANK}")
_MAPS: Final = frozenset({"data", "stringData"})
# etcd holds objects of at most 1.5 MiB.
_OBJECT_CHARACTERS: Final = 3 * 1024 * 1024
_STEP_CHARACTERS: Final = 64 * 1024
_WORK_PER_CHARACTER: Final = 3


class JsonSecrets:
    """Reads the Secrets of one text.

    Objects that are never closed are read over and over; past a limit what was read is not read again, so that the
    work stays linear.
    """

    __slots__ = ("_last", "_read_to", "_text", "_work")

    def __init__(self, text: str) -> None:
        self._text = text
        self._work = 0
        # By depth of escaping: an object and the copy of it inside of its annotations are read each on its own.
        self._last: dict[int, int] = {}
        self._read_to: dict[int, int] = {}

    def find(self, window: Window) -> Iterator[Span]:
        """The values of the Secrets that show in this window."""
        if not window.has('"Secret', folded=False) and not window.has("stringData", folded=False):
            return
        for match in _KIND.finditer(window.piece):
            quote = match["quote"] or match["bare"]
            at = window.start + match.start()
            depth = len(quote) - 1
            # Windows overlap, so a key may come twice.
            if at <= self._last.get(depth, -1):
                continue
            self._last[depth] = at
            read_to = self._read_to.get(depth, 0) if self._work > _WORK_PER_CHARACTER * len(self._text) else 0
            if at < read_to:
                continue
            start = self._object_start(at, read_to)
            reader = _ObjectReader(self._text, start, depth, any_depth=match["list"] is not None)
            yield from reader.secrets()
            self._work += at + reader.end - 2 * start
            self._read_to[depth] = max(reader.end, at + 1)

    def _object_start(self, position: int, read_to: int) -> int:
        """The position behind the brace that opens the object with a key at `position`."""
        lowest = max(0, position - _OBJECT_CHARACTERS, read_to)
        depth = 0
        end = position
        while end > lowest:
            start = max(lowest, end - _STEP_CHARACTERS)
            for brace in reversed(list(_BRACE.finditer(self._text, start, end))):
                depth += 1 if brace[0] == "}" else -1
                if depth < 0:
                    return brace.end()
            end = start
        return lowest


class _ObjectReader:
    """Reads one object, string by string, and keeps where it ended."""

    __slots__ = ("_any_depth", "_depth", "_key", "_quotes", "_start", "_text", "end")

    def __init__(self, text: str, start: int, quotes: int, *, any_depth: bool) -> None:
        self._text = text
        self._start = start
        self._quotes = quotes
        self._any_depth = any_depth
        self._depth = 1
        self._key = ""
        self.end = start

    def secrets(self) -> Iterator[Span]:
        """The values below `data` and `stringData`."""
        map_depth = 0
        opened = -1
        limit = min(len(self._text), self._start + _OBJECT_CHARACTERS)
        for part in _PART.finditer(self._text, self._start, limit):
            self.end = part.end()
            sign = part[0][-1]
            if sign == '"':
                backslashes = len(part[0]) - 1
                if opened < 0 and backslashes < self._quotes:
                    return
                if opened < 0:
                    opened = part.end()
                elif closes(backslashes, self._quotes):
                    end = part.end() - 1 - min(backslashes, self._quotes)
                    yield from self._string(opened, end, part.end(), secret=bool(map_depth))
                    opened = -1
                    if backslashes < self._quotes:
                        return
            elif opened < 0:
                map_depth = self._nest(sign, map_depth)
                if self._depth == 0:
                    return

    def _nest(self, sign: str, map_depth: int) -> int:
        """Follow one bracket; the depth of the map of secrets that this is in, 0 for none."""
        if sign in "{[":
            self._depth += 1
            if not map_depth and sign == "{" and self._key in _MAPS and (self._any_depth or self._depth == 2):
                return self._depth
        else:
            if map_depth == self._depth:
                map_depth = 0
            self._depth -= 1
        self._key = ""
        return map_depth

    def _string(self, start: int, end: int, after: int, *, secret: bool) -> Iterator[Span]:
        if _COLON.match(self._text, after):
            self._key = self._text[start : min(end, start + 300)]
            return
        value = self._text[start:end]
        if secret and not may_be_shown(value):
            yield secret_span(self._key, start, end, value)
