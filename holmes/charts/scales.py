"""The axes of charts: round times, the unit of values, and the range that is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.values.charts import Chart

_TIME_STEPS: Final = (
    *(1, 5, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 345_600, 604_800),
)
_BYTES: Final = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
_LARGE: Final = (("billions", 1e9), ("millions", 1e6))
_FARTHEST_THRESHOLD: Final = 4.0
"""A threshold is shown if it makes the range of values at most this many times as large."""
_MARGIN: Final = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScale:
    """The lowest and the highest shown value, and the unit in which `divisor` makes them readable."""

    low: float
    high: float
    unit: str
    divisor: float
    shows_threshold: bool


def value_scale(chart: Chart) -> ValueScale:
    """Choose the range of values: that of all lines, with the threshold if the lines stay readable beside it."""
    values = [value for line in (*chart.lines, *chart.background) for value in (min(line.values), max(line.values))]
    low, high = min(values), max(values)
    shows_threshold = False
    if chart.threshold is not None:
        wide_low, wide_high = min(low, chart.threshold.value), max(high, chart.threshold.value)
        size = max(high - low, abs(high) / 2, abs(low) / 2)
        shows_threshold = wide_high - wide_low <= _FARTHEST_THRESHOLD * size or size == 0
        low, high = (wide_low, wide_high) if shows_threshold else (low, high)
    if 0 < low < high / 2:
        low = 0.0
    room = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
    unit, divisor = _readable_unit(chart.unit, max(abs(low), abs(high)))
    return ValueScale(
        low=low if low == 0 else low - room,
        high=high + room,
        unit=unit,
        divisor=divisor,
        shows_threshold=shows_threshold,
    )


def _readable_unit(unit: str, largest: float) -> tuple[str, float]:
    """Return the unit for a chart with this largest value, for example `MiB` and 1,048,576, or `ms` and 0.001."""
    if unit.startswith("bytes"):
        name, divisor = next((each for each in _BYTES if largest >= each[1]), ("bytes", 1.0))
        return unit.replace("bytes", name, 1), divisor
    if unit == "seconds" and 0 < largest < 1:
        return "ms", 0.001
    name, divisor = next((each for each in _LARGE if largest >= each[1]), ("", 1.0))
    return f"{name} {unit}".strip(), divisor


def time_ticks(start: float, end: float, most: int) -> tuple[tuple[float, str], ...]:
    """Return at most `most` round times in UTC, with their labels."""
    length = end - start
    step = next((each for each in _TIME_STEPS if length / each < most), _TIME_STEPS[-1] * math.ceil(length / 1e6))
    first = math.ceil(start / step) * step
    form = "%H:%M:%S" if step < 60 else "%H:%M"
    if length > 86_400:
        form = "%m-%d" if step >= 86_400 else "%m-%d %H:%M"
    times = [first + step * place for place in range(most) if first + step * place <= end]
    return tuple((time, datetime.fromtimestamp(time, UTC).strftime(form)) for time in times)


def span_text(start: float, end: float) -> str:
    """Write a time range with its zone, with one date if both ends have the same."""
    first, last = (datetime.fromtimestamp(each, UTC) for each in (start, end))
    until = last.strftime("%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M")
    return f"{first:%Y-%m-%d %H:%M} to {until} UTC"
