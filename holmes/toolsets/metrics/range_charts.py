"""Describes a range result in numbers, and as a chart with the threshold and the events that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import finite
from holmes.observability.metrics.units import unit_of
from holmes.toolsets.metrics.texts import range_rows, range_text
from holmes.values.charts import MOST_LINES, Chart, ChartLine

if TYPE_CHECKING:
    from holmes.observability.metrics.series import QueryResult, Series
    from holmes.toolsets.metrics.ranges import TimeRange
    from holmes.toolsets.metrics.texts import RangeRows
    from holmes.values.charts import ChartMark, Threshold

_MOST_BACKGROUND: Final = 192
_NAME_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The threshold and the events that a chart shows beside the series."""

    threshold: Threshold | None = None
    marks: tuple[ChartMark, ...] = ()


def described(query: str, result: QueryResult, asked: TimeRange, context: Context) -> tuple[str, Chart | None]:
    """Return the text of a result, and its chart if it has samples. The function is CPU-bound."""
    rows = range_rows(result, asked)
    text = range_text(query, result, asked, rows)
    return text, _chart(query, rows, asked, context) if rows.ordered else None


def _chart(query: str, rows: RangeRows, asked: TimeRange, context: Context) -> Chart:
    named, others = rows.ordered[:MOST_LINES], rows.ordered[MOST_LINES : MOST_LINES + _MOST_BACKGROUND]
    return Chart(
        title=" ".join(query.split()),
        unit=unit_of(query),
        start=asked.start,
        end=asked.end,
        step_seconds=asked.step_seconds,
        lines=tuple(_line(row.name[:_NAME_CHARACTERS], row.series) for row in named),
        background=tuple(_line("", row.series) for row in others),
        series=len(rows.ordered),
        threshold=context.threshold,
        marks=context.marks,
    )


def _line(name: str, series: Series) -> ChartLine:
    known = finite(series)
    return ChartLine(name=name, times=known.times, values=known.values)
