"""Requests are counted by route on a real server, streams keep streaming, and a trace goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from holmes.app.telemetry import open_tracer
from holmes.llm.scripted import ScriptedReply
from holmes.telemetry.http import HttpTelemetry
from holmes.telemetry.metrics import Metrics
from holmes.telemetry.readers import traced
from holmes.telemetry.runs import RunAttributes
from holmes.telemetry.tracing import InvestigationTracer
from tests.support.investigations import QUESTION, build_loop
from tests.telemetry.otlp_collector import OtlpCollector
from tests.telemetry.runs import drain, scripted, settings_of
from tests.telemetry.test_metrics import Samples, samples_of, value

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the real server for `app`."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            yield client
    finally:
        server.should_exit = True
        await task


def application(metrics: Metrics, folder: Path, release: asyncio.Event | None = None) -> FastAPI:
    app = FastAPI()
    routes = APIRouter(prefix="/api")

    @routes.get("/investigations/{identity}")
    async def show(identity: str) -> str:
        return identity

    @routes.get("/broken")
    async def broken() -> str:
        raise ZeroDivisionError

    @routes.get("/stream")
    async def stream() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"data: first\n\n"
            if release is not None:
                await release.wait()
            yield b"data: last\n\n"

        return StreamingResponse(pieces(), media_type="text/event-stream")

    async def inner(_: Request) -> Response:
        return PlainTextResponse("inner")

    app.include_router(routes)
    app.mount("/static", StaticFiles(directory=folder))
    app.router.routes.append(Mount("/mounted", app=Starlette(routes=[Route("/{name}", inner)])))
    app.add_middleware(HttpTelemetry, metrics=metrics)
    return app


def requests_of(samples: Samples) -> dict[tuple[str, ...], float]:
    """Counts by method, route and status."""
    return {
        tuple(dict(labels)[name] for name in ("method", "route", "status")): count
        for (name, labels), count in samples.items()
        if name == "holmes_http_requests_total"
    }


async def test_requests_are_counted_by_route_and_never_by_path(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("a {}")
    metrics = Metrics(models=[])
    async with serving(application(metrics, tmp_path)) as client:
        for path in ("1", "2", "3"):
            assert (await client.get(f"/api/investigations/{path}")).status_code == 200
        await client.get("/api/broken")
        await client.get("/static/style.css")
        await client.get("/mounted/anything")
        await client.post("/api/investigations/1")
        for number in range(20):
            await client.get(f"/wp-admin/{number}")
            await client.request(f"M{number}", "/wp-admin")
    assert requests_of(await samples_of(metrics)) == {
        ("GET", "/api/investigations/{identity}", "2xx"): 3,
        ("GET", "/api/broken", "5xx"): 1,
        ("GET", "/static/*", "2xx"): 1,
        ("GET", "/mounted/{name}", "2xx"): 1,
        ("POST", "/api/investigations/{identity}", "4xx"): 1,
        ("GET", "unmatched", "4xx"): 20,
        ("other", "unmatched", "4xx"): 20,
    }


async def test_a_stream_streams_and_is_counted_as_open_until_its_client_goes_away(tmp_path: Path) -> None:
    metrics, release = Metrics(models=[]), asyncio.Event()
    async with serving(application(metrics, tmp_path, release)) as client:
        async with client.stream("GET", "/api/stream") as answer:
            pieces = answer.aiter_bytes()  # kept: httpx closes the connection when nobody holds it any more
            assert await anext(pieces) == b"data: first\n\n"
            samples = await samples_of(metrics)
            assert value(samples, "holmes_http_streams") == 1
            assert requests_of(samples) == {}
        async with asyncio.timeout(5):
            while value(await samples_of(metrics), "holmes_http_streams") != 0:  # noqa: ASYNC110  a figure has no event
                await asyncio.sleep(0.01)
        release.set()
    samples = await samples_of(metrics)
    assert requests_of(samples) == {("GET", "/api/stream", "2xx"): 1}
    seconds = value(samples, "holmes_http_request_duration_seconds_sum", method="GET", route="/api/stream")
    assert seconds is not None
    assert seconds < 0.5


async def test_an_investigation_belongs_to_the_trace_of_its_request(tmp_path: Path) -> None:
    metrics = Metrics(models=[])
    app = FastAPI()
    tracers: list[InvestigationTracer | None] = []

    @app.get("/ask")
    async def ask() -> int:
        stream = build_loop([scripted(ScriptedReply(text="done"))]).call_stream(QUESTION)
        # A task of its own, as for a chat that goes on when its client is away.
        task = asyncio.create_task(drain(traced(stream, tracers[0], RunAttributes(source="api"))))
        return len(await task)

    app.add_middleware(HttpTelemetry, metrics=metrics)
    with OtlpCollector() as collector:
        async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
            tracers.append(tracer)
            async with serving(app) as client:
                await client.get("/ask", headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
                await client.get("/ask", headers={"traceparent": "nonsense"})
                await client.get("/ask", headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})  # not sampled
        roots = [span for span in collector.spans() if span.name == "invoke_agent holmes"]
    assert [(root.trace_id == TRACE, root.parent_id) for root in roots] == [(True, SPAN), (False, "")]
