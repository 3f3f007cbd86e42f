"""`/healthz` and `/readyz`, which need no key: for probes. `/readyz` fails while the server ends or has no database."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import text

from holmes.app.serving import Service
from holmes.investigations.database import DatabaseUnavailable
from holmes.server.draining import Draining
from holmes.server.errors import ApiError, documented

_DATABASE_SECONDS = 1.0


class Health(BaseModel):
    """The process answers."""

    status: Literal["healthy"] = "healthy"


class Readiness(BaseModel):
    """Requests can be sent here; `models` can be asked."""

    status: Literal["ready"] = "ready"
    models: list[str]


def router(service: Service, draining: Draining) -> APIRouter:
    """The routes for probes."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz", summary="Whether the process answers")
    async def healthz() -> Health:
        return Health()

    @routes.get("/readyz", summary="Whether requests can be sent here", responses=documented(503))
    async def readyz() -> Readiness:
        if draining.begun:
            raise ApiError(503, "the server is ending", code="draining")
        try:
            await service.database.read(
                lambda connection: connection.execute(text("SELECT 1")), wait_seconds=_DATABASE_SECONDS
            )
        except DatabaseUnavailable:
            raise ApiError(503, "the database does not answer", code="database_unavailable") from None
        return Readiness(models=list(service.investigators.model_names()))

    return routes
