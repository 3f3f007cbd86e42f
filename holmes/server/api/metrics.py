"""`GET /metrics`: the figures for Prometheus. Needs the API key like everything else that is not a health endpoint."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, get_args

from fastapi import APIRouter, Depends, Request, Response

from holmes.investigations.records.values import InvestigationState
from holmes.server.security import require_key
from holmes.telemetry.instruments import QueueReading, QueueScrape

if TYPE_CHECKING:
    from holmes.app.serving import Service


def router(service: Service) -> APIRouter:
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
