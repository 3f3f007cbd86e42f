"""Builds the process that runs investigations, deliveries and the cleanup.

This process shares only the database with the serving process. See `holmes.server.work_process`.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holmes.app.alerts import open_destinations
from holmes.app.investigators import Investigators, InvestigatorsParts
from holmes.app.service_parts import (
    database_address,
    give_back,
    investigation_queue,
    news_composer,
    shared_redactor,
    shared_results,
)
from holmes.app.telemetry import open_telemetry
from holmes.app.toolsets import watch_toolsets
from holmes.investigations.deliveries.worker import DeliveryWorker
from holmes.investigations.queue.queue import repeat, running
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import SECONDS_PER_DAY, SECONDS_PER_HOUR, InvestigationRecords, close_stale
from holmes.investigations.records.results import delete_old

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holmes.app.cluster_desks import ClusterDesks
    from holmes.investigations.queue.queue import InvestigationQueue
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.telemetry.metrics import Metrics
    from holmes.toolsets.registry import ToolsetStatus

_RETENTION_PAUSE_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The parts of the process that runs investigations. Use them only on the event loop that opened them."""

    database: Database
    queue: InvestigationQueue
    deliveries: DeliveryWorker
    metrics: Metrics
    clusters: ClusterDesks

    def wake(self) -> None:
        """Notify the workers that investigations or notifications are queued."""
        self.queue.wake()
        self.deliveries.wake()

    def adopt(self, statuses: tuple[ToolsetStatus, ...]) -> None:
        """Adopt the toolset states of the only cluster, which the serving process determined."""
        for desk in self.clusters.opened.values():
            desk.toolsets.adopt(statuses)

    def begin_to_end(self) -> None:
        """Stop taking new work. Leaving the context waits for running work."""
        self.queue.begin_to_stop()


@asynccontextmanager
async def open_work(settings: Settings, redactor: Redactor | None, *, adopts: bool = False) -> AsyncIterator[Work]:
    """Run queued work until the context exits. Then wait for running work to end. See `InvestigationQueue.stop`.

    If `adopts` is true, another process checks the toolsets. Raises `ConfigError` for invalid settings, and
    `DatabaseUnavailable`.
    """
    async with AsyncExitStack() as stack:
        database = await Database.open(database_address(settings))
        stack.push_async_callback(database.close)
        redactor = await shared_redactor(database, redactor)
        telemetry = await stack.enter_async_context(open_telemetry(settings, warn=False))
        # With several clusters, each process checks the toolsets of the clusters that it uses.
        watch = partial(watch_toolsets, redactor=redactor, adopts=adopts and not settings.serves_several)
        parts = InvestigatorsParts(
            redactor=redactor,
            results=shared_results(settings, database),
            spent_today=InvestigationRecords(database).spent_today,
            telemetry=telemetry,
            watch=watch,
        )
        destinations = await stack.enter_async_context(open_destinations(settings))
        investigators = await stack.enter_async_context(Investigators(settings, parts))
        metrics = telemetry.metrics
        deliveries = DeliveryWorker(
            database,
            destinations,
            news_composer(settings, database, redactor, investigators.results).compose,
            count=lambda destination, outcome: metrics.delivery(destination=destination, outcome=outcome),
        )

        def finished() -> None:
            deliveries.wake()
            give_back()

        queue = investigation_queue(settings, database, investigators, finished)
        # The parts close in reverse order, so that notifications are still sent while the queue drains.
        await stack.enter_async_context(running(deliveries.run(), "holmes-deliveries"))
        stack.push_async_callback(queue.stop)
        await queue.start()
        await stack.enter_async_context(running(_clean_up(settings, database, queue), "holmes-retention"))
        yield Work(
            database=database, queue=queue, deliveries=deliveries, metrics=metrics, clusters=investigators.clusters
        )


async def _clean_up(settings: Settings, database: Database, queue: InvestigationQueue) -> None:
    # The hourly limits count stored investigations, so investigations are stored for at least one hour.
    retention_seconds = max(settings.investigations.retention_days * SECONDS_PER_DAY, SECONDS_PER_HOUR)
    stale_seconds, began = settings.alerts.stale_hours * SECONDS_PER_HOUR, time.monotonic()

    async def clean_up() -> None:
        listening_seconds = time.monotonic() - began
        await close_stale(database, stale_seconds=stale_seconds, listening_seconds=listening_seconds)
        await queue.forget(await delete_old(database, retention_seconds=retention_seconds))

    await repeat(clean_up, _RETENTION_PAUSE_SECONDS)
