"""Reads an alert from its source: the rule, its condition now and over time, and the series that contribute most."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.conditions import condition_of
from holmes.observability.metrics.source import QueryRejectedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.metrics.conditions import Condition
    from holmes.observability.metrics.series import Labels, Rule, Series
    from holmes.observability.metrics.source import MetricsSource

_SAMPLES: Final = 180
_BEFORE_SECONDS: Final = 3_600.0
_LONGEST_SECONDS: Final = 7 * 86_400.0
_LEAST_STEP_SECONDS: Final = 15.0
_MOST_SERIES: Final = 500
_MOST_PARTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The time of a reading and, if known, when the alert began. In seconds since 1970."""

    now: float
    began: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time in which the condition held, in seconds since 1970. It holds now if `ended` is None."""

    began: float
    ended: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One series below the aggregation of a condition. `share` is its part of the sum, or None."""

    labels: Labels
    value: float
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReading:
    """The condition of an alert, now and since `start`.

    `series` is the measured series of this alert over time, or None if it has none. `is_own` is false if no series has
    the labels of the alert. Then it is the one that is furthest over the threshold. `limit` is the value that the
    condition compares with, if it is not a constant. `parts` is the number of all contributions, and `firing` that of
    the active alerts of the rule.
    """

    rule: Rule
    condition: Condition | None
    start: float
    step_seconds: float
    series: Series | None = None
    is_own: bool = True
    limit: float | None = None
    spans: tuple[Span, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    parts: int = 0
    firing: int = 0


def rule_of(rules: Sequence[Rule], name: str, labels: Mapping[str, str]) -> Rule | None:
    """Return the alerting rule with this name. Of several, the one with an active alert that has most of the labels."""
    named = [rule for rule in rules if rule.kind == "alerting" and rule.name == name]

    def fit(rule: Rule) -> tuple[int, int]:
        own = set(labels.items())
        shared = max((len(own & set(alert.labels)) for alert in rule.alerts), default=0)
        return shared, len(rule.alerts)

    return max(named, key=fit, default=None)


async def read_alert(source: MetricsSource, rule: Rule, labels: Mapping[str, str], moment: Moment) -> AlertReading:
    """Evaluate the condition of `rule` now and over time. Raises `ToolError`."""
    began = moment.now if moment.began is None else min(moment.began, moment.now)
    start = max(began - max(_BEFORE_SECONDS, 2 * rule.hold_seconds), moment.now - _LONGEST_SECONDS)
    step = max(_LEAST_STEP_SECONDS, float(round((moment.now - start) / _SAMPLES)))
    reading = AlertReading(
        rule=rule,
        condition=condition_of(rule.query),
        start=start,
        step_seconds=step,
        firing=sum(alert.state == "firing" for alert in rule.alerts),
    )
    condition = reading.condition
    if condition is None:
        return reading
    met, measured, limit, parts = await asyncio.gather(
        _over_time(source, rule.query, reading, moment.now),
        _over_time(source, condition.measured, reading, moment.now),
        _at_once(source, condition.limit, moment.now),
        _at_once(source, condition.parts.query if condition.parts is not None else "", moment.now),
    )
    series, is_own = _series_of(measured, labels, condition)
    own = dict(series.labels) if series is not None else {}
    contributions = _contributions(parts, condition, own)
    return replace(
        reading,
        series=series,
        is_own=is_own,
        limit=next((each.values[-1] for each in _fitting(limit, own) if each.values), None),
        spans=_spans(_fitting(met, labels) or ([] if is_own else met), moment.now, step),
        contributions=contributions[:_MOST_PARTS],
        parts=len(contributions),
    )


async def _over_time(source: MetricsSource, query: str, reading: AlertReading, now: float) -> Sequence[Series]:
    """Read a query since the start of the reading, or only now if it has very many series."""
    if await _count(source, query, now) > _MOST_SERIES:
        return await _at_once(source, query, now)
    result = await source.range(query, start=reading.start, end=now, step_seconds=reading.step_seconds)
    return result.series


async def _at_once(source: MetricsSource, query: str, now: float) -> Sequence[Series]:
    if not query or await _count(source, query, now) > 10 * _MOST_SERIES:
        return ()
    return (await source.instant(query, now)).series


async def _count(source: MetricsSource, query: str, now: float) -> float:
    """Return the number of series, or 0 for a scalar, which cannot be counted."""
    try:
        counted = await source.instant(f"count({query})", now)
    except QueryRejectedError:
        return 0
    return counted.series[0].values[0] if counted.series and counted.series[0].values else 0


def _series_of(
    measured: Sequence[Series], labels: Mapping[str, str], condition: Condition
) -> tuple[Series | None, bool]:
    """Return the measured series of the alert, or else the one that is furthest over the threshold, and false."""
    sign = -1 if condition.comparison.startswith("<") else 1

    def rank(each: Series) -> tuple[int, float]:
        shared = sum(labels.get(name) == value for name, value in each.labels)
        return shared, each.times[-1] if condition.is_absence else sign * each.values[-1]

    filled = [each for each in measured if each.values]
    own = [each for each in _fitting(filled, labels) if rank(each)[0] or not each.labels]
    best = max(own or filled, key=rank, default=None)
    return best, bool(own) or not labels


def _fitting(series: Sequence[Series], labels: Mapping[str, str]) -> list[Series]:
    """Return the series whose labels do not contradict `labels`: an alert has those of its series and of its rule."""
    return [each for each in series if all(labels.get(name, value) == value for name, value in each.labels)]


def _spans(series: Sequence[Series], now: float, step_seconds: float) -> tuple[Span, ...]:
    """Return the times in which an expression had samples, the first first."""
    times = sorted({time for each in series for time in each.times})
    longest, spans = 1.5 * step_seconds, list[Span]()
    for time in times:
        if spans and time - (spans[-1].ended or 0) <= longest:
            spans[-1] = replace(spans[-1], ended=time)
        else:
            spans.append(Span(began=time, ended=time))
    if spans and now - (spans[-1].ended or 0) <= longest:
        spans[-1] = replace(spans[-1], ended=None)
    return tuple(spans)


def _contributions(parts: Sequence[Series], condition: Condition, own: Mapping[str, str]) -> tuple[Contribution, ...]:
    """Return the series below the aggregation that belong to the measured series, the one that counts most first."""
    if condition.parts is None:
        return ()
    by = [(name, own[name]) for name in condition.parts.by if name in own]
    found = [each for each in parts if each.values and all(pair in each.labels for pair in by)]
    total = sum(each.values[-1] for each in found) if condition.parts.adds else 0.0
    lowest = condition.comparison.startswith("<")
    found.sort(key=lambda each: each.values[-1] if lowest else -each.values[-1])
    return tuple(
        Contribution(
            labels=tuple(pair for pair in each.labels if pair not in by),
            value=each.values[-1],
            share=each.values[-1] / total if total > 0 else None,
        )
        for each in found
    )
