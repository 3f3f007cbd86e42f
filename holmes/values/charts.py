"""A diagram of time series as plain values, and its description in words. Drawing is the work of `holmes.charts`.

Times are in seconds since 1970. A tool attaches a chart to its result, so that each face can show it in its own way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_LINES: Final = 8
"""The maximum number of lines with a name. All others are in the background."""
_KEPT_SAMPLES: Final = 120
_ALT_LINES: Final = 3
_ALT_NAME_CHARACTERS: Final = 60
_ALT_TITLE_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """One series: ascending times, and finite values."""

    name: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """An event at a time, for example `restart checkout-1`."""

    time: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The value at which an alert fires. `text` has the comparison and the alert, for example `> 5 (TooSlow)`."""

    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """At most eight lines, the most important first, and further lines without names for the background.

    `series` counts all series of the result. Two samples that are more than 1.5 steps apart have a gap between them.
    """

    title: str
    start: float
    end: float
    step_seconds: float
    lines: tuple[ChartLine, ...]
    unit: str = ""
    series: int = 0
    background: tuple[ChartLine, ...] = ()
    threshold: Threshold | None = None
    marks: tuple[ChartMark, ...] = ()


def number(value: float) -> str:
    """Write a value with four significant digits, without an exponent where a person would not use one."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    size = abs(value)
    if size == 0 or (value == int(value) and size < 1e6):
        return f"{value:g}"
    if size >= 10_000:
        return f"{value:,.0f}" if size < 1e15 else f"{value:.3e}"
    return f"{value:.4g}"


def clock(seconds: float) -> str:
    """Write a time in UTC, without seconds if they are zero."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").replace(":00Z", "Z")


def alt_text(chart: Chart) -> str:
    """Describe the chart in one line for a reader who cannot see it: first, last, min and max of the first lines."""
    unit = f", in {chart.unit}" if chart.unit else ""
    parts = [f"{shortened(chart.title, _ALT_TITLE_CHARACTERS)}{unit}, {clock(chart.start)} to {clock(chart.end)}"]
    for line in chart.lines[:_ALT_LINES]:
        values = line.values
        level = f"first {number(values[0])}, last {number(values[-1])}"
        name = shortened(line.name, _ALT_NAME_CHARACTERS)
        parts.append(f"{name}: {level}, min {number(min(values))}, max {number(max(values))}")
    if chart.series > _ALT_LINES:
        parts.append(f"{chart.series - _ALT_LINES:,} more series")
    if chart.threshold is not None:
        parts.append(f"threshold {chart.threshold.text}")
    parts += [f"{mark.text} at {clock(mark.time)}" for mark in chart.marks[:_ALT_LINES]]
    return "; ".join(" ".join(part.split()) for part in parts)


def with_texts(chart: Chart, change: Callable[[str], str]) -> Chart:
    """Return the chart with each of its texts changed, for example masked."""
    threshold = chart.threshold
    return replace(
        chart,
        title=change(chart.title),
        unit=change(chart.unit),
        lines=tuple(replace(line, name=change(line.name)) for line in chart.lines),
        threshold=None if threshold is None else replace(threshold, text=change(threshold.text)),
        marks=tuple(replace(mark, text=change(mark.text)) for mark in chart.marks),
    )


def thinned(chart: Chart) -> Chart:
    """Return a small chart for events: without the background, and with the extremes of long lines only."""
    return replace(chart, background=(), lines=tuple(map(_thinned_line, chart.lines)))


def _thinned_line(line: ChartLine) -> ChartLine:
    """Return the line with the lowest and the highest sample of each part of it."""
    count = len(line.values)
    if count <= _KEPT_SAMPLES:
        return line
    parts = _KEPT_SAMPLES // 2
    kept = {0, count - 1}
    for part in range(parts):
        places = range(part * count // parts, (part + 1) * count // parts)
        kept |= {min(places, key=line.values.__getitem__), max(places, key=line.values.__getitem__)}
    chosen = sorted(kept)
    return replace(
        line, times=tuple(line.times[place] for place in chosen), values=tuple(line.values[place] for place in chosen)
    )
