"""Reads an alert from its source: the rule, its condition now and over time, and the series that contribute most."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.access import QueryRejectedError
from holmes.observability.metrics.conditions import condition_of
from holmes.observability.metrics.series import finite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.metrics.conditions import Condition
    from holmes.observability.metrics.series import ActiveAlert, Labels, Rule, Series
    from holmes.observability.metrics.source import MetricsSource

_SAMPLES: Final = 240
_BEFORE_SECONDS: Final = 3_600.0
_LONGEST_SECONDS: Final = 6 * 3_600.0
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

    `active` contains the alerts of the rule that the labels do not contradict. `value` is the measured value now, and
    `series` the series over time, if it was read. `is_own` is false if no series has the labels of the alert. Then it
    is the one that is furthest over the threshold. `limit` is the value that the condition compares with, if it is not
    a constant. `is_met` tells whether the condition is met now, and `spans` when it was. `parts` counts the
    contributions.
    """

    rule: Rule
    condition: Condition
    start: float
    step_seconds: float
    active: tuple[ActiveAlert, ...] = ()
    value: float | None = None
    series: Series | None = None
    is_own: bool = True
    limit: float | None = None
    is_met: bool = False
    spans: tuple[Span, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    parts: int = 0


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
    now = moment.now
    began = now if moment.began is None else min(moment.began, now)
    length = min(now - began + max(_BEFORE_SECONDS, 2 * rule.hold_seconds), _LONGEST_SECONDS)
    step = max(_LEAST_STEP_SECONDS, math.ceil(length / _SAMPLES))
    # The samples end at this moment.
    start = now - step * math.ceil(length / step)
    condition = condition_of(rule.query)
    reading = AlertReading(
        rule=rule,
        condition=condition,
        start=start,
        step_seconds=step,
        active=tuple(each for each in rule.alerts if _agrees(each.labels, labels)),
    )
    met, measured, limits, parts = await asyncio.gather(
        source.instant(rule.query, now),
        source.instant(condition.measured, now),
        _optional(source, condition.limit, now),
        _optional(source, condition.parts.query if condition.parts is not None else "", now),
    )
    met_now, values = _finite(met.series), _finite(measured.series)
    met_history, history = await asyncio.gather(
        _over_time(source, rule.query, reading, now, len(met_now)),
        _over_time(source, condition.measured, reading, now, len(values)),
    )
    chosen, is_own = _series_of(values, history, labels, condition)
    own = dict(chosen.labels) if chosen is not None else {}
    # Without labels that single out a series, the condition is that of the whole rule.
    of_alert = labels if is_own else {}
    is_met = bool(_fitting(met_now, of_alert))
    contributions = _contributions(parts, condition, own) if chosen is not None else ()
    return replace(
        reading,
        value=chosen.values[-1] if chosen is not None and chosen in values else None,
        series=next((each for each in history if chosen is not None and each.labels == chosen.labels), None),
        is_own=is_own,
        limit=next((each.values[-1] for each in _fitting(limits, own)), None),
        is_met=is_met,
        spans=_spans(_fitting(met_history, of_alert), now, step, is_met=is_met),
        contributions=contributions[:_MOST_PARTS],
        parts=len(contributions),
    )


async def _over_time(
    source: MetricsSource, query: str, reading: AlertReading, now: float, series: int
) -> Sequence[Series]:
    """Read a query since the start of the reading, unless it has very many series."""
    if series > _MOST_SERIES:
        return ()
    result = await source.range(query, start=reading.start, end=now, step_seconds=reading.step_seconds)
    return _finite(result.series)


async def _optional(source: MetricsSource, query: str, now: float) -> Sequence[Series]:
    """Read a part of the condition, which the source may reject alone. Without it, the reading has less to tell."""
    if not query:
        return ()
    try:
        return _finite((await source.instant(query, now)).series)
    except QueryRejectedError:
        return ()


def _finite(series: Sequence[Series]) -> list[Series]:
    """Return the series without samples such as NaN, and none that has no others."""
    return [kept for each in series if (kept := finite(each)).values]


def _series_of(
    now: Sequence[Series], history: Sequence[Series], labels: Mapping[str, str], condition: Condition
) -> tuple[Series | None, bool]:
    """Return the measured series of the alert, also one that has ended.

    If no series has its labels, return the one that is furthest over the threshold, and false.
    """
    sign = -1 if condition.comparison.startswith("<") else 1

    def rank(each: Series) -> tuple[int, float]:
        shared = sum(labels.get(name) == value for name, value in each.labels)
        return shared, each.times[-1] if condition.is_absence else sign * each.values[-1]

    for measured in (now, history):
        own = [each for each in _fitting(measured, labels) if rank(each)[0] or not each.labels]
        if own:
            return max(own, key=rank), True
    return max(now or history, key=rank, default=None), not labels


def _fitting(series: Sequence[Series], labels: Mapping[str, str]) -> list[Series]:
    """Return the series whose labels do not contradict `labels`: an alert has those of its series and of its rule."""
    return [each for each in series if _agrees(each.labels, labels)]


def _agrees(own: Labels, labels: Mapping[str, str]) -> bool:
    return all(labels.get(name, value) == value for name, value in own)


def _spans(series: Sequence[Series], now: float, step_seconds: float, *, is_met: bool) -> tuple[Span, ...]:
    """Return the times in which an expression had samples. The last one is open if the condition is met now."""
    times = sorted({time for each in series for time in each.times})
    longest, spans = 1.5 * step_seconds, list[Span]()
    for time in times:
        if spans and time - (spans[-1].ended or 0) <= longest:
            spans[-1] = replace(spans[-1], ended=time)
        else:
            spans.append(Span(began=time, ended=time))
    if is_met and series:
        if spans and now - (spans[-1].ended or 0) <= longest:
            spans[-1] = replace(spans[-1], ended=None)
        else:
            spans.append(Span(began=now, ended=None))
    return tuple(spans)


def _contributions(parts: Sequence[Series], condition: Condition, own: Mapping[str, str]) -> tuple[Contribution, ...]:
    """Return the series below the aggregation that belong to the measured series, the one that counts most first."""
    if condition.parts is None:
        return ()
    found = _fitting(parts, own)
    total = sum(each.values[-1] for each in found) if condition.parts.adds else 0.0
    lowest = condition.comparison.startswith("<")
    found.sort(key=lambda each: each.values[-1] if lowest else -each.values[-1])
    return tuple(
        Contribution(
            labels=tuple(pair for pair in each.labels if pair[0] not in own),
            value=each.values[-1],
            share=each.values[-1] / total if total > 0 else None,
        )
        for each in found
    )
