"""Reads the tables that kubectl prints. Called by `tables` and `events`.

Several tables may follow each other, each with its header. Rows are cut at the header's columns; a row that is not
aligned is cut at double spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.detect import table_header
from holmes.previews.pieces import lines_in_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER_CELL = re.compile(r"\S+(?: \S+)*")
_BEFORE_A_CELL = {"", " "}
_GAP = re.compile(r" {2,}|\t")


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a table, where they start, and the line as it is."""

    names: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int | None, ...]
    line: str
    number: int

    def cells(self, row: str) -> list[str]:
        """The cells of `row`, one per column."""
        starts = self.starts
        for start in starts[1:]:
            if row[start - 1 : start] not in ("", " "):
                break
        else:
            return [row[start:end].strip() for start, end in zip(starts, self.ends, strict=True)]
        parts = _GAP.split(row.rstrip(), maxsplit=len(starts) - 1)
        return parts + [""] * (len(starts) - len(parts))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that follow each other under one header, with their line numbers."""

    header: Header
    numbers: list[int]
    lines: list[str]

    def columns(self) -> list[list[str]]:
        """The cells column by column, which for aligned rows is much cheaper than row by row."""
        header, lines = self.header, self.lines
        if all({line[start - 1 : start] for line in lines} <= _BEFORE_A_CELL for start in header.starts[1:]):
            bounds = zip(header.starts, header.ends, strict=True)
            return [[line[start:end].strip() for line in lines] for start, end in bounds]
        rows = [header.cells(line) for line in lines]
        return [[row[index] for row in rows] for index in range(len(header.names))]


def read_rows(text: str) -> Iterator[Rows]:
    """All rows, in pieces; lines before the first header are left out."""
    header: Header | None = None
    for first, lines in lines_in_pieces(text):
        rows = Rows(header, [], []) if header else None
        for number, line in enumerate(lines, start=first):
            if not line or line.isspace():
                continue
            if line[0].isupper() and table_header(line):
                if rows and rows.lines:
                    yield rows
                header = _header(line, number)
                rows = Rows(header, [], [])
            elif rows is not None:
                rows.numbers.append(number)
                rows.lines.append(line)
        if rows and rows.lines:
            yield rows


def _header(line: str, number: int) -> Header:
    cells = [(match.group(), match.start()) for match in _HEADER_CELL.finditer(line)]
    starts = tuple(start for _, start in cells)
    return Header(tuple(name for name, _ in cells), starts, (*starts[1:], None), line, number)
