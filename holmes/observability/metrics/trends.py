"""Describes a series in numbers: its level, its slope, and the times at which it changed, reset or had no samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.metrics.series import Series

_MOST_CHANGES: Final = 3
_FEWEST_SAMPLES: Final = 4
"""The shortest part of a series that counts as a level."""
_SIGNIFICANT: Final = 3.0
"""A change must be this many times as large as the spread around both levels."""
_LEAST_CHANGE: Final = 0.1
"""A change must be at least this part of the larger level."""
_LINE: Final = 0.1
_LEAST_GAIN: Final = 0.05
"""A split must explain this part of the squared error of the whole series."""
_GAP_STEPS: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """At `time`, in seconds since 1970, the mean of the series changes from `before` to `after`."""

    time: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The description of one series. Times are in seconds since 1970.

    `slope_per_hour` is that of the best straight line, in units of the value. `steady` is true if that line describes
    the series better than levels do, so that it has no `changes`. `gaps` are the first and last missing step.
    `decreases` are resets if the metric is a counter.
    """

    first: float
    first_time: float
    last: float
    last_time: float
    minimum: float
    maximum: float
    maximum_time: float
    mean: float
    percentile_95: float
    slope_per_hour: float
    steady: bool
    changes: tuple[Change, ...]
    gaps: tuple[tuple[float, float], ...]
    decreases: int


def trend_of(series: Series, step_seconds: float) -> Trend | None:
    """Describe the finite samples of a series, or return None if it has none."""
    pairs = [(time, value) for time, value in zip(series.times, series.values, strict=True) if math.isfinite(value)]
    if not pairs:
        return None
    times, values = [time for time, _ in pairs], [value for _, value in pairs]
    ordered = sorted(values)
    slope = _slope(times, values)
    steady = _is_line(times, values, slope)
    highest = max(range(len(values)), key=values.__getitem__)
    return Trend(
        first=values[0],
        first_time=times[0],
        last=values[-1],
        last_time=times[-1],
        minimum=ordered[0],
        maximum=ordered[-1],
        maximum_time=times[highest],
        mean=fmean(values),
        percentile_95=ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)],
        slope_per_hour=slope * 3_600,
        steady=steady,
        changes=() if steady else _changes(times, values),
        gaps=_gaps(times, step_seconds),
        decreases=sum(after < before for before, after in pairwise(values)),
    )


def unlike_the_others(levels: Sequence[float]) -> tuple[int, ...]:
    """Return the positions of the levels that differ from the others: by ten times the usual distance to the median.

    Fewer than four levels have no usual distance.
    """
    if len(levels) < 4:
        return ()
    middle = median(levels)
    usual = median(abs(each - middle) for each in levels)
    least = max(10 * usual, _LEAST_CHANGE * abs(middle), 1e-12)
    unlike = tuple(place for place, each in enumerate(levels) if abs(each - middle) > least)
    return unlike if 3 * len(unlike) <= len(levels) else ()


def _slope(times: Sequence[float], values: Sequence[float]) -> float:
    middle_time, middle_value = fmean(times), fmean(values)
    spread = sum((time - middle_time) ** 2 for time in times)
    if spread == 0:
        return 0.0
    return (
        sum((time - middle_time) * (value - middle_value) for time, value in zip(times, values, strict=True)) / spread
    )


def _is_line(times: Sequence[float], values: Sequence[float], slope: float) -> bool:
    """Return whether a straight line that is not flat leaves less than a tenth of the variance of the values."""
    middle_time, middle_value = fmean(times), fmean(values)
    total = sum((value - middle_value) ** 2 for value in values)
    rest = sum(
        (value - middle_value - slope * (time - middle_time)) ** 2 for time, value in zip(times, values, strict=True)
    )
    return len(values) > 2 * _FEWEST_SAMPLES and total > 0 and rest < _LINE * total


def _gaps(times: Sequence[float], step_seconds: float) -> tuple[tuple[float, float], ...]:
    longest = _GAP_STEPS * step_seconds
    return tuple(
        (before + step_seconds, after - step_seconds) for before, after in pairwise(times) if after - before > longest
    )


def _changes(times: Sequence[float], values: Sequence[float]) -> tuple[Change, ...]:
    """Split the series where its mean changes most, and its parts again. Then remove the splits that prove nothing.

    A short rise has no single split that is significant, so significance is tested after all splits are known.
    """
    sums = _Sums(values)
    least = _LEAST_GAIN * sums.error(0, len(values))
    found = list[int]()
    parts = [(0, len(values))]
    while parts and len(found) < 2 * _MOST_CHANGES:
        splits = [(*_best_split(sums, *part), part) for part in parts]
        gain, place, part = max(splits)
        if gain <= least:
            break
        found.append(place)
        parts.remove(part)
        parts += [(part[0], place), (place, part[1])]
    places = _significant(sums, sorted(_apart(found)), len(values))[:_MOST_CHANGES]
    borders = (0, *places, len(values))
    means = [sums.mean(start, end) for start, end in pairwise(borders)]
    return tuple(
        Change(time=times[place], before=before, after=after)
        for place, (before, after) in zip(places, pairwise(means), strict=True)
    )


class _Sums:
    """The mean and the squared error of any part of a series, in constant time."""

    def __init__(self, values: Sequence[float]) -> None:
        middle = fmean(values)
        self._middle = middle
        self._sums = (0.0, *accumulate(value - middle for value in values))
        self._squares = (0.0, *accumulate((value - middle) ** 2 for value in values))

    def mean(self, start: int, end: int) -> float:
        return self._middle + (self._sums[end] - self._sums[start]) / (end - start)

    def error(self, start: int, end: int) -> float:
        total = self._sums[end] - self._sums[start]
        return max(0.0, self._squares[end] - self._squares[start] - total * total / (end - start))


def _best_split(sums: _Sums, start: int, end: int) -> tuple[float, int]:
    """Return how much smaller the squared error is after the best split, and its place. Short parts have none."""
    places = range(start + _FEWEST_SAMPLES, end - _FEWEST_SAMPLES + 1)
    if not places:
        return 0.0, start
    rest, place = min((sums.error(start, each) + sums.error(each, end), each) for each in places)
    return sums.error(start, end) - rest, place


def _apart(places: Sequence[int]) -> list[int]:
    """Return the places that are not close to an earlier place: between two levels, a few samples are in transition."""
    kept = list[int]()
    for place in places:
        if all(abs(place - other) >= 2 * _FEWEST_SAMPLES for other in kept):
            kept.append(place)
    return kept


def _significant(sums: _Sums, places: list[int], count: int) -> list[int]:
    """Remove the weakest split until each change is much larger than the spread around both of its levels."""
    while places:
        borders = (0, *places, count)
        weights = [_weight(sums, *around) for around in zip(borders, borders[1:], borders[2:], strict=False)]
        weakest = min(range(len(places)), key=weights.__getitem__)
        if weights[weakest] > _SIGNIFICANT:
            break
        places.pop(weakest)
    return places


def _weight(sums: _Sums, start: int, place: int, end: int) -> float:
    """Return a change as a multiple of the spread around its levels. 0: the change is small for its level."""
    before, after = sums.mean(start, place), sums.mean(place, end)
    change, level = abs(after - before), max(abs(before), abs(after))
    if change < _LEAST_CHANGE * level or change <= 1e-9 * level:
        return 0.0
    spread = math.sqrt((sums.error(start, place) + sums.error(place, end)) / (end - start))
    return change / max(spread, 1e-9 * level)
