"""Draws a chart as lines of text for a terminal, from 40 columns on and without colours.

Each line of the chart has a character of its own, from its lowest to its highest value in each column. The characters
have a replacement in ASCII for terminals that cannot show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.charts.scales import span_text, time_ticks, value_scale
from holmes.values.charts import number
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.charts.scales import ValueScale
    from holmes.values.charts import Chart, ChartLine

_ROWS: Final = 10
_FEWEST_COLUMNS: Final = 40
_MOST_COLUMNS: Final = 100
_LABEL_COLUMNS: Final = 9
_VALUE_LABELS: Final = (0, _ROWS // 2, _ROWS - 1)
_MOST_MARKS: Final = 4
_TICK_COLUMNS: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotCharacters:
    """The characters of a plot: for the lines, the threshold, events, the corner and the axes."""

    lines: str
    threshold: str
    mark: str
    side: str
    corner: str
    floor: str
    ellipsis: str


UNICODE: Final = PlotCharacters(
    lines="●▲■◆○△□◇", threshold="╌", mark="┊", side="┤", corner="└", floor="─", ellipsis="…"
)
ASCII: Final = PlotCharacters(lines="*x+o%#@&", threshold="-", mark=":", side="|", corner="+", floor="-", ellipsis="~")


def draw_plot(chart: Chart, columns: int, *, encoding: str = "utf-8") -> tuple[str, ...]:
    """Draw `chart` in at most `columns` columns, with characters that `encoding` has."""
    characters = UNICODE if _can_write(encoding, "".join((*UNICODE.lines, "╌┊┤└─…"))) else ASCII
    columns = max(_FEWEST_COLUMNS, min(columns, _MOST_COLUMNS))
    scale = value_scale(chart)
    width = columns - _LABEL_COLUMNS - 2
    cells = _cells(chart, scale, width, characters)
    lines = [_line(chart.title, columns, characters)]
    lines += [
        f"{_value_label(row, scale):>{_LABEL_COLUMNS}} {characters.side}{''.join(cells[row])}".rstrip()
        for row in range(_ROWS)
    ]
    lines += [
        f"{'':{_LABEL_COLUMNS}} {characters.corner}{characters.floor * width}",
        f"{'':{_LABEL_COLUMNS}}  {_time_labels(chart, width)}".rstrip(),
        *(_line(text, columns, characters) for text in _legend(chart, scale, characters)),
    ]
    return tuple(line if _can_write(encoding, line) else _written(line, encoding) for line in lines)


def _can_write(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _written(text: str, encoding: str) -> str:
    """Return the text with `?` for the characters of a name that the terminal cannot show."""
    try:
        return text.encode(encoding, "replace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "replace").decode("ascii")


def _line(text: str, columns: int, characters: PlotCharacters) -> str:
    return shortened(" ".join(text.split()), columns, mark=characters.ellipsis)


def _cells(chart: Chart, scale: ValueScale, width: int, characters: PlotCharacters) -> list[list[str]]:
    """Return the rows of the plot, the highest first: events and threshold behind the lines, the first line on top."""
    cells = [[" "] * width for _ in range(_ROWS)]
    for mark in chart.marks:
        for cell_row in cells:
            cell_row[_column(mark.time, chart, width)] = characters.mark
    if chart.threshold is not None and scale.shows_threshold:
        cells[_row(chart.threshold.value, scale)] = [characters.threshold] * width
    for line, character in reversed(list(zip(chart.lines, characters.lines, strict=False))):
        for column, (low, high) in _extents(line, chart, width):
            for row in range(_row(high, scale), _row(low, scale) + 1):
                cells[row][column] = character
    return cells


def _extents(line: ChartLine, chart: Chart, width: int) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the lowest and the highest value of each column, also between two samples that are not a gap apart."""
    extents = dict[int, tuple[float, float]]()
    before: tuple[float, float, int] | None = None
    longest = max(1.5 * chart.step_seconds, 2.5 * (chart.end - chart.start) / max(1, len(line.times)))
    for time, value in zip(line.times, line.values, strict=True):
        column = _column(time, chart, width)
        low, high = extents.get(column, (value, value))
        extents[column] = min(low, value), max(high, value)
        if before is not None and time - before[0] <= longest:
            for between in range(before[2] + 1, column):
                extents[between] = (middle := (before[1] + value) / 2, middle)
        before = time, value, column
    yield from extents.items()


def _column(time: float, chart: Chart, width: int) -> int:
    share = (time - chart.start) / max(1.0, chart.end - chart.start)
    return max(0, min(width - 1, int(share * width)))


def _row(value: float, scale: ValueScale) -> int:
    share = (value - scale.low) / (scale.high - scale.low)
    return _ROWS - 1 - max(0, min(_ROWS - 1, int(share * _ROWS)))


def _value_label(row: int, scale: ValueScale) -> str:
    """Return the value in the middle of a labelled row, with as many digits as there is room for."""
    if row not in _VALUE_LABELS:
        return ""
    value = (scale.high - (row + 0.5) * (scale.high - scale.low) / _ROWS) / scale.divisor
    written = number(float(f"{value:.3g}"))
    return written if len(written) <= _LABEL_COLUMNS else f"{value:.2e}"


def _time_labels(chart: Chart, width: int) -> str:
    row = [" "] * (width + _LABEL_COLUMNS)
    for time, label in time_ticks(chart.start, chart.end, max(2, width // _TICK_COLUMNS)):
        column = _column(time, chart, width)
        if column + len(label) <= width:
            row[column : column + len(label)] = label
    return "".join(row).rstrip()


def _legend(chart: Chart, scale: ValueScale, characters: PlotCharacters) -> Iterator[str]:
    unit = f", in {scale.unit}" if scale.unit else ""
    yield f"{span_text(chart.start, chart.end)}{unit}{_left_out(chart)}"
    for line, character in zip(chart.lines, characters.lines, strict=False):
        first, last = (number(float(f"{line.values[place] / scale.divisor:.4g}")) for place in (0, -1))
        yield f"{character} {first} to {last}: {line.name}"
    if chart.threshold is not None:
        outside = "" if scale.shows_threshold else ", outside of the plot"
        yield f"{characters.threshold} threshold {chart.threshold.text}{outside}"
    for mark in _shown_marks(chart):
        yield f"{characters.mark} {mark}"


def _left_out(chart: Chart) -> str:
    return f", {len(chart.lines)} of {chart.series:,} series" if chart.series > len(chart.lines) else ""


def _shown_marks(chart: Chart) -> Sequence[str]:
    texts = [f"{span_text(mark.time, mark.time).split(' to ')[0]} {mark.text}" for mark in chart.marks[:_MOST_MARKS]]
    more = len(chart.marks) - _MOST_MARKS
    return [*texts, f"{more} more events"] if more > 0 else texts
