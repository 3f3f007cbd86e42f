"""Builds parts of the server from the settings, and limits the memory of the process."""

from __future__ import annotations

import ctypes
import socket
import time
import uuid
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes import __version__
from holmes.app.alerts import alert_routes, destinations_of
from holmes.investigations.deliveries.news import NewsComposer
from holmes.investigations.deliveries.records import queue_finished
from holmes.investigations.queue.queue import InvestigationQueue, QueueSettings
from holmes.investigations.queue.worker import InvestigationWorker, WorkerParts
from holmes.investigations.records.replicas import Replicas, shared_key
from holmes.investigations.records.results import DatabaseResultStore
from holmes.redaction.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from holmes.app.investigators import Investigators
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationRecord
    from holmes.settings.settings import Settings
    from holmes.values.tools import ResultStore

_DEFAULT_DATABASE = "investigations.db"


def database_address(settings: Settings) -> str:
    """Return the URL of the configured database, which is by default an SQLite file next to the stored results."""
    chosen = settings.investigations.database_url
    if chosen:
        return chosen.get_secret_value()
    folder: Path = settings.storage.results_path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return f"sqlite:///{folder / _DEFAULT_DATABASE}"


async def shared_redactor(database: Database, own: Redactor | None) -> Redactor | None:
    """Return a redactor with the key in the database if replicas share the database. Otherwise, return `own`."""
    if own is None or not database.shared:
        return own
    return Redactor(await shared_key(database, "redaction"))


def shared_results(settings: Settings, database: Database) -> ResultStore | None:
    """Return the result store that all replicas share, or None if results are stored in files or not stored."""
    return DatabaseResultStore(database) if database.shared and settings.storage.results_enabled else None


def news_composer(
    settings: Settings, database: Database, redactor: Redactor | None, results: ResultStore | None
) -> NewsComposer:
    return NewsComposer(
        database,
        public_url=settings.server.public_url,
        cluster=settings.investigation.cluster_name,
        mask=redactor.redact if redactor is not None else None,
        results=results,
    )


def investigation_queue(
    settings: Settings, database: Database, investigators: Investigators, on_news: Callable[[], None]
) -> InvestigationQueue:
    """Build the queue of this replica with a unique replica name. `on_news` runs when notifications are queued."""
    own = settings.investigations
    replica = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"

    def announce(record: InvestigationRecord) -> None:
        investigators.count_finished(record)
        on_news()

    worker = InvestigationWorker(
        WorkerParts(
            database=database,
            replica=replica,
            ask=investigators.investigate,
            on_finished=_tell_destinations(settings, investigators),
            announce=announce,
            timeout_seconds=own.timeout_seconds,
            cluster_wait_seconds=own.cluster_wait_seconds,
        )
    )
    queue_settings = QueueSettings(
        database_url=database.workflows_url(),
        replica=replica,
        concurrency=own.concurrency,
        lease_seconds=own.lease_seconds,
        drain_seconds=own.drain_seconds,
    )
    replicas = Replicas(database, replica, __version__, lease_seconds=own.lease_seconds)
    return InvestigationQueue(queue_settings, database, replicas, worker)


def _tell_destinations(
    settings: Settings, investigators: Investigators
) -> Callable[[Connection, InvestigationRecord], None]:
    routes = alert_routes(settings, investigators.model_names())
    configured = tuple(settings.alerts.destinations)

    def tell(connection: Connection, record: InvestigationRecord) -> None:
        queue_finished(connection, record, destinations_of(routes.named(record.route), configured), time.time())

    return tell


_ARENAS: Final = 2
_M_ARENA_MAX: Final = -8


def limit_arenas() -> None:
    """Limit malloc to two arenas to save memory. Call this function before any thread starts."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory to the operating system. The call takes milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
