"""Records metrics of the last hours: the answers to the queries of the signals, for each recorded namespace.

Only aggregated answers are recorded, with the labels of the series behind them. An answer that would exceed the limit
of series is left out as a whole and listed as unread.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.observability.access import open_source
from holmes.observability.metrics.prometheus import PrometheusSource
from holmes.observability.metrics.recorded import POD_INFO, RecordedAnswer, RecordedMetrics, RecordedSeries
from holmes.observability.metrics.series import escaped
from holmes.observability.metrics.signal_reading import nodes_of, offered_signals, requests_of
from holmes.observability.metrics.signals import Nodes, SignalSubject, one_of
from holmes.snapshot.recording import Unread
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holmes.observability.access import SourceAccess
    from holmes.observability.metrics.recorded import LabelMap
    from holmes.observability.metrics.series import Series
    from holmes.observability.metrics.signals import Signal

METRICS: Final = "metrics"
"""The resource of an `Unread` for metrics."""
_STEPS: Final = (60, 120, 300, 600, 900, 1_800, 3_600)
_USUAL_SAMPLES: Final = 720
_MOST_NODES: Final = 50
_MOST_COUNTERS: Final = 40
_AT_ONCE: Final = 8
_SHOWN: Final = 5
_NODE_NAME: Final = "node_uname_info"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsLimits:
    """The sources and the time to record. `series` limits the recorded series of each source, `labels` their parts."""

    sources: Sequence[SourceAccess]
    seconds: float
    series: int = 2_000
    labels: int = 20_000
    timeout_seconds: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The times of the samples."""

    end: float
    step_seconds: float
    samples: int

    @classmethod
    def of(cls, now: float, seconds: float) -> Grid:
        step = next((each for each in _STEPS if seconds / each <= _USUAL_SAMPLES), _STEPS[-1])
        return cls(end=math.floor(now / step) * step, step_seconds=float(step), samples=int(seconds / step) + 1)

    @property
    def start(self) -> float:
        return self.end - (self.samples - 1) * self.step_seconds


@dataclass(slots=True, kw_only=True)
class Found:
    """The recorded metrics of one source, and the reasons for missing ones."""

    metrics: RecordedMetrics | None = None
    unread: list[Unread] = field(default_factory=list)


async def record_metrics(
    access: SourceAccess, limits: MetricsLimits, namespaces: Sequence[str], now: float, masked: Callable[[str], str]
) -> Found:
    """Record the signals of `namespaces`. `masked` removes secrets from labels. Errors of the source are listed."""
    grid, found = Grid.of(now, limits.seconds), Found()
    try:
        async with asyncio.timeout(limits.timeout_seconds), open_source(access) as client:
            source = PrometheusSource(client)
            reader = _Reader(source, limits, grid, masked)
            found.metrics = await reader.read(namespaces)
            found.unread = [_unread(f"{access.name}: {each}") for each in (*reader.left_out(), *source.missing)]
    except ToolError as error:
        found.unread = [_unread(str(error), partly=False)]
    except TimeoutError:
        why = f"{access.name}: not complete within {limits.timeout_seconds:g} s; record fewer namespaces or hours"
        found.unread = [_unread(why, partly=False)]
    return found


def _unread(reason: str, *, partly: bool = True) -> Unread:
    return Unread(resource=METRICS, namespace="", forbidden=False, reason=reason, partly=partly)


class _Reader:
    """Reads one source. `_AT_ONCE` limits the requests that run at the same time."""

    def __init__(
        self, source: PrometheusSource, limits: MetricsLimits, grid: Grid, masked: Callable[[str], str]
    ) -> None:
        self._source = source
        self._limits = limits
        self._grid = grid
        self._masked = masked
        self._answers: list[RecordedAnswer] = []
        self._series = 0
        self._large: dict[str, int] = {}
        self._failures: list[str] = []
        self._known: list[LabelMap] = []
        self._left_labels = 0
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def read(self, namespaces: Sequence[str]) -> RecordedMetrics:
        """Read all namespaces, then their nodes, and what concerns the cluster. Raises `ToolError` without metrics."""
        nodes = Nodes()
        shared: dict[str, Signal] = {}
        for name in namespaces:
            subject = SignalSubject(namespace=name)
            names = frozenset(await self._source.label_values("__name__", f"{{{subject.selector}}}"))
            own = await nodes_of(self._source, subject, names, self._grid.end, _MOST_NODES)
            nodes = Nodes(names=_both(nodes.names, own.names), instances=_both(nodes.instances, own.instances))
            offered = await offered_signals(self._source, subject, names, own)
            shared |= {each.query: each for each in offered if each.scope in {"node", "cluster"}}
            requests, missing = await requests_of(self._source, subject, names, _MOST_COUNTERS)
            self._failures += [f"{name}: {each}" for each in missing]
            signals = [*(each for each in offered if each.scope not in {"node", "cluster"}), *requests]
            await self._read_all(subject, signals, Nodes())
            if signals:
                await self._read_labels(
                    signals, f'namespace="{escaped(name)}"', f'exported_namespace="{escaped(name)}"'
                )
        await self._read_shared(list(shared.values()), nodes)
        if not self._answers:
            tried = f" ({self._failures[0]})" if self._failures else ""
            raise ToolError(f"{self._source.access.name} has none of the known metrics of these namespaces{tried}")
        current = await self._current(namespaces, nodes)
        return await self._recorded(current)

    async def _read_shared(self, signals: Sequence[Signal], nodes: Nodes) -> None:
        # No pod has an empty name, so the neighbours of a pod are among all pods of the nodes.
        await self._read_all(None, signals, nodes)
        of_nodes = [each for each in signals if "$instances" in each.query]
        if of_nodes:
            await self._read_labels(of_nodes, f'instance=~"{one_of(nodes.instances)}"')
        of_cluster = {name for each in signals if each.scope == "cluster" for name in each.metrics}
        self._known += [{"__name__": name} for name in sorted(of_cluster)]
        if nodes.names:
            await self._add_labels(f'{_NODE_NAME}{{nodename=~"{one_of(nodes.names)}"}}')

    async def _read_all(self, subject: SignalSubject | None, signals: Sequence[Signal], nodes: Nodes) -> None:
        unique = {each.query: each for each in signals}
        results = await asyncio.gather(*(self._range(_query(each, subject, nodes)) for each in unique.values()))
        for signal, result in zip(unique.values(), results, strict=True):
            if isinstance(result, ToolError):
                self._failures.append(f"{signal.name}: {result}")
            elif self._series + len(result) > self._limits.series:
                self._large[signal.name] = self._large.get(signal.name, 0) + len(result)
            else:
                self._series += len(result)
                rows = tuple(map(self._row, result))
                namespace = subject.namespace if subject is not None else ""
                self._answers.append(RecordedAnswer(query=signal.query, namespace=namespace, series=rows))

    async def _range(self, query: str) -> tuple[Series, ...] | ToolError:
        grid = self._grid
        async with self._at_once:
            try:
                found = await self._source.range(query, start=grid.start, end=grid.end, step_seconds=grid.step_seconds)
            except ToolError as error:
                return error
        return found.series

    def _row(self, series: Series) -> RecordedSeries:
        values: list[float | None] = [None] * self._grid.samples
        for time, value in zip(series.times, series.values, strict=True):
            place = round((time - self._grid.start) / self._grid.step_seconds)
            if 0 <= place < len(values) and math.isfinite(value):
                values[place] = value
        return RecordedSeries(labels=self._labels(dict(series.labels)), values=tuple(values))

    def _labels(self, labels: Mapping[str, str]) -> LabelMap:
        return {name: self._masked(value) for name, value in labels.items()}

    async def _read_labels(self, signals: Iterable[Signal], *matchers: str) -> None:
        """Read the labels of all series of the signals in the time of the recording."""
        names = "|".join(sorted({name for each in signals for name in each.metrics} | {POD_INFO}))
        for each in matchers:
            await self._add_labels(f'{{__name__=~"{names}",{each}}}')

    async def _add_labels(self, selector: str) -> None:
        seconds = int(self._grid.end - self._grid.start) or 60
        try:
            found = await self._source.instant(f"last_over_time({selector}[{seconds}s])", self._grid.end)
        except ToolError as error:
            self._failures.append(f"labels: {error}")
            return
        room = max(0, self._limits.labels - len(self._known))
        self._known += [self._labels({"__name__": each.name, **dict(each.labels)}) for each in found.series[:room]]
        self._left_labels += max(0, len(found.series) - room)

    async def _current(self, namespaces: Sequence[str], nodes: Nodes) -> list[LabelMap]:
        """Return the pods of the namespaces and of the nodes that exist at the end, and the names of the nodes."""
        places = [f'namespace=~"{one_of(namespaces)}"', *([f'node=~"{one_of(nodes.names)}"'] if nodes.names else [])]
        queries = [f"max by (namespace, pod, node) ({POD_INFO}{{{each}}})" for each in places]
        found: dict[tuple[tuple[str, str], ...], None] = {}
        for query in queries:
            for each in (await self._source.instant(query, self._grid.end)).series:
                found[("__name__", POD_INFO), *each.labels] = None
        if nodes.names:
            uname = f'max by (nodename, instance) ({_NODE_NAME}{{nodename=~"{one_of(nodes.names)}"}})'
            for each in (await self._source.instant(uname, self._grid.end)).series:
                found[("__name__", _NODE_NAME), *each.labels] = None
        return [self._labels(dict(each)) for each in found][: self._limits.labels]

    async def _recorded(self, current: list[LabelMap]) -> RecordedMetrics:
        names = {each.get("__name__", "") for each in self._known}
        described = [each for each in await self._source.metrics() if each.name in names]
        return RecordedMetrics(
            product=await self._source.version(),
            start=self._grid.start,
            step_seconds=self._grid.step_seconds,
            samples=self._grid.samples,
            answers=tuple(self._answers),
            known=tuple(self._known),
            current=tuple(current),
            described=tuple((each.name, each.type, each.unit, each.help) for each in described),
        )

    def left_out(self) -> list[str]:
        """Return lines about what was not recorded."""
        lines = [*self._failures[:_SHOWN]]
        if len(self._failures) > _SHOWN:
            lines.append(f"{len(self._failures) - _SHOWN} more errors")
        if self._large:
            total = self._series + sum(self._large.values())
            names = ", ".join(self._large)
            lines.append(
                f"{self._series:,} of {total:,} series were recorded (at most {self._limits.series:,}): {names}"
            )
        if self._left_labels:
            lines.append(f"the labels of {self._left_labels:,} series (at most {self._limits.labels:,})")
        return lines


def _query(signal: Signal, subject: SignalSubject | None, nodes: Nodes) -> str:
    if subject is not None:
        return subject.query(signal, nodes)
    return SignalSubject(namespace="").query(replace(signal, query=signal.query.replace("$pods", 'pod=""')), nodes)


def _both(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
