"""Previews kubectl tables: shows unusual rows unchanged, and the values of each column.

A text may contain several tables, each with a header. Rows are split at the columns of the header, or at wide spaces if
they are not aligned. A row is unusual if a cell contains a bad state, a rare value, an outlier, or a different image
tag.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.previews.budget import Block, Layout, StructuredPreview, compose
from holmes.previews.excerpts import clip_around, lines_in_pieces
from holmes.previews.log_lines import table_header
from holmes.previews.severity import Spread, badness_of, image_parts, number_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.tokens import TokenCounter

_HEADER_CELL = expression(r"\S+(?: \S+)*")
_BEFORE_A_CELL = {"", " "}
_GAP = expression(r" {2,}|\t")
_MAX_VALUES = 3_000
_MAX_NUMBERS = 200_000
_MAX_REMEMBERED = 20_000
_MAX_TABLES = 60
_MIN_COUNTS = 3
_MAX_ODD_ROWS = 60
_SHOWN_VALUES = 7
_READY = expression(r"(\d+)/(\d+)$")
_COUNT_COLUMNS = {"DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "REPLICAS"}
_STATUS_COLUMNS = {"STATUS", "PHASE", "STATE", "TYPE", "REASON", "CONDITION", "HEALTH", "HEALTHY", "SYNC", "READY"}
_NAME_COLUMNS = {"NAME", "AGE", "LAST SEEN", "FIRST SEEN", "MESSAGE", "CREATED AT"}
_SPACES = expression(" {3,}")
_HEADINGS = ("Unusual rows (line number| row <- reason):", "Columns:")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a table: names and positions of the columns, and the header line."""

    names: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int | None, ...]
    line: str
    number: int

    def cells(self, row: str) -> list[str]:
        """Split `row` into one cell for each column."""
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
    """Consecutive rows under one header, with their line numbers."""

    header: Header
    numbers: list[int]
    lines: list[str]

    def columns(self) -> list[list[str]]:
        """Return the cells of each column. For aligned rows, this is much faster than splitting each row."""
        header, lines = self.header, self.lines
        if all({line[start - 1 : start] for line in lines} <= _BEFORE_A_CELL for start in header.starts[1:]):
            bounds = zip(header.starts, header.ends, strict=True)
            return [[line[start:end].strip() for line in lines] for start, end in bounds]
        rows = [header.cells(line) for line in lines]
        return [[row[index] for row in rows] for index in range(len(header.names))]


def read_rows(text: str) -> Iterator[Rows]:
    """Yield the rows of all tables, in blocks. Lines before the first header are omitted."""
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


@dataclass(slots=True)
class _Column:
    name: str
    values: Counter[str] = field(default_factory=Counter)
    numbers: array[float] = field(default_factory=lambda: array("d"))
    tags: Counter[str] = field(default_factory=Counter)
    tags_of: dict[str, Counter[str]] = field(default_factory=dict)
    many: bool = False
    points: dict[str, float] = field(default_factory=dict)
    fractions: bool = False

    def add(self, cells: list[str]) -> None:
        """Count the values. If a column has too many different values, only numbers are collected."""
        if not self.many:
            self.values.update(cells)
            self.many = len(self.values) > _MAX_VALUES
        elif len(self.numbers) < _MAX_NUMBERS and number_of(cells[0]) is not None:
            self.numbers.extend(number for cell in cells if (number := number_of(cell)) is not None)

    def may_be_odd(self, table: _Table, place: int) -> bool:
        """Return whether a cell in this column can be unusual."""
        return place in table.spreads or bool(table.rare.get(place)) or self.name in _STATUS_COLUMNS or self.fractions

    def points_of(self, table: _Table, place: int, cell: str) -> float:
        """Return how unusual `cell` is in this column, as a score."""
        known = self.points.get(cell)
        if known is None:
            known = _cell_points(table, place, self, cell)
            if len(self.points) < _MAX_REMEMBERED:
                self.points[cell] = known
        return known

    def study(self) -> None:
        """Collect the numbers and image tags among the values."""
        self.fractions = any(_READY.match(value) for value in list(self.values)[:50])
        for value, count in self.values.items():
            number = number_of(value)
            if number is not None:
                self.numbers.extend([number] * min(count, 1_000))
            elif ":" in value and "/" in value and "://" not in value:
                for repository, tag in image_parts(value):
                    self.tags[tag] += count
                    self.tags_of.setdefault(repository, Counter())[tag] += count


@dataclass(slots=True)
class _Table:
    header: Header
    columns: list[_Column]
    rows: int = 0
    spreads: dict[int, Spread] = field(default_factory=dict)
    rare: dict[int, dict[str, float]] = field(default_factory=dict)
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _OddRow:
    table: int
    score: float
    number: int
    line: str
    reasons: tuple[str, ...]


def table_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview | None:
    """Preview kubectl tables. Returns None if the text has no rows."""
    tables = _read(text)
    for table in tables.values():
        _study(table)
    odd = _odd_rows(text, tables)
    rows = sum(table.rows for table in tables.values())
    if not rows:
        return None
    blocks = _row_blocks(odd, tables, cap_tokens) + _column_blocks(tables)
    shapes = "; ".join(f"{table.rows:,} rows x {len(table.columns)} columns" for table in list(tables.values())[:4])
    several = f"{len(tables)} kinds of tables: " if len(tables) > 1 else "Table, "

    def closing(taken: tuple[Block, ...]) -> str:
        return f"Not shown: {max(0, rows - sum(block.units for block in taken)):,} of {rows:,} rows."

    layout = Layout(opening=f"{several}{shapes}.", headings=_HEADINGS, closing=closing)
    composed = compose(layout, blocks, cap_tokens, counter)
    return StructuredPreview(kind="table", text=composed.text, shown=f"{composed.units:,} of {rows:,} rows")


def _read(text: str) -> dict[tuple[str, ...], _Table]:
    """Read the tables. Tables with the same column names are merged."""
    tables: dict[tuple[str, ...], _Table] = {}
    for rows in read_rows(text):
        names = rows.header.names
        table = tables.get(names)
        if table is None:
            if len(tables) >= _MAX_TABLES:
                continue
            table = tables[names] = _Table(rows.header, [_Column(name) for name in names])
        table.rows += len(rows.lines)
        for column, cells in zip(table.columns, rows.columns(), strict=True):
            column.add(cells)
    return tables


def _study(table: _Table) -> None:
    """Determine the rare values and the distribution of numbers in each column."""
    table.counts = tuple(place for place, column in enumerate(table.columns) if column.name in _COUNT_COLUMNS)
    for index, column in enumerate(table.columns):
        column.study()
        numeric = len(column.numbers) * 10 >= min(table.rows, _MAX_NUMBERS) * 8
        if numeric and table.rows >= 5 and not _READY.match(next(iter(column.values), "")):
            table.spreads[index] = Spread.of(column.numbers)
        if not column.many and column.name not in _NAME_COLUMNS and (not numeric or len(column.values) <= 4):
            table.rare[index] = rare_values(column.values)
        if column.tags:
            table.rare[index] = rare_values(column.tags)


def rare_values(values: Counter[str]) -> dict[str, float]:
    """Return the rare values with their scores from 0 to 10. If most values occur only once, no value is rare."""
    total = values.total()
    if total < 5:
        return {}
    limit = max(1, min(total // 20, 25))
    rare = {value: count for value, count in values.items() if count <= limit}
    rows = sum(rare.values())
    if rows * 4 > total:
        rare = {value: count for value, count in rare.items() if value.startswith("<") or value == ""}
        rows = max(1, sum(rare.values()))
        if rows * 4 > total:
            return {}
    return {value: 10.0 * min(1.0, 4 / rows) / count**0.5 for value, count in rare.items()}


def _odd_rows(text: str, tables: dict[tuple[str, ...], _Table]) -> list[_OddRow]:
    odd: list[_OddRow] = []
    seen: Counter[tuple[str, ...]] = Counter()
    places = {names: place for place, names in enumerate(tables)}
    for rows in read_rows(text):
        table = tables.get(rows.header.names)
        if table is None:
            continue
        columns = rows.columns()
        for index in _suspects(table, columns):
            score, kinds = _oddness(table, [column[index] for column in columns])
            if score < 2:
                continue
            seen[kinds] += 1
            score /= 1 + (seen[kinds] - 1) * 0.7
            odd.append(_OddRow(places[rows.header.names], score, rows.numbers[index], rows.lines[index], kinds))
        if len(odd) > _MAX_ODD_ROWS * 20:
            odd = _worst(odd)
    return _worst(odd)


def _suspects(table: _Table, columns: list[list[str]]) -> list[int]:
    """Return the indexes of rows that contain an unusual cell, or whose replica counts differ from each other."""
    found: set[int] = set()
    for place, (column, cells) in enumerate(zip(table.columns, columns, strict=True)):
        if not column.may_be_odd(table, place):
            continue
        points = {cell: column.points_of(table, place, cell) for cell in set(cells)}
        bad = {cell for cell, value in points.items() if value >= 2}
        if bad:
            found.update([index for index, cell in enumerate(cells) if cell in bad])
    if len(table.counts) >= _MIN_COUNTS:
        counts = zip(*(columns[place] for place in table.counts), strict=True)
        found.update([index for index, row in enumerate(counts) if len(set(row)) > 1])
    return sorted(found)


def _worst(odd: list[_OddRow]) -> list[_OddRow]:
    return sorted(odd, key=lambda row: (-row.score, row.number))[:_MAX_ODD_ROWS]


def _oddness(table: _Table, cells: list[str]) -> tuple[float, tuple[str, ...]]:
    score = 0.0
    reasons: list[str] = []
    finished = "Completed" in cells or "Succeeded" in cells
    for index, (column, cell) in enumerate(zip(table.columns, cells, strict=True)):
        points = column.points_of(table, index, cell)
        if points >= 2 and not (finished and column.name == "READY"):
            score += points
            reasons.append(f"{column.name} {cell.split(' ', 1)[0]}" if len(cell) <= 30 else column.name)
    counts = [cells[index] for index in table.counts]
    if len(counts) >= _MIN_COUNTS and len(set(counts)) > 1 and all(count.isdigit() for count in counts):
        score += 14
        reasons.append("counts differ")
    return score, tuple(reasons)


def _cell_points(table: _Table, index: int, column: _Column, cell: str) -> float:
    points = 0.0
    ready = _READY.match(cell)
    if ready and int(ready[1]) < int(ready[2]):
        points = 14.0
    if column.name in _STATUS_COLUMNS and not ready:
        points = badness_of(cell, total=table.rows, count=column.values[cell])
    rare = table.rare.get(index)
    if rare:
        if column.tags:
            points += _tag_points(column, rare, cell)
        else:
            points += rare.get(cell, 0.0) * (1.0 if column.name in _STATUS_COLUMNS else 0.8)
    spread = table.spreads.get(index)
    if spread is not None:
        number = number_of(cell)
        if number is not None:
            weight = 0.3 if column.name in _NAME_COLUMNS else 1.3 if column.name == "RESTARTS" else 1.0
            points += weight * spread.distance(number)
            if cell.endswith("%") and number >= 90:
                points += 4
    return points


def _tag_points(column: _Column, rare: dict[str, float], cell: str) -> float:
    points = 0.0
    for repository, tag in image_parts(cell):
        tags = column.tags_of[repository]
        minority = tags.total() >= 3 and tags[tag] * 3 <= tags.total()
        points = max(points, 9.0 if minority else 0.0, rare.get(tag, 0.0))
    return points


def _row_blocks(odd: list[_OddRow], tables: dict[tuple[str, ...], _Table], cap_tokens: int) -> list[Block]:
    width = max(200, cap_tokens)
    headers = [table.header.line for table in tables.values()]
    blocks = []
    opened: set[int] = set()
    for order, row in enumerate(odd):
        head = "" if row.table in opened else f"   {clip_around(_squeezed(headers[row.table]), width)}\n"
        opened.add(row.table)
        reasons = ", ".join(row.reasons[:4])
        text = f"{head}{row.number}| {clip_around(_squeezed(row.line), width)} <- {reasons}"
        short = f"{row.number}| {clip_around(_squeezed(row.line), 90)} <- {reasons}"
        blocks.append(
            Block(section=0, order=row.table * 1_000 + order, value=3 * row.score, text=text, units=1, instead=short)
        )
    return blocks


def _squeezed(line: str) -> str:
    return _SPACES.sub("  ", line.rstrip())


def _column_blocks(tables: dict[tuple[str, ...], _Table]) -> list[Block]:
    blocks = []
    for place, table in enumerate(tables.values()):
        prefix = f"table {place + 1} " if len(tables) > 1 else ""
        for index, column in enumerate(table.columns):
            text, value = _column_line(table, index, column)
            blocks.append(Block(section=1, order=place * 100 + index, value=value, text=f"{prefix}{text}"))
    return blocks


def _column_line(table: _Table, index: int, column: _Column) -> tuple[str, float]:
    spread = table.spreads.get(index)
    distinct = len(column.values)
    if spread is not None and distinct > 4:
        return f"{column.name}: numbers, median {spread.median:g}, largest {spread.largest:g}", 2.0
    if column.many or (distinct > 40 and distinct * 3 > table.rows):
        some = next(iter(column.values))
        return (
            f"{column.name}: {distinct:,}{'+' if column.many else ''} distinct values, such as {clip_around(some, 40)}",
            0.8,
        )
    common = column.values.most_common(_SHOWN_VALUES)
    shown = ", ".join(f"{clip_around(value, 50) or '(empty)'} {count:,}" for value, count in common)
    more = f", {distinct - len(common):,} more values" if distinct > len(common) else ""
    return f"{column.name}: {shown}{more}", 14.0 if column.name in _STATUS_COLUMNS else 3.0
