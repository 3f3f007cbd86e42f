"""`/healthz` and `/readyz`, which need no key: for probes. `/readyz` fails at the end, and when nothing works."""

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
    """The process answers."""

    status: Literal["healthy"] = "healthy"


class ToolsetState(BaseModel):
    """How a toolset stands by its last check."""

    name: str
    state: Literal["enabled", "disabled", "failed"]
    reason: str | None = Field(description="Why it cannot be used.")


class Readiness(BaseModel):
    """Requests can be sent here; `models` can be asked. Who brings the key is told how the toolsets stand."""

    status: Literal["ready"]
    models: list[str]
    toolsets: list[ToolsetState] | None = None


def router(service: Service, draining: Draining) -> APIRouter:
    """The routes for probes."""
    routes = APIRouter(tags=["health"])
    writes = WriteProbe(service.database)

    @routes.get("/healthz", summary="Whether the process answers")
    async def healthz() -> Health:
        return Health()

    @routes.get(
        "/readyz",
        summary="Whether requests can be sent here",
        responses=documented(503),
        response_model_exclude_unset=True,
    )
    async def readyz(request: Request) -> Readiness:
        if draining.begun:
            raise ApiError(503, "the server is ending", code="draining")
        try:
            await service.database.read(
                lambda connection: connection.execute(text("SELECT 1")), wait_seconds=_DATABASE_SECONDS
            )
        except DatabaseUnavailable:
            raise ApiError(503, "the database does not answer", code="database_unavailable") from None
        if problem := await writes.problem():
            raise ApiError(503, f"nothing can be written: {problem}", code="database_unavailable")
        if service.investigators.toolsets.nothing_works:
            raise ApiError(503, "no toolset can be used; the log says why", code="no_toolset")
        keys = keys_of(request)
        ready = Readiness(status="ready", models=list(service.investigators.model_names()))
        is_known = any(map(keys.matches, keys_in(request.headers) or (None,)))
        return ready.model_copy(update={"toolsets": _states(service)}) if is_known else ready

    return routes


def _states(service: Service) -> list[ToolsetState]:
    """Commands of others say the reasons, so secrets are masked in them."""
    mask = service.redactor.redact if service.redactor else str
    return [
        ToolsetState(
            name=status.name,
            state=status.state,
            reason=one_line(mask(status.reason)) if status.reason else None,
        )
        for status in service.investigators.toolsets.statuses
    ]


class WriteProbe:
    """Writes now and then when asked, one at a time: whoever reads only would not notice a full disk."""

    def __init__(self, database: Database, seconds_between: float = _SECONDS_BETWEEN_WRITES) -> None:
        self._database = database
        self._seconds_between = seconds_between
        self._writing: asyncio.Task[None] | None = None
        self._begun = 0.0

    async def problem(self) -> str | None:
        """Why nothing can be written; None when something can."""
        due = time.monotonic() - self._begun > self._seconds_between
        if self._writing is None or (self._writing.done() and due):
            self._begun = time.monotonic()
            self._writing = asyncio.create_task(self._write(), name="readiness writes")
        await asyncio.wait({self._writing}, timeout=_DATABASE_SECONDS)
        if not self._writing.done():
            return f"a write takes longer than {_DATABASE_SECONDS:.0f} s"
        problem = self._database.write_problem
        if problem is None:
            return None
        # Where the database is, is nobody's business; SQLite's own words do not tell it.
        return "the database fails" if self._database.shared else one_line(problem.rpartition(" failed: ")[2])

    async def _write(self) -> None:
        try:
            await self._database.transaction(_write, wait_seconds=_DATABASE_SECONDS)
        except DatabaseUnavailable as error:
            _log.warning("not ready: %s", one_line(str(error)))


def _write(connection: "Connection") -> None:
    """A row that is gone again when this is over."""
    insert_once(connection, KEYS, {"name": _PROBE, "value": b""})
    connection.execute(delete(KEYS).where(KEYS.c.name == _PROBE))


def models_router(service: Service) -> APIRouter:
    """The route."""
    routes = APIRouter(prefix="/api", tags=["chat"])

    @routes.get("/model", summary="The models that can be asked", responses=documented(401, 403))
    async def model() -> ModelDocument:
        return ModelDocument(model_name=json.dumps(list(service.investigators.model_names())))

    return routes


def metrics_router(service: Service) -> APIRouter:
    """The endpoint. Answers within a second, also when the database does not (`holmes_database_up 0`)."""
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
        summary="Figures for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics(request: Request) -> Response:
        reading, others = await asyncio.gather(scrape.reading(), service.worker.figures())
        shown = await service.metrics.exposition(reading, request.headers.get("accept", ""), others)
        return Response(shown.content, headers={"content-type": shown.content_type, "cache-control": "no-store"})

    return routes
