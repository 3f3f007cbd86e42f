"""Secrets that their place in a row gives away: the columns of `INSERT`, the lines of a `.pgpass` file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.redaction.columns import NAME_TITLES, VALUE_TITLES
from holmes.redaction.kinds import PASSWORD, Span
from holmes.redaction.names import label_of, strength_of
from holmes.redaction.values import is_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.redaction.pieces import Window

_NETRC: Final = re.compile(r"password(?:\s|\\+[nrt]){1,8}\\{0,7}[\"']?(?P<secret>[^\s\\\"']{1,200})")
_NETRC_HEAD: Final = re.compile(
    r"(?:machine(?:\s|\\+[nt]){1,8}(?:[a-z0-9_\-]{0,100}[.:0-9][^\s\\]{0,100}|localhost)|(?:^|\n|\\n|[\"'])"
    r"[ \t]{0,40}default)"
    r"(?:(?:\s|\\+[nrt]){1,80}(?:login|account)(?:\s|\\+[nrt]){1,8}[^\s\\]{1,200}){0,2}(?:\s|\\+[nrt]){1,80}$"
)
_NETRC_CHARACTERS: Final = 500
_INSERT: Final = re.compile(
    r"insert\s{1,8}(?:ignore\s{1,8})?into\s{1,8}[^\s(]{1,200}\s{0,8}\((?P<columns>[^()]{1,4000})\)\s{0,8}values\s{0,8}(?=\()"
)
_ROW: Final = re.compile(
    r"\s{0,8},?\s{0,8}\((?P<fields>(?:'(?:[^'\n]|''){0,2000}+'|[^()'\n]{1,400}+|\([^()\n]{0,200}\)){1,400}+)\)"
)
_FIELD: Final = re.compile(
    r"\s{0,8}(?:[neE]?\\{0,7}'(?P<quoted>(?:[^'\\\n]|''){0,2000}+)\\{0,7}'|(?P<plain>[^,'\n]{1,400}))\s{0,8}(?:,|$)"
)
# Host, port, database, user, password, and nothing else in the line.
_PGPASS: Final = re.compile(
    r"[ \t]{0,40}(?:[A-Za-z0-9_.*/\-]{1,200}+|\[[0-9a-fA-F:]{2,40}\]):(?:[0-9]{2,5}|\*):[^\s:/\"'=]{1,64}+:"
    r"[A-Za-z_*][^\s:/\"'=]{0,63}+:"
    r"(?P<secret>(?:[^\s\"'\\:]|\\[:\\]){3,200})[ \t\r]*"
)
_SURE_PGPASS: Final = re.compile(r":\*:|:[56]432:")
_COLONS: Final = 4
_LONGEST_LINE: Final = 2000
# `file.go:12:34:error:x` and `host:9100:up:ok:1` have the same form.
_SOURCE: Final = re.compile(r"\.(?:c|cc|go|h|java|js|kt|py|rb|rs|sh|ts|ya?ml|json|tf):")


def secrets_of_rows(window: Window) -> Iterator[Span]:
    """The secrets of this window that stand in rows."""
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
        name = next((index for index, column in enumerate(columns) if column.lower() in NAME_TITLES), None)
        value = next((index for index, column in enumerate(columns) if column.lower() in VALUE_TITLES), None)
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
