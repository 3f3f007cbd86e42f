"""Reads the signals of a workload, and finds those that are saturated, rise to their limit, or changed."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from holmes.observability.metrics.series import finite, selector
from holmes.observability.metrics.signal_catalogue import NEIGHBOUR, NODE_CPU, SIGNALS
from holmes.observability.metrics.signals import (
    OF_REQUESTS,
    STATUS_LABELS,
    Nodes,
    one_of,
    request_metrics,
    request_signals,
)
from holmes.observability.metrics.trends import trend_of
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.observability.metrics.series import Labels, Series
    from holmes.observability.metrics.signals import Scope, Signal, SignalSubject
    from holmes.observability.metrics.source import MetricsSource
    from holmes.observability.metrics.trends import Trend

Standing: TypeAlias = Literal["now", "raised", "rising", "growing", "happened", "before", "changed"]
"""How a signal differs from normal: saturated `now` or `before`; `raised` by a factor until now; `rising` to its limit
within hours, or `growing` to it within a day; an event `happened`; or the level `changed` by a factor."""
STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)
"""The standings, the most serious first."""
_LASTING_SAMPLES: Final = 3
_LONGEST_FORECAST_SECONDS: Final = 24 * 3_600.0
_SOON_SECONDS: Final = 6 * 3_600.0
_LEAST_SHARE: Final = 0.5
"""A share below this is not told as rising: its limit is far."""
_FACTOR: Final = 2.0
_STILL: Final = 0.6
"""A raised number is still raised at this part of its level after the change."""
_MOST_NODES: Final = 5
_MOST_COUNTERS: Final = 8
"""The counters of requests that are read. Each takes up to four requests."""
_CLAIMS: Final = "kube_pod_spec_volumes_persistentvolumeclaims_info"
_CLUSTER_METRICS: Final = '{__name__=~"coredns_dns_responses_total|apiserver_request_total|etcd_disk_wal_fsync_.*"}'


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
    """The signals that stand out, and the names of all signals that were read.

    `empty` are those whose metrics exist, but give no series, for example without a limit. `failures` are errors.
    """

    outstanding: tuple[Outstanding, ...]
    read: tuple[str, ...]
    empty: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


async def read_signals(source: MetricsSource, subject: SignalSubject, span: Window) -> SignalReadings:
    """Read all signals that the source has for `subject`. Raises `ToolError` if none can be read.

    Without any metric of the named pods, nothing is read: those of their namespace may belong to another cluster.
    """
    names = frozenset(await source.label_values("__name__", f"{{{subject.selector}}}"))
    if len(await source.label_values("cluster", f"{{{subject.selector}}}")) > 1:
        raise ToolError("the source has such pods in several clusters; configure one source for each cluster")
    if subject.pods and not names:
        return SignalReadings(outstanding=(), read=())
    nodes = await nodes_of(source, subject, names, span.end)
    requests, missing = await requests_of(source, subject, names)
    signals = [*_most_exact(await offered_signals(source, subject, names, nodes)), *requests]
    if not signals:
        return SignalReadings(outstanding=(), read=())
    results = await asyncio.gather(*(_read(source, subject.query(signal, nodes), span) for signal in signals))
    failed = {signal.name: each for signal, each in zip(signals, results, strict=True) if isinstance(each, ToolError)}
    failures = [f"{name}: {each}" for name, each in failed.items()]
    if all(isinstance(each, ToolError) or not each for each in results) and failures:
        raise ToolError(failures[0])
    found: list[Outstanding] = []
    read: dict[str, None] = {}
    for signal, result in _without_repetition(zip(signals, results, strict=True)):
        read |= dict.fromkeys([signal.name] if result else ())
        found += [each for series in result if (each := _judged(signal, series, span)) is not None]
    found.sort(key=lambda each: (STANDINGS.index(each.standing), each.since))
    return SignalReadings(
        outstanding=_plausible(found, nodes),
        read=tuple(read),
        empty=tuple(dict.fromkeys(name for each in signals if (name := each.name) not in read | dict.fromkeys(failed))),
        failures=(*missing, *failures),
    )


def _plausible(found: list[Outstanding], nodes: Nodes) -> tuple[Outstanding, ...]:
    """Leave out the neighbours on the node, unless the only node of the pods has no CPU left."""
    is_full = len(nodes.names) == 1 and any(each.signal.name == NODE_CPU and each.standing == "now" for each in found)
    return tuple(each for each in found if is_full or each.signal.name != NEIGHBOUR)


async def nodes_of(
    source: MetricsSource, subject: SignalSubject, names: frozenset[str], at: float, most: int = _MOST_NODES
) -> Nodes:
    """Find the nodes of the pods, or none if there are more. Pods on many nodes share no single one as a cause."""
    if "kube_pod_info" not in names:
        return Nodes()
    try:
        # Values of labels include those of pods that were deleted long ago.
        found = await _labels_now(source, "node", f"kube_pod_info{{{subject.selector}}}", at)
        if not 0 < len(found) <= most:
            return Nodes()
        uname = f'node_uname_info{{nodename=~"{one_of(found)}"}}'
        return Nodes(names=found, instances=await _labels_now(source, "instance", uname, at))
    except ToolError:
        return Nodes()


async def _labels_now(source: MetricsSource, label: str, selected: str, at: float) -> tuple[str, ...]:
    result = await source.instant(f"count by ({label}) ({selected})", at)
    return tuple(value for each in result.series if (value := dict(each.labels).get(label)))


async def _offered(source: MetricsSource, subject: SignalSubject, nodes: Nodes) -> dict[Scope, frozenset[str]]:
    """Return the names of the metrics of each place beside those of the pods."""
    places: dict[Scope, list[str]] = {
        "pods": [],
        "namespace": [
            selector((("namespace", subject.namespace),)),
            selector((("exported_namespace", subject.namespace),)),
        ],
        "node": [f'{{instance=~"{one_of(nodes.instances)}"}}'] if nodes.instances else [],
        "cluster": [_CLUSTER_METRICS],
    }
    queries = [(scope, query) for scope, given in places.items() for query in given]
    results = await asyncio.gather(*(source.label_values("__name__", query) for _, query in queries))
    offered = dict.fromkeys(places, frozenset[str]())
    for (scope, _), found in zip(queries, results, strict=True):
        offered[scope] |= frozenset(found)
    return offered


async def offered_signals(
    source: MetricsSource, subject: SignalSubject, names: frozenset[str], nodes: Nodes
) -> tuple[Signal, ...]:
    """Return the signals whose metrics the source has. `names` are the metrics of the pods.

    Two signals of one name can read the same metric, the first for the pods, the second for their namespace.
    """
    offered = {scope: names | found for scope, found in (await _offered(source, subject, nodes)).items()}
    return tuple(
        signal
        for signal in SIGNALS
        if (nodes.names or signal.scope != "node")
        and (nodes.instances or "$instances" not in signal.query)
        # Volumes of the pods are metrics of the kubelet, which have no label for the pod.
        and signal.metrics
        <= offered[signal.scope] | (offered["namespace"] if "$namespace" in signal.query else frozenset())
    )


def _most_exact(signals: Iterable[Signal]) -> Iterator[Signal]:
    """Yield the first one of the signals of one name and metric."""
    told: set[tuple[str, str]] = set()
    for signal in signals:
        key = signal.name, min(signal.metrics - {_CLAIMS}, default="")
        if key not in told:
            told.add(key)
            yield signal


async def requests_of(
    source: MetricsSource, subject: SignalSubject, names: frozenset[str], most: int = _MOST_COUNTERS
) -> tuple[tuple[Signal, ...], tuple[str, ...]]:
    """Return the signals of the counters of requests, and a line about counters that are not read.

    Each workload can have a counter of its own. The counters are in the order in which a pod uses them.
    """
    metrics = request_metrics(names)
    read = metrics[:most]
    labels = await asyncio.gather(*(_label_names(source, f"{metric}{{{subject.selector}}}") for metric in read))
    signals: list[Signal] = []
    for metric, known in zip(read, labels, strict=True):
        signals += request_signals(metric, next((each for each in STATUS_LABELS if each in known), ""))
    is_cut = len(metrics) > len(read)
    missing = f"requests: {len(read)} of {len(metrics)} counters are read; name fewer pods" if is_cut else ""
    return tuple(signals), ((missing,) if missing else ())


async def _label_names(source: MetricsSource, selected: str) -> tuple[str, ...]:
    try:
        return tuple(await source.label_names(selected))
    except ToolError:
        return ()


def _without_repetition(
    pairs: Iterable[tuple[Signal, tuple[Series, ...] | ToolError]],
) -> Iterator[tuple[Signal, tuple[Series, ...]]]:
    """Yield the signals that were read. Of several counters of requests, a pod has the first one that it uses."""
    told: set[tuple[str, str]] = set()
    for signal, result in pairs:
        if isinstance(result, ToolError):
            continue
        if signal.name not in OF_REQUESTS:
            yield signal, tuple(_without_sums(result))
            continue
        keys = [(signal.name, dict(series.labels).get("pod", "")) for series in result]
        yield signal, tuple(series for key, series in zip(keys, result, strict=True) if key not in told)
        told.update(key for key, series in zip(keys, result, strict=True) if any(map(_is_positive, series.values)))


def _without_sums(result: Sequence[Series]) -> Iterator[Series]:
    """Yield the series of containers, and those of whole pods whose containers have none.

    With some container runtimes, the kubelet knows only whole pods.
    """
    placed = [(each, dict(each.labels)) for each in result]
    detailed = {labels.get("pod") for _, labels in placed if labels.get("container")}
    for each, labels in placed:
        if labels.get("container") or labels.get("pod") not in detailed:
            yield each


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


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
    is_current = trend.last_time >= span.end - 1.5 * span.step_seconds
    found: tuple[Standing, float, float | None] | None
    match signal.kind:
        case "share" | "excess":
            found = _of_share(signal, series, trend, is_current=is_current)
        case "count":
            found = _of_count(signal, series)
        case "delay":
            found = (_raised(signal, trend) if is_current else None) or _of_level(trend, signal.high)
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
    """Judge a number with a limit. `is_current` is false if the series ended, for example with its pod."""
    runs = _runs_above(series, signal.high)
    if runs:
        start, end = runs[-1]
        return ("now" if is_current and end == series.times[-1] else "before"), start, None
    is_near = signal.kind == "share" and trend.last >= _LEAST_SHARE
    if is_current and is_near and trend.steady and trend.slope_per_hour > 0:
        left = (1.0 - trend.last) / trend.slope_per_hour * 3_600
        if left <= _LONGEST_FORECAST_SECONDS:
            return ("rising" if left <= _SOON_SECONDS else "growing"), trend.first_time, left
    return None


def _raised(signal: Signal, trend: Trend) -> tuple[Standing, float, float | None] | None:
    """Return since when a number is at least twice as high as before, if it still is."""
    if trend.last < signal.high:
        return None
    if trend.steady:
        doubled = trend.slope_per_hour > 0 and trend.last >= _FACTOR * max(trend.first, 0)
        return ("raised", trend.first_time, None) if doubled else None
    if not trend.changes:
        return None
    change = trend.changes[-1]
    doubled = change.after >= _FACTOR * max(change.before, 0) and change.after > 0
    return ("raised", change.time, None) if doubled and trend.last >= _STILL * change.after else None


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


def _of_level(trend: Trend, least: float = 0.0) -> tuple[Standing, float, float | None] | None:
    """Return the last change by at least the factor two between levels of which one is at least `least`."""
    for change in reversed(trend.changes):
        larger, smaller = max(change.before, change.after), min(change.before, change.after)
        if larger > least and (smaller <= 0 or larger / smaller >= _FACTOR):
            return "changed", change.time, None
    return None
