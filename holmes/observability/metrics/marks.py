"""Finds what a chart of a query can be compared with: the threshold of an alert on it, rollouts and restarts.

Rollouts and restarts are read from the metrics of kube-state-metrics in the same source, if it has them. A source that
cannot answer these queries costs the marks, never the result.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.conditions import condition_of
from holmes.observability.metrics.series import escaped, labels_of
from holmes.values.charts import ChartMark, Threshold, number
from holmes.values.errors import ToolError
from holmes.values.pod_names import deployment_of, is_pod_name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holmes.observability.metrics.series import Rule, Series
    from holmes.observability.metrics.signal_reading import Window
    from holmes.observability.metrics.source import MetricsSource

PATIENCE_SECONDS: Final = 5.0
"""Time limit for the rules, and for rollouts and restarts. The result does not wait longer for them."""
_MOST_PODS: Final = 20
_MOST_MARKS: Final = 40


async def read_threshold(source: MetricsSource, query: str, metrics: Sequence[str]) -> Threshold | None:
    """Return the threshold of an alerting rule that measures exactly `query`, or that of a comparison in it."""
    own = condition_of(query)
    if own.threshold is not None:
        return Threshold(value=own.threshold, text=f"{own.comparison} {number(own.threshold)}")
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            rules = await source.rules()
    except (ToolError, TimeoutError):
        return None
    return await asyncio.to_thread(_threshold_of, rules, own.measured, metrics)


def _threshold_of(rules: Iterable[Rule], measured: str, metrics: Sequence[str]) -> Threshold | None:
    """Search the rules. Only those that name the same metrics are parsed."""
    for rule in rules:
        if rule.kind == "alerting" and all(name in rule.query for name in metrics):
            condition = condition_of(rule.query)
            if condition.measured == measured and condition.threshold is not None:
                text = f"{condition.comparison} {number(condition.threshold)} ({rule.name})"
                return Threshold(value=condition.threshold, text=text)
    return None


async def read_marks(
    source: MetricsSource, query: str, series: Sequence[Series], window: Window
) -> tuple[ChartMark, ...]:
    """Return the rollouts and restarts of the pods in `series`, or the rollouts of their namespace, oldest first."""
    written = labels_of(query)
    namespaces = _values("namespace", written, series)
    pods = _values("pod", written, series)
    if len(namespaces) > 1 or len(pods) > _MOST_PODS or not (namespaces or pods):
        return ()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await asyncio.gather(
                _rollouts(source, namespaces, pods, window), _restarts(source, namespaces, pods, window)
            )
    except (ToolError, TimeoutError):
        return ()
    marks = sorted((mark for each in found for mark in each), key=lambda mark: (mark.time, mark.text))
    return tuple(marks[:_MOST_MARKS])


def _values(label: str, written: Mapping[str, str], series: Sequence[Series]) -> tuple[str, ...]:
    """Return the values of a label: those of the series or, if they do not have it, that of the query."""
    own = {value for each in series for name, value in each.labels if name == label}
    return tuple(sorted(own or filter(None, (written.get(label),))))


async def _rollouts(
    source: MetricsSource, namespaces: Sequence[str], pods: Sequence[str], window: Window
) -> list[ChartMark]:
    if not namespaces:
        return []
    created = f"kube_replicaset_created{{{_among('namespace', namespaces)}}} >= {window.start:.0f}"
    found = await source.instant(f"max by (replicaset) ({created})", window.end)
    return [
        ChartMark(time=each.values[-1], text=f"rollout {deployment}")
        for each in found.series
        if (deployment := deployment_of(dict(each.labels).get("replicaset", "")))
        and (not pods or any(is_pod_name_of(pod, "Deployment", deployment) for pod in pods))
        and each.values
        and window.start <= each.values[-1] <= window.end
    ]


async def _restarts(
    source: MetricsSource, namespaces: Sequence[str], pods: Sequence[str], window: Window
) -> list[ChartMark]:
    if not pods:
        return []
    matchers = [_among("pod", pods), *([_among("namespace", namespaces)] if namespaces else [])]
    query = f"sum by (pod) (kube_pod_container_status_restarts_total{{{','.join(matchers)}}})"
    result = await source.range(query, start=window.start, end=window.end, step_seconds=window.step_seconds)
    return [mark for each in result.series for mark in _increases(each)]


def _increases(series: Series) -> Iterator[ChartMark]:
    pod = dict(series.labels).get("pod", "")
    for (_, before), (time, after) in pairwise(zip(series.times, series.values, strict=True)):
        if after > before:
            yield ChartMark(time=time, text=f"restart {pod}")


def _among(label: str, values: Sequence[str]) -> str:
    """Return a matcher for exactly these values. Names of Kubernetes have no special characters but the dot."""
    return f'{label}=~"{"|".join(escaped(value.replace(".", chr(92) + ".")) for value in values)}"'
