"""Defines all metrics of `/metrics` with their names, labels and descriptions. The documentation lists these metrics.

All replicas share the queue, so its values are read from the database during a scrape. Other modules decide when to
count. Metric names end with their unit.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from prometheus_client.samples import Sample

_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_CALL_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
_TOOL_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_SPENT_ON: Final = ("model", "purpose")


class Instruments:
    """The metrics of one server process, in their own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # otherwise each counter has a second, unused series
        registry = CollectorRegistry(auto_describe=True)
        self.registry = registry
        ProcessCollector(registry=registry)
        self.build_info = Gauge(
            "holmes_build_info", "Always 1. The labels contain the versions.", ("version", "python"), registry=registry
        )
        self._make_http_instruments(registry)
        self._make_llm_instruments(registry)
        self._make_spending_instruments(registry)
        self._make_tool_instruments(registry)
        self._make_alert_instruments(registry)

    def _make_http_instruments(self, registry: CollectorRegistry) -> None:
        self.http_requests = Counter(
            "holmes_http_requests",
            "Number of HTTP requests.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.http_request_duration = Histogram(
            "holmes_http_request_duration_seconds",
            "Time until the response was complete, or until an event stream started, in seconds.",
            ("method", "route"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.http_streams = Gauge("holmes_http_streams", "Number of open event streams.", registry=registry)

    def _make_alert_instruments(self, registry: CollectorRegistry) -> None:
        self.investigations_finished = Counter(
            "holmes_investigations_finished",
            "Number of investigations that ended in this replica, by outcome, source and kind of the answering model.",
            ("outcome", "source", "answered_by"),
            registry=registry,
        )
        self.alerts_received = Counter(
            "holmes_alerts_received", "Number of stored alerts, by status.", ("status",), registry=registry
        )
        self.alerts_duplicates = Counter(
            "holmes_alerts_duplicates",
            "Number of duplicate alerts, which did not start an investigation.",
            registry=registry,
        )
        self.deliveries = Counter(
            "holmes_deliveries",
            "Number of delivery attempts by outcome: delivered, retried or gave_up.",
            ("destination", "outcome"),
            registry=registry,
        )

    def _make_llm_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_calls = Counter(
            "holmes_llm_calls",
            "Number of requests to a model, including failed attempts. The purpose is investigation or compaction.",
            _SPENT_ON,
            registry=registry,
        )
        self.llm_call_duration = Histogram(
            "holmes_llm_call_duration_seconds",
            "Duration of a model call including retries, in seconds, by outcome: answered or failed.",
            ("model", "outcome"),
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self.llm_attempts_discarded = Counter(
            "holmes_llm_attempts_discarded",
            "Number of failed attempts of model calls.",
            ("model",),
            registry=registry,
        )
        self.llm_failovers = Counter(
            "holmes_llm_failovers", "Number of times that a model failed and the next model continued.", ("model",),
            registry=registry,
        )  # fmt: skip
        self.llm_context_overflows = Counter(
            "holmes_llm_context_overflows", "Number of requests that a provider rejected as too long.", ("model",),
            registry=registry,
        )  # fmt: skip

    def _make_spending_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_tokens = Counter(
            "holmes_llm_tokens",
            "Number of tokens. prompt includes cached and cache_creation, and completion includes reasoning.",
            (*_SPENT_ON, "kind"),
            registry=registry,
        )
        self.llm_cost = Counter(
            "holmes_llm_cost_dollars", "Cost of model requests in US dollars.", _SPENT_ON, registry=registry
        )
        self.llm_cache_hits = Counter(
            "holmes_llm_cache_hits",
            "Number of replies for which at least a part of the prompt was in the provider's cache.",
            ("model",),
            registry=registry,
        )
        self.compactions = Counter("holmes_compactions", "Number of compactions.", ("strategy",), registry=registry)
        self.compactions_failed = Counter(
            "holmes_compactions_failed", "Number of compactions that failed.", registry=registry
        )

    def _make_tool_instruments(self, registry: CollectorRegistry) -> None:
        self.toolset_up = Gauge(
            "holmes_toolset_up",
            "1 if a toolset is available, 0 if its check failed. Disabled toolsets are omitted.",
            ("toolset",),
            registry=registry,
        )
        self.tool_calls = Counter(
            "holmes_tool_calls", "Number of tool calls.", ("toolset", "tool", "status"), registry=registry
        )
        self.tool_call_duration = Histogram(
            "holmes_tool_call_duration_seconds",
            "Duration of a tool call in seconds.",
            ("toolset", "tool"),
            buckets=_TOOL_SECONDS,
            registry=registry,
        )
        self.tool_results_spilled = Counter(
            "holmes_tool_results_spilled",
            "Number of tool results that were too large for the conversation. With stored=false, they were discarded.",
            ("stored",),
            registry=registry,
        )
        self.tool_results_masked = Counter(
            "holmes_tool_results_masked",
            "Number of old tool results that were shortened.",
            registry=registry,
        )


OTHER: Final = "other"


class KnownValues:
    """Limits a label to a closed set. Any other value becomes `other`."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)

    def of(self, value: str) -> str:
        return value if value in self._values else OTHER


class LimitedValues:
    """Limits a label to the first `limit` different values. Any later value becomes `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: set[str] = set()

    def of(self, value: str) -> str:
        if value in self._values:
            return value
        if len(self._values) >= self._limit:
            return OTHER
        self._values.add(value)
        return value


_FIRST_ONE_COUNTS: Final = frozenset({"holmes_build_info", "process_start_time_seconds"})


class MergedFigures(Collector):
    """Merges the metrics of this process with the metrics of other processes, by adding their values."""

    def __init__(self, own: Iterable[Metric], others: Iterable[Metric]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """Return the metrics in the order of `own`, then the metrics that only `others` contain."""
        families: dict[str, Metric] = {}
        for each in (*self._own, *self._others):
            known = families.get(each.name)
            if known is None:
                families[each.name] = each
            elif each.name not in _FIRST_ONE_COUNTS:
                families[each.name] = _sum(known, each)
        yield from families.values()


def _sum(one: Metric, other: Metric) -> Metric:
    """Add two metrics. `Instruments` defines both, so their histograms have the same buckets in the same order."""
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for each in (*one.samples, *other.samples):
        key = (each.name, tuple(sorted(each.labels.items())))
        known = samples.get(key)
        samples[key] = each if known is None else known._replace(value=known.value + each.value)
    summed = Metric(one.name, one.documentation, one.type, one.unit)
    summed.samples = list(samples.values())
    return summed


_STALE_AFTER_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """The state of the queue in the database. `waiting` is the number of investigations that wait for a replica."""

    by_state: Mapping[str, int]
    waiting: int
    oldest_wait_seconds: float


class QueueGauges(Collector):
    """Exports one reading of the database. If no reading is available, only `holmes_database_up` has a value."""

    def __init__(self) -> None:
        self._reading: QueueReading | None = None
        self._lock = threading.Lock()

    @contextmanager
    def showing(self, reading: QueueReading | None) -> Iterator[None]:
        """Export `reading` within the `with` block. Concurrent scrapes wait for each other."""
        with self._lock:
            self._reading = reading
            yield

    def describe(self) -> Iterable[Metric]:
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        reading = self._reading
        up = GaugeMetricFamily("holmes_database_up", "1 if the database responded during this scrape, else 0.")
        up.add_metric([], 1.0 if reading else 0.0)
        states = GaugeMetricFamily(
            "holmes_investigations", "Number of investigations in the database, by state.", labels=["state"]
        )
        depth = GaugeMetricFamily("holmes_queue_depth", "Number of queued investigations.")
        oldest = GaugeMetricFamily(
            "holmes_queue_oldest_wait_seconds", "Wait time of the oldest waiting investigation, in seconds."
        )
        if reading is not None:
            for state, count in reading.by_state.items():
                states.add_metric([state], count)
            depth.add_metric([], reading.waiting)
            oldest.add_metric([], reading.oldest_wait_seconds)
        return (up, states, depth, oldest)


class QueueScrape:
    """Reads the database for scrapes. A reading is valid for two seconds.

    A slow database delays a scrape by at most `patience_seconds`. The database receives only one query at a time.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[QueueReading]],
        *,
        stale_after_seconds: float = _STALE_AFTER_SECONDS,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        """`read` must raise `HolmesError` if the database does not respond."""
        self._read = read
        self._stale_after_seconds = stale_after_seconds
        self._patience_seconds = patience_seconds
        self._asked: asyncio.Task[QueueReading | None] | None = None
        self._answered_at = 0.0

    async def reading(self) -> QueueReading | None:
        """Return a reading that is at most two seconds old, or None if the database does not respond in time."""
        asked = self._asked
        if asked is None or (asked.done() and time.monotonic() - self._answered_at > self._stale_after_seconds):
            asked = self._asked = asyncio.create_task(self._ask(), name="queue figures")
        # After the timeout, the task continues, because a thread cannot be cancelled. The next scrape waits for it.
        await asyncio.wait({asked}, timeout=self._patience_seconds)
        return asked.result() if asked.done() and not asked.cancelled() else None

    async def _ask(self) -> QueueReading | None:
        try:
            return await self._read()
        except HolmesError:
            return None
        finally:
            self._answered_at = time.monotonic()
