"""Figures of the queue, which all replicas share: read from the database when somebody scrapes.

The database is not known here; whoever is, hands over a function. A database that is slow or down costs a scrape at
most `patience_seconds`, and never more than one question at a time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from prometheus_client import Metric

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
