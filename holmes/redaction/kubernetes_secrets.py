"""Finds the values of Kubernetes Secrets in YAML and JSON, including JSON or YAML inside a JSON string.

The value of every key under `data` and `stringData` is a secret. `kind: Secret` may be above or below the data, so the
whole object is read. `stringData` needs no kind, because only Secrets have it. A JSON object is read from its first to
its last brace, and the quotes around `kind` show the depth of escaping.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import Span
from holmes.redaction.names import label_of
from holmes.redaction.values import (
    BLOCK_SCALAR,
    QUOTE,
    closes,
    closing_quote,
    column_of,
    indented_block,
    is_variable,
    lines_from,
)
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

_BASE64: Final = expression(r"[A-Za-z0-9+/]{4,}+={0,2}$")
_PRIVATE: Final = "PRIVATE KEY"
_BLANK: Final = r"(?:\s|\\+[nrt]){0,40}"
_JSON_KIND: Final = expression(
    rf"kind(?P<quote>\\{{0,15}}\"){_BLANK}:{_BLANK}(?P=quote)Secret(?P<list>List)?(?P=quote)|stringData(?P<bare>\\{{0,15}}\"){_BLANK}:{_BLANK}\{{"
)
_BRACE: Final = expression(r"[{}]")
_PART: Final = expression(r"(?<!\\)\\*+\"|[{}\[\]]")
_COLON: Final = expression(rf"{_BLANK}:{_BLANK}")
_MAPS: Final = frozenset({"data", "stringData"})
# The maximum size of an object in etcd is 1.5 MiB.
_OBJECT_CHARACTERS: Final = 3 * 1024 * 1024
_STEP_CHARACTERS: Final = 64 * 1024
_WORK_PER_CHARACTER: Final = 3
_YAML_KIND: Final = expression(r"kind:[ \t]{1,8}[\"']?Secret(?P<list>List)?[\"']?[ \t]{0,40}(?=\r?\n|$|#)")
_WORD: Final = expression(r"Secret(?<=[ \t\"']Secret)")
_STRING_DATA: Final = expression(r"stringData:[ \t]{0,40}(?=\r?\n|\{|#)")
_DATA: Final = expression(r"[\"']?(?:data|stringData)[\"']?:(?=\s|$)")
_ENTRY: Final = expression(r"[ \t+\-]*(?P<name>[\"']?[A-Za-z0-9_.\-]{1,253}[\"']?):(?:[ \t]+|$)")
_FLOW_ENTRY: Final = expression(r"(?P<name>[\w.\-]{1,253})[\"']?\s{0,4}:\s{0,4}[\"']?(?P<value>[^,\"'}\s]+)")
_MARKS: Final = frozenset(" \t+-")
_LINE_START: Final = 300
_FREE_WORK: Final = 64 * 1024


def _decoded(value: str) -> str:
    """Decode base64 text. Returns `value` if it is not base64 or not printable after decoding."""
    text = value.strip()
    if len(text) % 4 or not _BASE64.match(text):
        return text
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return text
    return plain if plain.rstrip("\r\n").isprintable() or "\n" in plain else text


def may_be_shown(value: str) -> bool:
    """Return whether a value in a Secret does not need to be masked.

    This is true if the value is empty, is a template, or consists of certificates without a key.
    """
    text = value.strip().lstrip("\"'{")
    if is_variable(value) or not text.strip("\"'{} "):
        return True
    if not text.startswith(("-----BEGIN CERT", "LS0tLS1CRUdJTiBD")):
        return False
    plain = _decoded(text)
    return plain.lstrip().startswith("-----BEGIN CERT") and _PRIVATE not in plain


def secret_span(name: str, start: int, end: int, value: str) -> Span:
    """Return the span of a value.

    The hash is computed from the decoded text, so it equals the hash of the secret in plain text.
    """
    return Span(start=start, end=end, label=label_of(name), secret=_decoded(value).strip())


class JsonSecrets:
    """Reads the Secrets of one text.

    Without a limit, an unclosed object would be read repeatedly. Beyond the limit, no text is read twice, so the time
    stays linear.
    """

    __slots__ = ("_last", "_read_to", "_text", "_work")

    def __init__(self, text: str) -> None:
        self._text = text
        self._work = 0
        # The keys are escaping depths, because an object and the copy in its annotations are read separately.
        self._last: dict[int, int] = {}
        self._read_to: dict[int, int] = {}

    def find(self, window: Window) -> Iterator[Span]:
        """Yield the values of the Secrets in this window."""
        if not window.has('"Secret', folded=False) and not window.has("stringData", folded=False):
            return
        for match in _JSON_KIND.finditer(window.piece):
            quote = match["quote"] or match["bare"]
            at = window.start + match.start()
            depth = len(quote) - 1
            # Windows overlap, so a key may occur twice.
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
        """Return the position after the opening brace of the object with a key at `position`."""
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
    """Reads one object, string by string, and remembers where the object ends."""

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
        """Yield the values under `data` and `stringData`."""
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
        """Process one bracket. Returns the depth of the enclosing map of secrets, or 0."""
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


class YamlSecrets:
    """Reads the Secrets of one text.

    Remembers which lines were read, so that no line is read twice at one column. Nested Secrets have many columns.
    Beyond a limit, every further map called `data` is treated as a map of a Secret. The time therefore stays linear,
    and no secret is missed.
    """

    __slots__ = ("_covered", "_exhausted", "_read", "_text", "_work")

    def __init__(self, text: str) -> None:
        self._text = text
        self._read: dict[int, int] = {}
        # The whole content of a map is masked, so nested maps need not be read.
        self._covered = -1
        self._work = 0
        self._exhausted = False

    def find(self, window: Window) -> Iterator[Span]:
        """Yield the values of the Secrets in this window."""
        if window.has("Secret", folded=False) and _WORD.search(window.piece):
            for match in _YAML_KIND.finditer(window.piece):
                yield from self._object(window.start + match.start(), lists=match["list"] is not None)
        if window.has("stringData", folded=False):
            for match in _STRING_DATA.finditer(window.piece):
                at = window.start + match.start()
                yield from self._entries(at, self._column(at))

    def _column(self, position: int) -> int:
        """Return the column of the text at `position`, or -1 if other text precedes it in its line."""
        line = self._text.rfind("\n", max(0, position - _LINE_START), position) + 1
        if position - line > _LINE_START or not _MARKS.issuperset(self._text[line:position]):
            return -1
        return position - line

    def _object(self, position: int, *, lists: bool) -> Iterator[Span]:
        column = self._column(position)
        if self._exhausted or column < 0 or position < self._read.get(column, -1):
            return
        if self._work > _WORK_PER_CHARACTER * len(self._text) + _FREE_WORK:
            self._exhausted = True
            yield from self._all_maps(self._text.rfind("\n", 0, position))
            return
        start = self._object_start(position, column)
        end = position
        for line_start, line_end in self._lines_of_object(start, column):
            end = line_end
            line = self._text[line_start : min(line_end, line_start + _LINE_START)]
            at = column_of(line)
            if (at == column or (lists and at > column)) and _DATA.match(line, at):
                yield from self._entries(line_start + at, at)
        self._read[column] = max(end, self._read.get(column, -1))
        self._work += position + end - 2 * start

    def _all_maps(self, position: int) -> Iterator[Span]:
        """Yield the values of all maps that could belong to a Secret, from the line after `position`."""
        below = -1
        for start, end in lines_from(self._text, max(0, position - 1)):
            line = self._text[start : min(end, start + _LINE_START)]
            at = column_of(line)
            indentation = len(line) - len(line.lstrip(" \t"))
            if below >= 0 and not _ends_document(line) and (at < 0 or indentation > below):
                continue
            below = -1
            if at >= 0 and _DATA.match(line, at):
                below = at
                yield from self._entries(start + at, at)

    def _object_start(self, position: int, column: int) -> int:
        """Return the start of the first line of the object with a key at `position`."""
        text = self._text
        first = text.rfind("\n", 0, position) + 1
        while first > 0 and not _starts_item(text[first : first + _LINE_START], column):
            start = text.rfind("\n", 0, first - 1) + 1
            line = text[start : min(first - 1, start + _LINE_START)]
            at = column_of(line)
            if line.startswith("---") or -1 < at < column:
                break
            first = start
            if first < self._read.get(column, -1):
                break
        return first

    def _lines_of_object(self, start: int, column: int) -> Iterator[tuple[int, int]]:
        line_end = self._text.find("\n", start)
        line_end = len(self._text) if line_end < 0 else line_end
        yield start, line_end
        for line_start, line_stop in lines_from(self._text, start):
            line = self._text[line_start : min(line_stop, line_start + _LINE_START)]
            at = column_of(line)
            if _ends_document(line) or -1 < at < column or _starts_item(line, column):
                return
            yield line_start, line_stop

    def _entries(self, position: int, column: int) -> Iterator[Span]:
        """Yield the values of the map after the key at `position`."""
        if column < 0 or position < self._covered:
            return
        text = self._text
        line_end = text.find("\n", position)
        line_end = len(text) if line_end < 0 else line_end
        flow = text.find("{", position, line_end)
        if flow >= 0:
            for match in _FLOW_ENTRY.finditer(text, flow, line_end):
                yield from self._span(match["name"], *match.span("value"))
            return
        entry_column = covered = -1
        for start, end in lines_from(text, position):
            line = text[start : min(end, start + _LINE_START)]
            at = column_of(line)
            if -1 < at <= column or _ends_document(line):
                return
            self._covered = end
            entry_column = at if entry_column < 0 else entry_column
            entry = _ENTRY.match(text, start, end)
            if start < covered:
                continue
            if at != entry_column or not entry:
                # the value above continues here
                yield from self._span("", start, end)
                continue
            name = entry["name"].strip("\"'")
            if BLOCK_SCALAR.match(text, entry.end()):
                block_start, covered = indented_block(text, entry.end(), at)
                yield from self._span(name, block_start, covered)
            else:
                yield from self._span(name, *_scalar(text, entry.end(), end))

    def _span(self, name: str, start: int, end: int) -> Iterator[Span]:
        value = self._text[start:end]
        if not may_be_shown(value):
            yield secret_span(name, start, end, value)


def _ends_document(line: str) -> bool:
    return line.startswith("---") and not line.startswith("-----")


def _starts_item(line: str, column: int) -> bool:
    """Return whether `line` starts a list item with keys at `column`."""
    return column >= 2 and column_of(line) == column and "-" in line[:column]


def _scalar(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of a value in a line, without quotes, whitespace and comments."""
    quoted = QUOTE.match(text, start, end)
    if quoted:
        return quoted.end(), closing_quote(text, quoted.end(), quoted[0], end)
    comment = text.find(" #", start, end)
    value = text[start : end if comment < 0 else comment].rstrip()
    return start, start + len(value)
