"""Finds secrets by their position in tables, for example in CSV files or the output of database clients.

The heading of a column shows whether its values are secrets. In a table of names and values, the name in each row shows
whether its value is a secret. Lines of `.pgpass` files are also read as rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.redaction.kinds import PASSWORD, Span
from holmes.redaction.names import label_of, strength_of
from holmes.redaction.pieces import COMMON, KEYWORDS
from holmes.redaction.values import is_reference, is_word
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

_HEADING_END: Final = r"\"?(?:[ ]{0,40}[|,;\t\r\n]|[ ]{2})"
# Matches a keyword in a heading, up to the end of its cell.
_HEADING: Final = {
    keyword: expression(rf"{keyword}[a-z0-9_\-]{{0,30}}+{_HEADING_END}")
    for keyword in KEYWORDS
    if keyword not in {"key", "cred", "auth"}
}
_NAME_TITLES: Final = frozenset(
    {"k", "key", "name", "variable", "property", "setting", "field", "parameter", "env", "option"}
)
_VALUE_TITLES: Final = frozenset({"v", "val", "value", "current value", "setting"})
_VALUE_HEADING: Final = expression(rf"(?<![a-z0-9_\-])value{_HEADING_END}")
_CELL: Final = {
    "|": expression(r"[^|\n]+|(?<=\|)(?=\||$)"),
    "\t": expression(r"[^\t\n]+|(?<=\t)(?=\t|$)"),
    ",": expression(r"\"(?:[^\"\n]|\"\"){0,400}\"|[^,\n]+|(?<=,)(?=,|$)"),
    ";": expression(r"[^;\n]+|(?<=;)(?=;|$)"),
    "  ": expression(r"\S+(?: \S+)*"),
}
_TITLE: Final = expression(r"[A-Za-z_][\w.\-]{0,40}(?: [\w.\-]{1,20}){0,2}")
_RULE: Final = expression(r"[\s|+\-=:─┼│]*[\-=─]{3}[\s|+\-=:─┼│]*")
_LONGEST_LINE: Final = 2000

_Cells = list[tuple[int, int]]
_NETRC: Final = expression(r"password(?:\s|\\+[nrt]){1,8}\\{0,7}[\"']?(?P<secret>[^\s\\\"']{1,200})")
_NETRC_HEAD: Final = expression(
    r"(?:machine(?:\s|\\+[nt]){1,8}(?:[a-z0-9_\-]{0,100}[.:0-9][^\s\\]{0,100}|localhost)|(?:^|\n|\\n|[\"'])"
    r"[ \t]{0,40}default)"
    r"(?:(?:\s|\\+[nrt]){1,80}(?:login|account)(?:\s|\\+[nrt]){1,8}[^\s\\]{1,200}){0,2}(?:\s|\\+[nrt]){1,80}$"
)
_NETRC_CHARACTERS: Final = 500
_INSERT: Final = expression(
    r"insert\s{1,8}(?:ignore\s{1,8})?into\s{1,8}[^\s(]{1,200}\s{0,8}\((?P<columns>[^()]{1,4000})\)\s{0,8}values\s{0,8}(?=\()"
)
_ROW: Final = expression(
    r"\s{0,8},?\s{0,8}\((?P<fields>(?:'(?:[^'\n]|''){0,2000}+'|[^()'\n]{1,400}+|\([^()\n]{0,200}\)){1,400}+)\)"
)
_FIELD: Final = expression(
    r"\s{0,8}(?:[neE]?\\{0,7}'(?P<quoted>(?:[^'\\\n]|''){0,2000}+)\\{0,7}'|(?P<plain>[^,'\n]{1,400}))\s{0,8}(?:,|$)"
)
# Matches host, port, database, user and password, without other text in the line.
_PGPASS: Final = expression(
    r"[ \t]{0,40}(?:[A-Za-z0-9_.*/\-]{1,200}+|\[[0-9a-fA-F:]{2,40}\]):(?:[0-9]{2,5}|\*):[^\s:/\"'=]{1,64}+:"
    r"[A-Za-z_*][^\s:/\"'=]{0,63}+:"
    r"(?P<secret>(?:[^\s\"'\\:]|\\[:\\]){3,200})[ \t\r]*"
)
_SURE_PGPASS: Final = expression(r":\*:|:[56]432:")
_COLONS: Final = 4
# `file.go:12:34:error:x` and `host:9100:up:ok:1` have the same form as a `.pgpass` line.
_SOURCE: Final = expression(r"\.(?:c|cc|go|h|java|js|kt|py|rb|rs|sh|ts|ya?ml|json|tf):")


class ColumnSecrets:
    """Reads the tables of one text. Remembers the end of the last table, so that no row is read as a heading."""

    __slots__ = ("_read_to", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._read_to = -1

    def find(self, window: Window) -> Iterator[Span]:
        """Yield the secrets in the tables whose headings are in this window."""
        if not window.names_secrets:
            return
        for heading in sorted(_headings(window)):
            if heading < self._read_to:
                continue
            end = self._text.find("\n", heading, heading + _LONGEST_LINE)
            delimiter = _delimiter(self._text[heading:end]) if end >= 0 else ""
            if delimiter:
                table = _Table(self._text, heading, end, delimiter)
                yield from table.secrets()
                self._read_to = table.end


def _headings(window: Window) -> set[int]:
    """Return the positions of lines that may be headings."""
    patterns = [pattern for keyword, pattern in _HEADING.items() if _may_head(window, keyword, pattern)]
    patterns += [_VALUE_HEADING] if window.has("value") else []
    starts = (match.start() for pattern in patterns for match in pattern.finditer(window.lower))
    lines = (window.piece.rfind("\n", max(0, start - _LONGEST_LINE), start) for start in starts)
    return {window.start + line + 1 for line in lines if line >= 0 or not window.cut_start}


def _may_head(window: Window, keyword: str, pattern: re.Pattern[str]) -> bool:
    if not window.has(keyword):
        return False
    near = window.near(keyword) if keyword in COMMON else None
    return near is None or pattern.search(near) is not None


def _delimiter(line: str) -> str:
    """Return the separator between the cells of a heading, or an empty string if the line is not a heading."""
    if "=" in line or ":" in line:
        return ""
    delimiter = next((sign for sign in ("|", "\t", ",", ";", "  ") if sign in line.strip()), "")
    if not delimiter or (delimiter in ",;" and " " in line.strip()):
        return ""
    cells = _CELL[delimiter].findall(line)
    is_heading = len(cells) > 1 and all(_TITLE.fullmatch(cell.strip(' "\r')) or not cell.strip() for cell in cells)
    return delimiter if is_heading else ""


class _Table:
    """The rows below one heading. `end` is the position at which the rows end."""

    __slots__ = ("_delimiter", "_heading", "_start", "_text", "end")

    def __init__(self, text: str, start: int, end: int, delimiter: str) -> None:
        self._text = text
        self._start = start
        self._delimiter = delimiter
        self._heading = self._cells(start, end)
        self.end = end

    def secrets(self) -> Iterator[Span]:
        titles = [self._text[start:end] for start, end in self._heading]
        secret = {index: title for index, title in enumerate(titles) if strength_of(title) == "strong"}
        name = next((index for index, title in enumerate(titles) if title.lower() in _NAME_TITLES), None)
        value = next(
            (index for index, title in enumerate(titles) if title.lower() in _VALUE_TITLES and index != name), None
        )
        if not secret and (name is None or value is None):
            return
        for cells in self._rows():
            for index, title in secret.items():
                yield from self._secret(title, cells.get(index))
            if name is not None and value is not None and name in cells:
                title = self._text[slice(*cells[name])]
                if strength_of(title) == "strong":
                    yield from self._secret(title, cells.get(value))

    def _rows(self) -> Iterator[dict[int, tuple[int, int]]]:
        """Yield the cells of every row, by column number."""
        columns = {start - self._start: index for index, (start, _) in enumerate(self._heading)}
        while self.end < len(self._text):
            start = self.end + 1
            end = self._text.find("\n", start, start + _LONGEST_LINE)
            end = min(len(self._text), start + _LONGEST_LINE) if end < 0 else end
            if start >= len(self._text) or not self._text[start:end].strip():
                return
            self.end = end
            if _RULE.fullmatch(self._text, start, end):
                continue
            cells = self._cells(start, end)
            if self._delimiter == "  ":
                # Cells are aligned with their titles, and a row may omit cells.
                found = {columns[at - start]: (at, to) for at, to in cells if at - start in columns}
                if not found:
                    return
                yield found
            elif len(cells) != len(columns):
                return
            else:
                yield dict(enumerate(cells))

    def _cells(self, start: int, end: int) -> _Cells:
        """Split a line into cells without surrounding whitespace and quotes."""
        cells: _Cells = []
        for match in _CELL[self._delimiter].finditer(self._text, start, end):
            text = match[0]
            left = len(text) - len(text.lstrip(' "'))
            cells.append((match.start() + left, max(match.start() + left, match.start() + len(text.rstrip(' "\r')))))
        return cells

    def _secret(self, title: str, cell: tuple[int, int] | None) -> Iterator[Span]:
        if cell is None:
            return
        value = self._text[slice(*cell)]
        label = label_of(title)
        if not value or " " in value or is_word(value) or is_reference(value, amounts=label != PASSWORD):
            return
        yield Span(start=cell[0], end=cell[1], label=label, secret=value)


def secrets_of_rows(window: Window) -> Iterator[Span]:
    """Yield the secrets in the rows in this window."""
    if window.names_secrets and window.has("insert") and window.has("values"):
        yield from _inserted(window)
    if window.has("password ") or window.has("password\n") or window.has("password\\") or window.has("password\t"):
        yield from _of_netrc(window)
    yield from _of_pgpass(window)


def _of_pgpass(window: Window) -> Iterator[Span]:
    position = 0
    if "\n" not in window.piece and len(window.piece) > _LONGEST_LINE:
        return
    for line in [
        line for line in window.piece.split("\n") if (" " not in line or line[0] == " ") and line.count(":") >= _COLONS
    ]:
        match = _PGPASS.fullmatch(line)
        if not match or is_reference(match["secret"], amounts=True):
            continue
        if _SOURCE.search(line) or (match["secret"].isalpha() and not _SURE_PGPASS.search(line)):
            continue
        position = window.piece.find(line, position)
        start, end = match.span("secret")
        at = window.start + position
        yield Span(start=at + start, end=at + end, label=PASSWORD, secret=match["secret"])


def _of_netrc(window: Window) -> Iterator[Span]:
    for match in _NETRC.finditer(window.lower):
        lowest = max(0, match.start() - _NETRC_CHARACTERS)
        start, end = match.span("secret")
        value = window.piece[start:end]
        before = window.lower[lowest : match.start()]
        if not ("machine" in before or "default" in before) or is_reference(value):
            continue
        if _NETRC_HEAD.search(before):
            yield Span(start=window.start + start, end=window.start + end, label=PASSWORD, secret=value)


def _inserted(window: Window) -> Iterator[Span]:
    for match in _INSERT.finditer(window.lower):
        columns = [column.strip(" \t\r\n`\"'[]\\") for column in window.piece[slice(*match.span("columns"))].split(",")]
        secret = {index: name for index, name in enumerate(columns) if strength_of(name) == "strong"}
        name = next((index for index, column in enumerate(columns) if column.lower() in _NAME_TITLES), None)
        value = next((index for index, column in enumerate(columns) if column.lower() in _VALUE_TITLES), None)
        row = _ROW.match(window.piece, match.end()) if secret or (name is not None and value is not None) else None
        while row:
            fields = dict(enumerate(_fields(window.piece, *row.span("fields"))))
            named = dict(secret)
            if name in fields and value is not None and strength_of(window.piece[slice(*fields[name])]) == "strong":
                named[value] = window.piece[slice(*fields[name])]
            for index, title in named.items():
                if index in fields:
                    yield from _field_span(window, title, fields[index])
            row = _ROW.match(window.piece, row.end())


def _fields(piece: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for field in _FIELD.finditer(piece, start, end):
        yield field.span("quoted" if field["quoted"] is not None else "plain")


def _field_span(window: Window, title: str, place: tuple[int, int]) -> Iterator[Span]:
    value = window.piece[slice(*place)].strip()
    if not is_reference(value):
        start, end = place
        yield Span(start=window.start + start, end=window.start + end, label=label_of(title), secret=value)
