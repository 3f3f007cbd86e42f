"""Every figure of `/metrics`: its name, its labels, its meaning. Held by `metrics`; listed in the docs.

Nothing here knows what is counted when. Names end with their unit; a new figure is a new field.
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
PROCESS_FIGURES: Final = ("process_",)


class Instruments:
    """The figures of one server, in a registry of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody looks at
        registry = CollectorRegistry(auto_describe=True)
        self.registry = registry
        ProcessCollector(registry=registry)
        self.build_info = Gauge(
            "holmes_build_info", "Always 1; the labels say what runs.", ("version", "python"), registry=registry
        )
        self._make_http_instruments(registry)
        self._make_llm_instruments(registry)
        self._make_spending_instruments(registry)
        self._make_tool_instruments(registry)
        self._make_alert_instruments(registry)

    def _make_http_instruments(self, registry: CollectorRegistry) -> None:
        self.http_requests = Counter(
            "holmes_http_requests",
            "HTTP requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.http_request_duration = Histogram(
            "holmes_http_request_duration_seconds",
            "Seconds until a request was answered; for an event stream until it began.",
            ("method", "route"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.http_streams = Gauge("holmes_http_streams", "Event streams that are open.", registry=registry)

    def _make_alert_instruments(self, registry: CollectorRegistry) -> None:
        self.investigations_finished = Counter(
            "holmes_investigations_finished",
            "Investigations that came to an end in this replica, and who answered: llm, triage or nobody.",
            ("outcome", "source", "answered_by"),
            registry=registry,
        )
        self.alerts_received = Counter(
            "holmes_alerts_received", "Alerts that were stored, by their status.", ("status",), registry=registry
        )
        self.alerts_duplicates = Counter(
            "holmes_alerts_duplicates", "Alerts that were known already and started nothing.", registry=registry
        )
        self.deliveries = Counter(
            "holmes_deliveries",
            "Attempts to tell a destination: delivered, retried or gave_up.",
            ("destination", "outcome"),
            registry=registry,
        )

    def _make_llm_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_calls = Counter(
            "holmes_llm_calls",
            "Requests to a model, failed attempts included. The purpose is investigation or compaction.",
            _SPENT_ON,
            registry=registry,
        )
        self.llm_call_duration = Histogram(
            "holmes_llm_call_duration_seconds",
            "Seconds that a model call took, with its retries: answered or failed.",
            ("model", "outcome"),
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self.llm_attempts_discarded = Counter(
            "holmes_llm_attempts_discarded", "Attempts that failed and were made again.", ("model",), registry=registry
        )
        self.llm_failovers = Counter(
            "holmes_llm_failovers", "Models that failed for good, so that the next one went on.", ("model",),
            registry=registry,
        )  # fmt: skip
        self.llm_context_overflows = Counter(
            "holmes_llm_context_overflows", "Requests that a provider refused as too long.", ("model",),
            registry=registry,
        )  # fmt: skip

    def _make_spending_instruments(self, registry: CollectorRegistry) -> None:
        self.llm_tokens = Counter(
            "holmes_llm_tokens",
            "Tokens. prompt includes cached and cache_creation, completion includes reasoning.",
            (*_SPENT_ON, "kind"),
            registry=registry,
        )
        self.llm_cost = Counter("holmes_llm_cost_dollars", "US dollars.", _SPENT_ON, registry=registry)
        self.llm_cache_hits = Counter(
            "holmes_llm_cache_hits",
            "Replies whose prompt the provider found in its cache, at least in part.",
            ("model",),
            registry=registry,
        )
        self.compactions = Counter(
            "holmes_compactions", "Conversations that were made shorter.", ("strategy",), registry=registry
        )
        self.compactions_failed = Counter(
            "holmes_compactions_failed", "Compactions that were not adopted.", registry=registry
        )

    def _make_tool_instruments(self, registry: CollectorRegistry) -> None:
        self.toolset_up = Gauge(
            "holmes_toolset_up",
            "Whether a toolset can be used: 1, or 0 when its check failed. Those switched off are left out.",
            ("toolset",),
            registry=registry,
        )
        self.tool_calls = Counter("holmes_tool_calls", "Tool calls.", ("toolset", "tool", "status"), registry=registry)
        self.tool_call_duration = Histogram(
            "holmes_tool_call_duration_seconds",
            "Seconds that a tool call took.",
            ("toolset", "tool"),
            buckets=_TOOL_SECONDS,
            registry=registry,
        )
        self.tool_results_spilled = Counter(
            "holmes_tool_results_spilled",
            "Results that were too large for the conversation; stored=false: they had to be dropped.",
            ("stored",),
            registry=registry,
        )
        self.tool_results_masked = Counter(
            "holmes_tool_results_masked", "Old results that were replaced by something shorter.", registry=registry
        )


OTHER: Final = "other"


class KnownValues:
    """A closed set; everything else is `other`."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)

    def of(self, value: str) -> str:
        """The label for `value`."""
        return value if value in self._values else OTHER


class LimitedValues:
    """The first `limit` different values; everything after them is `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: set[str] = set()

    def of(self, value: str) -> str:
        """The label for `value`."""
        if value in self._values:
            return value
        if len(self._values) >= self._limit:
            return OTHER
        self._values.add(value)
        return value


_FIRST_ONE_COUNTS: Final = frozenset({"holmes_build_info", "process_start_time_seconds"})


class MergedFigures(Collector):
    """`own` figures plus `others`: samples of the same name and labels become their sum."""

    def __init__(self, own: Iterable[Metric], others: Iterable[Metric]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """The families in the order of `own`, then those that only `others` have."""
        families: dict[str, Metric] = {}
        for each in (*self._own, *self._others):
            known = families.get(each.name)
            if known is None:
                families[each.name] = each
            elif each.name not in _FIRST_ONE_COUNTS:
                families[each.name] = _sum(known, each)
        yield from families.values()


def _sum(one: Metric, other: Metric) -> Metric:
    """Both are made by `Instruments`, so that their histograms have the same buckets, which stay together."""
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for each in (*one.samples, *other.samples):
        key = (each.name, tuple(sorted(each.labels.items())))
        known = samples.get(key)
        samples[key] = each if known is None else known._replace(value=known.value + each.value)
    summed = Metric(one.name, one.documentation, one.type, one.unit)
    summed.samples = list(samples.values())
    return summed


STALE_AFTER_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """What the database says: investigations by state, how many wait, and for how long the oldest has."""

    by_state: Mapping[str, int]
    waiting: int
    oldest_wait_seconds: float


class QueueGauges(Collector):
    """Shows one reading for the time of one scrape; without one only that the database does not answer."""

    def __init__(self) -> None:
        self._reading: QueueReading | None = None
        self._lock = threading.Lock()

    @contextmanager
    def showing(self, reading: QueueReading | None) -> Iterator[None]:
        """One scrape at a time, so that each shows its own reading."""
        with self._lock:
            self._reading = reading
            yield

    def describe(self) -> Iterable[Metric]:
        """The names, for the registry."""
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        """The gauges."""
        reading = self._reading
        up = GaugeMetricFamily("holmes_database_up", "Whether the database answered this scrape.")
        up.add_metric([], 1.0 if reading else 0.0)
        states = GaugeMetricFamily(
            "holmes_investigations", "Investigations in the database, by state.", labels=["state"]
        )
        depth = GaugeMetricFamily("holmes_queue_depth", "Investigations that wait for a replica.")
        oldest = GaugeMetricFamily(
            "holmes_queue_oldest_wait_seconds", "Seconds for which the oldest of them has been waiting."
        )
        if reading is not None:
            for state, count in reading.by_state.items():
                states.add_metric([state], count)
            depth.add_metric([], reading.waiting)
            oldest.add_metric([], reading.oldest_wait_seconds)
        return (up, states, depth, oldest)


class QueueScrape:
    """Asks the database on behalf of scrapes; an answer serves all of the next two seconds."""

    def __init__(
        self,
        read: Callable[[], Awaitable[QueueReading]],
        *,
        stale_after_seconds: float = STALE_AFTER_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`read` raises `HolmesError` when the database does not answer."""
        self._read = read
        self._stale_after_seconds = stale_after_seconds
        self._patience_seconds = patience_seconds
        self._asked: asyncio.Task[QueueReading | None] | None = None
        self._answered_at = 0.0

    async def reading(self) -> QueueReading | None:
        """What the database says, at most two seconds old; None when it does not answer in time."""
        asked = self._asked
        if asked is None or (asked.done() and time.monotonic() - self._answered_at > self._stale_after_seconds):
            asked = self._asked = asyncio.create_task(self._ask(), name="queue figures")
        # Not cancelled when it takes too long: the thread of a transaction cannot be, and the next scrape waits for it.
        await asyncio.wait({asked}, timeout=self._patience_seconds)
        return asked.result() if asked.done() and not asked.cancelled() else None

    async def _ask(self) -> QueueReading | None:
        try:
            return await self._read()
        except HolmesError:
            return None
        finally:
            self._answered_at = time.monotonic()
