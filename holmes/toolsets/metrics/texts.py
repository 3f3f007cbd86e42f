"""Writes metrics for the model: short, with numbers and times, and with the count of all that is left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import selector
from holmes.observability.metrics.trends import trend_of, unlike_the_others
from holmes.values.charts import clock, number
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.metrics.series import Labels, Metric, QueryResult, Rule, Series, Target
    from holmes.observability.metrics.trends import Trend
    from holmes.toolsets.metrics.ranges import TimeRange

_MOST_SERIES: Final = 6
_MOST_ROWS: Final = 30
_LABEL_CHARACTERS: Final = 160
_HELP_CHARACTERS: Final = 100
_WARNING_CHARACTERS: Final = 200
_MOST_WARNINGS: Final = 3


def instant_text(query: str, result: QueryResult, at: float) -> str:
    """List the series of an instant result, highest value first."""
    shared, rows = _without_shared(result.series)
    ordered = sorted(rows, key=lambda row: -_sortable(row[1].values))[:_MOST_ROWS]
    lines = [f"{query} at {clock(at)}: {_shown(len(ordered), len(result.series), 'series', 'series')}, highest first"]
    lines += [f"all have {selector(shared)}"] if shared else []
    lines += [f"{number(series.values[-1]) if series.values else 'no value'}  {name}" for name, series in ordered]
    return "\n".join([*lines, *_warnings(result)])


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """A series of a range with the name that its own labels give it. `differs` compares it with the others."""

    name: str
    series: Series
    trend: Trend
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRows:
    """The series that have samples, the most interesting first, and the labels that all series have."""

    shared: Labels
    ordered: tuple[RangeRow, ...]


def range_rows(result: QueryResult, asked: TimeRange) -> RangeRows:
    """Order the series: those first that differ from the others, then the highest."""
    shared, rows = _without_shared(result.series)
    found = [(name, each, trend) for name, each in rows if (trend := trend_of(each, asked.step_seconds)) is not None]
    unlike = set(unlike_the_others([trend.mean for _, _, trend in found]))
    described = [
        RangeRow(name=name, series=each, trend=trend, differs=place in unlike)
        for place, (name, each, trend) in enumerate(found)
    ]
    ordered = sorted(described, key=lambda row: (not row.differs, -row.trend.maximum))
    return RangeRows(shared=shared, ordered=tuple(ordered))


def range_text(query: str, result: QueryResult, asked: TimeRange, rows: RangeRows) -> str:
    """Describe the series of a range in numbers."""
    shared, ordered = rows.shared, rows.ordered
    span = f"{clock(asked.start)} to {clock(asked.end)}, step {asked.step_seconds:g} s"
    lines = [f"{query} from {span}: {_shown(min(len(ordered), _MOST_SERIES), len(result.series), 'series', 'series')}"]
    lines += [f"all have {selector(shared)}"] if shared else []
    for row in ordered[:_MOST_SERIES]:
        differs = " (differs from the others)" if row.differs else ""
        lines.append(f"- {row.name}{differs}: {trend_text(row.trend, asked.start, asked.end, asked.step_seconds)}")
    if len(ordered) > _MOST_SERIES:
        means = sorted(row.trend.mean for row in ordered)
        spread = f"{number(means[0])} to {number(means[-1])}, median {number(median(means))}"
        unlike = sum(row.differs for row in ordered)
        lines.append(f"means of all {len(means)} series: {spread}{f'; {unlike} differ' if unlike else ''}")
    return "\n".join([*lines, *_warnings(result)])


def trend_text(trend: Trend, start: float, end: float, step_seconds: float) -> str:
    """Describe a trend in a range from `start` to `end`, in seconds since 1970."""
    level = f"first {number(trend.first)}, last {number(trend.last)}, min {number(trend.minimum)}"
    peak = f"max {number(trend.maximum)} at {clock(trend.maximum_time)}"
    parts = [f"{level}, {peak}, mean {number(trend.mean)}, p95 {number(trend.percentile_95)}"]
    if trend.steady:
        word = "rises" if trend.slope_per_hour > 0 else "falls"
        parts.append(f"{word} steadily by {number(abs(trend.slope_per_hour))} per hour")
    parts += [f"{number(each.before)} → {number(each.after)} at {clock(each.time)}" for each in trend.changes]
    if trend.first_time > start + step_seconds:
        parts.append(f"begins at {clock(trend.first_time)}")
    if trend.last_time < end - step_seconds:
        parts.append(f"ends at {clock(trend.last_time)}")
    parts += [f"no samples {clock(first)} to {clock(last)}" for first, last in trend.gaps[:2]]
    if len(trend.gaps) > 2:
        parts.append(f"{len(trend.gaps) - 2} more gaps")
    return "; ".join(parts)


def incomplete_text(missing: Sequence[str]) -> str:
    """Return a line about data that the source could not read, for example that of a store of Thanos."""
    told = "; ".join(shortened(" ".join(each.split()), _WARNING_CHARACTERS) for each in missing[:_MOST_WARNINGS])
    more = f"; {len(missing) - _MOST_WARNINGS} more warnings" if len(missing) > _MOST_WARNINGS else ""
    return f"incomplete: the source warns that data is missing: {told}{more}"


def metrics_text(found: Sequence[Metric]) -> str:
    """List metrics with type and help, best match first."""
    lines = [f"{_shown(min(len(found), _MOST_ROWS), len(found), 'matching metric', 'matching metrics')}"]
    for each in found[:_MOST_ROWS]:
        kind = " ".join(filter(None, (each.type, each.unit)))
        about = shortened(" ".join(each.help.split()), _HELP_CHARACTERS)
        lines.append(f"{each.name}{f' ({kind})' if kind else ''}{f': {about}' if about else ''}")
    return "\n".join(lines)


def metric_labels_text(metric: str, values: Sequence[tuple[str, Sequence[str]]]) -> str:
    """List labels with examples of their values."""
    lines = [f"{metric}: {_shown(len(values), len(values), 'label', 'labels')}"]
    for name, known in values:
        examples = ", ".join(shortened(each, 60) for each in known[:5])
        lines.append(
            f"{name} ({_shown(len(known), len(known), 'value', 'values')}): {examples}{', …' if len(known) > 5 else ''}"
        )
    return "\n".join(lines)


def values_text(label: str, values: Sequence[str]) -> str:
    """List the values of one label."""
    shown = values[: 3 * _MOST_ROWS]
    return "\n".join([_shown(len(shown), len(values), f"value of {label}", f"values of {label}"), *shown])


def rules_text(rules: Sequence[Rule]) -> str:
    """List rules, firing first, with their expression and their active alerts."""
    lines = [_shown(min(len(rules), _MOST_ROWS), len(rules), "rule", "rules")]
    for rule in rules[:_MOST_ROWS]:
        hold = f" for {rule.hold_seconds:g} s" if rule.hold_seconds else ""
        state = rule.state or "recording"
        lines.append(f"{rule.name} ({state}, group {rule.group}): {shortened(' '.join(rule.query.split()), 400)}{hold}")
        lines += [f"  error: {shortened(rule.error, 200)}"] if rule.error else []
        for alert in rule.alerts[:5]:
            labels = labels_text(tuple(pair for pair in alert.labels if pair[0] != "alertname"))
            lines.append(f"  {alert.state} since {alert.since}, value {_read(alert.value)}: {labels}")
        lines += [f"  {len(rule.alerts) - 5} more active alerts"] if len(rule.alerts) > 5 else []
    return "\n".join(lines)


def _read(written: str) -> str:
    """Write a value that the source wrote, for example `7e+00`, as other values."""
    try:
        return number(float(written))
    except ValueError:
        return written


def targets_text(targets: Sequence[Target]) -> str:
    """List scrape targets, those that are down first, with the error of the last scrape."""
    lines = [_shown(min(len(targets), _MOST_ROWS), len(targets), "scrape target", "scrape targets")]
    for each in targets[:_MOST_ROWS]:
        error = f": {shortened(each.error, 200)}" if each.error else ""
        lines.append(f"{each.state}  {each.job} {each.instance}{error}")
    return "\n".join(lines)


def _without_shared(series: Sequence[Series]) -> tuple[Labels, list[tuple[str, Series]]]:
    """Return the labels that all series have, and each series with the name that the other labels give it."""
    common = set(series[0].labels).intersection(*(each.labels for each in series)) if len(series) > 1 else set()
    rows = []
    for each in series:
        own = tuple(pair for pair in each.labels if pair not in common)
        rows.append((f"{each.name}{labels_text(own) if own or not each.name else ''}", each))
    return tuple(sorted(common)), rows


def labels_text(labels: Labels) -> str:
    """Write labels as a selector, shortened."""
    return shortened(selector(labels), _LABEL_CHARACTERS)


def _sortable(values: Sequence[float]) -> float:
    return values[-1] if values and not math.isnan(values[-1]) else -math.inf


def _shown(shown: int, total: int, one: str, several: str) -> str:
    counted = f"{total:,} {one if total == 1 else several}"
    return counted if shown >= total else f"showing {shown} of {counted}"


def _warnings(result: QueryResult) -> list[str]:
    return [
        f"warning of the source: {shortened(each, _WARNING_CHARACTERS)}" for each in result.warnings[:_MOST_WARNINGS]
    ]
