"""Writes the reading of an alert in a few lines, the most important first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.trends import trend_of
from holmes.toolsets.metrics.texts import labels_text, trend_text
from holmes.values.charts import clock, number
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.observability.metrics.alert_reading import AlertReading

_QUERY_CHARACTERS: Final = 300
_EMPTY: Final = re.compile(r"(?<=[A-Za-z0-9_:])\{\}")
_MOST_EARLIER: Final = 3


def alert_text(reading: AlertReading, now: float) -> str:
    """Describe an alert: its state, value and threshold, its times, the largest contributions, and its rule."""
    rule = reading.rule
    held = f" for {rule.hold_seconds:g} s" if rule.hold_seconds else ""
    lines = [
        f"{rule.name}: {_value_text(reading)}",
        _met_text(reading, now),
        f"state of the rule: {_state_text(reading)}",
        *_earlier_lines(reading, now),
        *_series_lines(reading),
        *_parts_lines(reading),
        f"rule: {_shown(rule.query)}{held} (group {rule.group})",
    ]
    lines += [f"the rule itself fails: {shortened(' '.join(rule.error.split()), 200)}"] if rule.error else []
    return "\n".join(lines)


def _met_text(reading: AlertReading, now: float) -> str:
    """Return whether the condition is met now and since when, or when it was last met."""
    span = reading.spans[-1] if reading.spans else None
    if reading.is_met:
        if span is None:
            return "the condition is met now; since when was not read, because very many series meet it"
        if span.began <= reading.start + reading.step_seconds:
            return f"the condition is met since before {clock(span.began)}"
        return f"the condition is met since {clock(span.began)}, {max(0.0, now - span.began) / 60:,.0f} minutes"
    if span is not None and span.ended is not None:
        return f"the condition is not met now: it was last met from {clock(span.began)} to {clock(span.ended)}"
    if reading.value is None and reading.series is None:
        return "the condition is not met, because the series has no samples: whether the alert is right is unknown"
    return f"the condition was not met between {clock(reading.start)} and {clock(now)}"


def _state_text(reading: AlertReading) -> str:
    active = reading.active
    if not active:
        return reading.rule.state or "unknown"
    first = min(active, key=lambda each: each.since)
    more = f", and {len(active) - 1} more" if len(active) > 1 else ""
    return f"{first.state} since {first.since}{more}"


def _earlier_lines(reading: AlertReading, now: float) -> Iterator[str]:
    earlier = reading.spans[:-1]
    if earlier:
        times = ", ".join(f"{clock(each.began)} to {clock(each.ended or now)}" for each in earlier[-_MOST_EARLIER:])
        yield f"it was also met {len(earlier)} times before: {times}" if len(earlier) > 1 else f"before that: {times}"


def _value_text(reading: AlertReading) -> str:
    """Return the value now, how far it is from the threshold, and what is measured."""
    condition, series = reading.condition, reading.series
    measured = f"; measured: {_shown(condition.measured)}"
    if condition.is_absence:
        seen = f", last seen at about {clock(series.times[-1])}" if series is not None else ""
        return f"fires while the series is absent{seen}{measured}"
    if reading.value is None:
        return f"the series has no samples now{measured}"
    limit = condition.threshold if condition.threshold is not None else reading.limit
    value = f"the value is {number(reading.value)}"
    if limit is None:
        return f"{value}{measured}"
    threshold = f"{condition.comparison} {number(limit)}{_factor(reading.value, limit)}"
    return f"{value}, and fires when {threshold}{measured}"


def _factor(value: float, limit: float) -> str:
    """Return how many times the threshold a value is, where that says something."""
    if limit <= 0 or value <= 0 or 0.9 < value / limit < 1.1:
        return ""
    return f" ({number(value / limit)} times the threshold)"


def _series_lines(reading: AlertReading) -> Iterator[str]:
    series = reading.series
    if series is None or len(series.values) < 2:
        return
    trend = trend_of(series, reading.step_seconds)
    if trend is None:
        return
    named = labels_text(series.labels) if series.labels else "the series"
    own = "" if reading.is_own else " (no series has the labels of the alert; this one is furthest over the threshold)"
    described = trend_text(trend, reading.start, series.times[-1], reading.step_seconds)
    yield f"{named}{own} since {clock(reading.start)}: {described}"


def _parts_lines(reading: AlertReading) -> Iterator[str]:
    found = reading.contributions
    if not found or (reading.parts == 1 and not found[0].labels):
        return
    shares = [f"{labels_text(each.labels)} {number(each.value)}{_share(each.share)}" for each in found]
    more = f" and {reading.parts - len(found)} more" if reading.parts > len(found) else ""
    yield f"contributions: {'; '.join(shares)}{more}"


def _share(share: float | None) -> str:
    return "" if share is None else f" ({share * 100:.0f} %)"


def _shown(query: str) -> str:
    return shortened(" ".join(_EMPTY.sub("", query).split()), _QUERY_CHARACTERS)
