"""Selects log lines by bounds on a number in them: "took above 35 ms"."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.triage.log_lines import LineFilter
from holmes.triage.log_values import TIME_UNITS, chosen_series, series_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine


def bounds_of_lines(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield the bounds on a number in the lines: "took above 35 ms". A bound on another number stays in the ledger."""
    for bound in asked.question.comparisons:
        series = chosen_series(asked.question, series_of(found))
        if series is None:
            continue
        scale = TIME_UNITS.get(bound.of, 1.0) / TIME_UNITS.get(series.unit, 1.0) if bound.of in TIME_UNITS else 1.0
        limit = replace(bound, number=bound.number * scale)
        lines = {line for line, value in zip(series.lines, series.values, strict=True) if limit.holds(value)}
        asked.ledger.take("bound", str(bound))
        yield LineFilter(told=f"with `{series.key}` {bound}", holds=lines.__contains__)


def bounds_left(asked: Asked, filters: Sequence[LineFilter]) -> tuple[str, ...]:
    """Return the bounds of the question that are in no filter."""
    return tuple(
        str(each) for each in asked.question.comparisons if not any(one.told.endswith(f"` {each}") for one in filters)
    )
