"""Reads the signals of a workload, and finds those that are saturated, rise to their limit, or changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from holmes.observability.metrics.series import finite, selector
from holmes.observability.metrics.signals import STATUS_LABELS, request_metrics, request_signals, signals_of
from holmes.observability.metrics.trends import trend_of
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.observability.metrics.series import Labels, Series
    from holmes.observability.metrics.signals import Signal, SignalSubject
    from holmes.observability.metrics.source import MetricsSource
    from holmes.observability.metrics.trends import Trend

Standing: TypeAlias = Literal["now", "rising", "happened", "before", "changed"]
"""How a signal differs from normal: saturated now or before, rising to its limit, an event, or changed by a factor."""
STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)
"""The standings, the most serious first."""
_LASTING_SAMPLES: Final = 3
_LONGEST_FORECAST_SECONDS: Final = 24 * 3_600.0
_LEAST_SHARE: Final = 0.5
"""A share below this is not told as rising: its limit is far."""
_FACTOR: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time of a reading, in seconds since 1970."""

    start: float
    end: float
    step_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outstanding:
    """A signal of one series that differs from normal. `since` is when it began, in seconds since 1970.

    `seconds_left` is the time until a rising share reaches its limit.
    """

    signal: Signal
    labels: Labels
    standing: Standing
    since: float
    trend: Trend
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalReadings:
    """The signals that stand out, the names of all signals that were read, and the errors of the others."""

    outstanding: tuple[Outstanding, ...]
    read: tuple[str, ...]
    failures: tuple[str, ...] = ()


async def read_signals(source: MetricsSource, subject: SignalSubject, span: Window) -> SignalReadings:
    """Read all signals that the source has for `subject`. Raises `ToolError` if none can be read.

    Without any metric of the named pods, nothing is read: those of their namespace may belong to another cluster.
    """
    names = frozenset(await source.label_values("__name__", f"{{{subject.selector}}}"))
    if subject.pods and not names:
        return SignalReadings(outstanding=(), read=())
    others = frozenset(await source.label_values("__name__", selector((("namespace", subject.namespace),))))
    signals = [*signals_of(names | others), *await _of_requests(source, subject, names)]
    results = await asyncio.gather(*(_read(source, subject.query(signal), span) for signal in signals))
    failures = [
        f"{signal.name}: {each}" for signal, each in zip(signals, results, strict=True) if isinstance(each, ToolError)
    ]
    if failures and len(failures) == len(signals):
        raise ToolError(failures[0])
    found: list[Outstanding] = []
    for signal, result in zip(signals, results, strict=True):
        if not isinstance(result, ToolError):
            found += [each for series in result if (each := _judged(signal, series, span)) is not None]
    found.sort(key=lambda each: (STANDINGS.index(each.standing), each.since))
    return SignalReadings(
        outstanding=tuple(found), read=tuple(signal.name for signal in signals), failures=tuple(failures)
    )


async def _of_requests(source: MetricsSource, subject: SignalSubject, names: frozenset[str]) -> Iterator[Signal]:
    metric = next(iter(request_metrics(names)), "")
    if not metric:
        return iter(())
    try:
        labels = await source.label_names(f"{metric}{{{subject.selector}}}")
    except ToolError:
        return iter(())
    return request_signals(metric, next((each for each in STATUS_LABELS if each in labels), ""))


async def _read(source: MetricsSource, query: str, span: Window) -> tuple[Series, ...] | ToolError:
    try:
        return (await source.range(query, start=span.start, end=span.end, step_seconds=span.step_seconds)).series
    except ToolError as error:
        return error


def _judged(signal: Signal, series: Series, span: Window) -> Outstanding | None:
    """Return how the series differs from normal, or None if it does not."""
    series = finite(series)
    trend = trend_of(series, span.step_seconds) if series.values else None
    if trend is None:
        return None
    found: tuple[Standing, float, float | None] | None
    match signal.kind:
        case "share":
            found = _of_share(signal, series, trend, is_current=trend.last_time >= span.end - 1.5 * span.step_seconds)
        case "count":
            found = _of_count(signal, series)
        case "level":
            found = _of_level(trend)
    if found is None:
        return None
    standing, since, left = found
    return Outstanding(
        signal=signal, labels=series.labels, standing=standing, since=since, trend=trend, seconds_left=left
    )


def _of_share(
    signal: Signal, series: Series, trend: Trend, *, is_current: bool
) -> tuple[Standing, float, float | None] | None:
    """Judge a share. `is_current` is false if the series ended, for example with its pod."""
    runs = _runs_above(series, signal.high)
    if runs:
        start, end = runs[-1]
        return ("now" if is_current and end == series.times[-1] else "before"), start, None
    if is_current and trend.steady and trend.slope_per_hour > 0 and trend.last >= _LEAST_SHARE:
        left = (1.0 - trend.last) / trend.slope_per_hour * 3_600
        if left <= _LONGEST_FORECAST_SECONDS:
            return "rising", trend.first_time, left
    return None


def _of_count(signal: Signal, series: Series) -> tuple[Standing, float, float | None] | None:
    happened = [time for time, value in zip(series.times, series.values, strict=True) if value >= signal.high]
    return ("happened", happened[0], None) if happened else None


def _runs_above(series: Series, high: float) -> list[tuple[float, float]]:
    """Return the times in which a share was at least `high`, for a few samples or longer."""
    runs, run = list[tuple[float, float]](), list[float]()
    for time, value in zip(series.times, series.values, strict=True):
        if value >= high:
            run.append(time)
            continue
        if len(run) >= _LASTING_SAMPLES:
            runs.append((run[0], run[-1]))
        run = []
    if len(run) >= _LASTING_SAMPLES:
        runs.append((run[0], run[-1]))
    return runs


def _of_level(trend: Trend) -> tuple[Standing, float, float | None] | None:
    """Return the last change by at least the factor two."""
    for change in reversed(trend.changes):
        larger, smaller = max(change.before, change.after), min(change.before, change.after)
        if larger > 0 and (smaller <= 0 or larger / smaller >= _FACTOR):
            return "changed", change.time, None
    return None
