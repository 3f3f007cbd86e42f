"""The routes for probes, models and metrics. Probes do not require a key."""

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING, Final, Literal, get_args

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import delete, text

from holmes.app.serving import Service
from holmes.investigations.records.database import Database, DatabaseUnavailable
from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import KEYS
from holmes.investigations.records.values import InvestigationState
from holmes.server.chat.chat_jobs import ModelDocument
from holmes.server.errors import ApiError, documented, one_line
from holmes.server.limits import Draining
from holmes.server.security import keys_in, keys_of, require_key
from holmes.telemetry.instruments import QueueReading, QueueScrape

if TYPE_CHECKING:
    from sqlalchemy import Connection


_DATABASE_SECONDS: Final = 1.0
_SECONDS_BETWEEN_WRITES: Final = 5.0
_PROBE: Final = "readiness"
_log = logging.getLogger(__name__)


class Health(BaseModel):
    """The response of a running process."""

    status: Literal["healthy"] = "healthy"


class ToolsetState(BaseModel):
    """The state of a toolset after its last check."""

    name: str
    state: Literal["enabled", "disabled", "absent", "failed"]
    reason: str | None = Field(description="Reason why the toolset is not available.")
    cluster: str | None = Field(description="Configured cluster that the toolset reads.")


class Readiness(BaseModel):
    """The response of a server that accepts requests.

    `toolsets` and `clusters`, the names of the configured clusters, are set only if the request has a valid key.
    """

    status: Literal["ready"]
    models: list[str]
    toolsets: list[ToolsetState] | None = None
    clusters: list[str] | None = None


def router(service: Service, draining: Draining) -> APIRouter:
    routes = APIRouter(tags=["health"])
    writes = WriteProbe(service.database)

    @routes.get("/healthz", summary="Check that the process responds")
    async def healthz() -> Health:
        return Health()

    @routes.get(
        "/readyz",
        summary="Check that the server accepts requests",
        responses=documented(503),
        response_model_exclude_unset=True,
    )
    async def readyz(request: Request) -> Readiness:
        if draining.begun:
            raise ApiError(503, "the server is stopping", code="draining")
        try:
            await service.database.read(
                lambda connection: connection.execute(text("SELECT 1")), wait_seconds=_DATABASE_SECONDS
            )
        except DatabaseUnavailable:
            raise ApiError(503, "the database is not responding", code="database_unavailable") from None
        if problem := await writes.problem():
            raise ApiError(503, f"cannot write to the database: {problem}", code="database_unavailable")
        if service.investigators.clusters.nothing_works:
            raise ApiError(503, "no toolset is available; see the server log", code="no_toolset")
        keys = keys_of(request)
        ready = Readiness(status="ready", models=list(service.investigators.model_names()))
        is_known = any(map(keys.matches, keys_in(request.headers) or (None,)))
        known = {"toolsets": _states(service), "clusters": list(service.settings.clusters.clusters)}
        return ready.model_copy(update=known) if is_known else ready

    return routes


def _states(service: Service) -> list[ToolsetState]:
    """Return the toolset states. Secrets in reasons are masked, because external commands write the reasons."""
    mask = service.redactor.redact if service.redactor else str
    return [
        ToolsetState(
            name=status.name,
            state=status.state,
            reason=one_line(mask(status.reason)) if status.reason else None,
            cluster=cluster,
        )
        for cluster, desk in service.investigators.clusters.opened.items()
        for status in desk.toolsets.statuses
    ]


class WriteProbe:
    """Checks whether the database accepts a write, because reads do not detect a full disk."""

    def __init__(self, database: Database, seconds_between: float = _SECONDS_BETWEEN_WRITES) -> None:
        self._database = database
        self._seconds_between = seconds_between
        self._writing: asyncio.Task[None] | None = None
        self._begun = 0.0

    async def problem(self) -> str | None:
        """Return the error message if a write fails, or None if it succeeds."""
        due = time.monotonic() - self._begun > self._seconds_between
        if self._writing is None or (self._writing.done() and due):
            self._begun = time.monotonic()
            self._writing = asyncio.create_task(self._write(), name="readiness writes")
        await asyncio.wait({self._writing}, timeout=_DATABASE_SECONDS)
        if not self._writing.done():
            return f"a write takes more than {_DATABASE_SECONDS:.0f} s"
        problem = self._database.write_problem
        if problem is None:
            return None
        # Only SQLite's own message is shown, because the text before it contains the database URL.
        return "the database failed" if self._database.shared else one_line(problem.rpartition(" failed: ")[2])

    async def _write(self) -> None:
        try:
            await self._database.transaction(_write, wait_seconds=_DATABASE_SECONDS)
        except DatabaseUnavailable as error:
            _log.warning("not ready: %s", one_line(str(error)))


def _write(connection: "Connection") -> None:
    """Insert a row and delete it in the same transaction."""
    insert_once(connection, KEYS, {"name": _PROBE, "value": b""})
    connection.execute(delete(KEYS).where(KEYS.c.name == _PROBE))


def models_router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["chat"])

    @routes.get("/model", summary="List the available models", responses=documented(401, 403))
    async def model() -> ModelDocument:
        return ModelDocument(model_name=json.dumps(list(service.investigators.model_names())))

    return routes


def metrics_router(service: Service) -> APIRouter:
    """Create the metrics route. It responds within a second, even if the database is unavailable."""
    routes = APIRouter(tags=["health"], dependencies=[Depends(require_key)])

    async def read() -> QueueReading:
        figures = await service.investigations.figures()
        return QueueReading(
            by_state={state: figures.by_state.get(state, 0) for state in get_args(InvestigationState)},
            waiting=figures.by_state.get("queued", 0),
            oldest_wait_seconds=figures.oldest_wait_seconds,
        )

    scrape = QueueScrape(read)

    @routes.get(
        "/metrics",
        summary="Read the metrics for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics(request: Request) -> Response:
        reading, others = await asyncio.gather(scrape.reading(), service.worker.figures())
        shown = await service.metrics.exposition(reading, request.headers.get("accept", ""), others)
        return Response(shown.content, headers={"content-type": shown.content_type, "cache-control": "no-store"})

    return routes
