"""Values of Kubernetes Secrets in YAML: everything below `data` and `stringData`, whatever it is called.

Called by the redactor for each window. `kind: Secret` stands below the data as often as above it, so an object is read
from its first to its last line on the whole text. `stringData` needs no kind: only Secrets have it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.blocks import BLOCK_SCALAR, column_of, indented_block, lines_from
from holmes.redaction.quotes import QUOTE, closing_quote
from holmes.redaction.secret_values import may_be_shown, secret_span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.kinds import Span
    from holmes.redaction.pieces import Window

_KIND: Final = re.compile(r"kind:[ \t]{1,8}[\"']?Secret(?P<list>List)?[\"']?[ \t]{0,40}(?=\r?\n|$|#)")
_WORD: Final = re.compile(r"Secret(?<=[ \t\"']Secret)")
_STRING_DATA: Final = re.compile(r"stringData:[ \t]{0,40}(?=\r?\n|\{|#)")
_DATA: Final = re.compile(r"[\"']?(?:data|stringData)[\"']?:(?=\s|$)")
_ENTRY: Final = re.compile(r"[ \t+\-]*(?P<name>[\"']?[A-Za-z0-9_.\-]{1,253}[\"']?):(?:[ \t]+|$)")
_FLOW_ENTRY: Final = re.compile(r"(?P<name>[\w.\-]{1,253})[\"']?\s{0,4}:\s{0,4}[\"']?(?P<value>[^,\"'}\s]+)")
_MARKS: Final = frozenset(" \t+-")
_LINE_START: Final = 300
_WORK_PER_CHARACTER: Final = 3
_FREE_WORK: Final = 64 * 1024


class YamlSecrets:
    """Reads the Secrets of one text. Keeps what was read, so that no line is read for two Secrets at one column.

    Secrets inside of Secrets have many columns. Past a limit no object is looked for any more, and every further map
    called `data` counts as one of a Secret, so that the work stays linear and nothing is left out.
    """

    __slots__ = ("_covered", "_exhausted", "_read", "_text", "_work")

    def __init__(self, text: str) -> None:
        self._text = text
        self._read: dict[int, int] = {}
        # What is below a map is masked with it, so maps that are nested in it need not be read.
        self._covered = -1
        self._work = 0
        self._exhausted = False

    def find(self, window: Window) -> Iterator[Span]:
        """The values of the Secrets that show in this window."""
        if window.has("Secret", folded=False) and _WORD.search(window.piece):
            for match in _KIND.finditer(window.piece):
                yield from self._object(window.start + match.start(), lists=match["list"] is not None)
        if window.has("stringData", folded=False):
            for match in _STRING_DATA.finditer(window.piece):
                at = window.start + match.start()
                yield from self._entries(at, self._column(at))

    def _column(self, position: int) -> int:
        """The column of what stands at `position`, or -1 when something else stands before it in its line."""
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
        """The values of all maps that could be those of Secrets, from the line after `position` on."""
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
        """The start of the first line of the object that has a key at `position`."""
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
        """The values of the map behind the key at `position`."""
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
                # A line that goes on with the value above it.
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
    """Whether `line` begins an item of a list whose keys stand at `column`."""
    return column >= 2 and column_of(line) == column and "-" in line[:column]


def _scalar(text: str, start: int, end: int) -> tuple[int, int]:
    """The value at `start` of a line that ends at `end`, without its quotes, blanks and comment."""
    quoted = QUOTE.match(text, start, end)
    if quoted:
        return quoted.end(), closing_quote(text, quoted.end(), quoted[0], end)
    comment = text.find(" #", start, end)
    value = text[start : end if comment < 0 else comment].rstrip()
    return start, start + len(value)
