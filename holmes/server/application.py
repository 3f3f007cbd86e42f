"""Puts the routers together to one application. Called by `holmes serve` and by tests."""

from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse

from holmes import __version__
from holmes.server.api import (
    alerts,
    checks,
    deliveries,
    health,
    incidents,
    investigations,
    metrics,
    models,
    results,
)
from holmes.server.bodies import BoundedBodies
from holmes.server.chat import chat
from holmes.server.chat.chat_runs import ChatRuns
from holmes.server.clients import TrustedProxies
from holmes.server.draining import Draining
from holmes.server.errors import BugReporter, add_error_handlers
from holmes.server.guesses import GuessLimiter
from holmes.server.heads import HeadAsGet
from holmes.server.pages import pages
from holmes.server.security import Doorkeeper, Keys, require_key
from holmes.telemetry.http import HttpTelemetry

if TYPE_CHECKING:
    from holmes.app.serving import Service

_BYTES_PER_MEGABYTE = 1_000_000


def create_application(service: "Service") -> FastAPI:
    """The application for `service`. `state` has `service`, `keys`, `proxies`, `draining` and `chats`."""
    application = _bare_application()
    settings = service.settings.server
    keys, draining = Keys(settings), Draining()
    application.state.service = service
    application.state.keys = keys
    application.state.proxies = TrustedProxies(settings.trusted_proxies)
    application.state.draining = draining
    application.state.chats = ChatRuns(service, draining)
    _add_routes(application, service, draining)
    add_error_handlers(application)
    # The last one added is the outermost.
    application.add_middleware(HeadAsGet)
    application.add_middleware(
        BoundedBodies, keys=keys, max_bytes=int(settings.max_body_megabytes * _BYTES_PER_MEGABYTE)
    )
    application.add_middleware(GuessLimiter, keys=keys)
    application.add_middleware(BugReporter)
    application.add_middleware(Doorkeeper, keys=keys)
    application.add_middleware(HttpTelemetry, metrics=service.metrics)
    return application


def _bare_application() -> FastAPI:
    return FastAPI(
        title="Holmes",
        version=__version__,
        description="Finds the root cause of Kubernetes problems.",
        # The documentation pages load scripts from elsewhere; the document itself is behind the key.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # the address would be made from what the client says that this host is called
        # FastAPI's own would send messages of exceptions; ours are in `holmes.telemetry`.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )


def _add_routes(application: FastAPI, service: "Service", draining: Draining) -> None:
    """The open routes, and those behind the key."""
    runs: ChatRuns = application.state.chats
    for each in (health.router(service, draining), alerts.router(service), pages.router(service)):
        application.include_router(each)
    inside = (
        chat.router(runs, service.settings.server.heartbeat_seconds),
        models.router(service),
        checks.router(service, runs),
        investigations.router(service, draining),
        incidents.router(service),
        deliveries.router(service),
        results.router(service),
        metrics.router(service),
    )
    for each in inside:
        application.include_router(each, dependencies=[Depends(require_key)])
    application.add_api_route("/openapi.json", _document, include_in_schema=False, dependencies=[Depends(require_key)])


async def _document(request: Request) -> JSONResponse:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())
