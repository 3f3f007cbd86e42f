"""Builds the serving process of the server."""

from __future__ import annotations

import logging
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from holmes.app.alerts import alert_intake
from holmes.app.cluster_desks import qualified
from holmes.app.investigators import Investigators, InvestigatorsParts
from holmes.app.service_parts import database_address, limit_arenas, shared_redactor, shared_results
from holmes.app.telemetry import open_telemetry
from holmes.app.toolsets import watch_toolsets
from holmes.investigations.deliveries.records import DeliveryRecords
from holmes.investigations.records.database import Database, DatabaseDamaged, DatabaseUnavailable
from holmes.investigations.records.records import IncidentRecords, InvestigationRecords
from holmes.investigations.records.replicas import single_owner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from prometheus_client import Metric

    from holmes.app.toolsets import OpenToolsets
    from holmes.investigations.alerts.intake import AlertIntake
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.telemetry.metrics import Metrics
    from holmes.toolsets.registry import ToolsetStatus
    from holmes.toolsets.watch import ToolsetWatch
    from holmes.values.tools import ResultStore

_SWITCH_SECONDS: Final = 0.001
"""The time that a thread may run before it yields to another thread. Python's default is five times as long."""
_log = logging.getLogger(__name__)


class Worker(Protocol):
    """The process that runs investigations. See `holmes.server.work_process`."""

    def working(self, settings: Settings) -> AbstractAsyncContextManager[None]:
        """Run the process. Leaving the context waits until running work ends or another process takes it over.

        Raises `HolmesError`.
        """
        ...

    def wake(self) -> None:
        """Notify the process that work is queued."""
        ...

    def use_toolsets(self, statuses: tuple[ToolsetStatus, ...]) -> None:
        """Pass the toolset states to the process, so that it does not repeat the checks."""
        ...

    def begin_to_end(self) -> None:
        """Stop taking new work. Running work continues."""
        ...

    async def figures(self) -> Sequence[Metric]:
        """Read the metrics of the process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts of the server that the HTTP API and the web pages use. `results` is None without result storage."""

    settings: Settings
    redactor: Redactor | None
    metrics: Metrics
    investigators: Investigators
    database: Database
    investigations: InvestigationRecords
    incidents: IncidentRecords
    deliveries: DeliveryRecords
    intake: AlertIntake
    results: ResultStore | None
    worker: Worker


@asynccontextmanager
async def open_service(settings: Settings, *, redactor: Redactor | None, worker: Worker) -> AsyncIterator[Service]:
    """Start all parts of the server. Leaving the context closes them in reverse order.

    Raises `ConfigError` for invalid settings, and `DatabaseUnavailable`. An unreachable cluster or model provider does
    not raise an error, because it may recover.
    """
    limit_arenas()
    sys.setswitchinterval(_SWITCH_SECONDS)
    async with AsyncExitStack() as stack:
        database = await _opened(database_address(settings))
        stack.push_async_callback(database.close)
        stack.enter_context(single_owner(database))
        redactor = await shared_redactor(database, redactor)
        telemetry = await stack.enter_async_context(open_telemetry(settings))
        investigations = InvestigationRecords(database)

        states: dict[str | None, dict[str, str]] = {}

        def on_check(cluster: str | None, statuses: tuple[ToolsetStatus, ...]) -> None:
            states[cluster] = {qualified(cluster, status.name, settings): status.state for status in statuses}
            telemetry.metrics.toolsets({name: state for own in states.values() for name, state in own.items()})
            if not settings.serves_several:
                worker.use_toolsets(statuses)

        def watch(own: Settings) -> ToolsetWatch[OpenToolsets]:
            return watch_toolsets(own, redactor=redactor, on_check=partial(on_check, own.cluster))

        parts = InvestigatorsParts(
            redactor=redactor,
            results=shared_results(settings, database),
            spent_today=investigations.spent_today,
            telemetry=telemetry,
            watch=watch,
        )
        await stack.enter_async_context(worker.working(settings))
        investigators = await stack.enter_async_context(Investigators(settings, parts))
        yield Service(
            settings=settings,
            redactor=redactor,
            metrics=telemetry.metrics,
            investigators=investigators,
            database=database,
            investigations=investigations,
            incidents=IncidentRecords(database),
            deliveries=DeliveryRecords(database),
            intake=alert_intake(settings, database, investigators.model_names(), worker.wake),
            results=investigators.results,
            worker=worker,
        )


async def _opened(address: str) -> Database:
    """Open the database. Before a long wait, log a warning. Raises the same errors as `Database.open`."""
    try:
        return await Database.open(address, wait_seconds=1)
    except DatabaseDamaged:
        raise
    except DatabaseUnavailable as error:
        _log.warning("waiting for the database: %s", error)
    return await Database.open(address)
