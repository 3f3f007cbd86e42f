"""Builds the application from routers and ASGI layers.

For uptime monitors, the innermost layer handles HEAD like GET, but sends no body. `/api` and `/metrics` are excluded,
because a HEAD request for an event stream would never end.
"""

from typing import TYPE_CHECKING, Final

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holmes import __version__
from holmes.server.api import alerts, checks, health, incidents, investigations
from holmes.server.bodies import BoundedBodies
from holmes.server.chat import chat
from holmes.server.chat.chat_runs import ChatRuns
from holmes.server.errors import BugReporter, add_error_handlers
from holmes.server.limits import Draining, KeyGuessMiddleware, TrustedProxies
from holmes.server.mcp_route import PATH, McpEndpoint
from holmes.server.pages import pages
from holmes.server.security import Keys, SecurityMiddleware, require_key
from holmes.telemetry.http import HttpTelemetry

if TYPE_CHECKING:
    from holmes.app.serving import Service

_OTHERS: Final = ("/api/", "/metrics", "/openapi.json")


class HeadAsGet:
    """ASGI layer that handles HEAD as GET and drops the body of the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(_OTHERS):
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        scope["method"] = "GET"  # changed in the original scope, because outer layers read the route from it
        try:
            await self._app(scope, receive, send_without_body)
        finally:
            scope["method"] = "HEAD"


_BYTES_PER_MEGABYTE = 1_000_000


def create_application(service: "Service") -> FastAPI:
    """Create the application. Its `state` contains `service`, `keys`, `proxies`, `draining`, `chats` and `mcp`."""
    application = _bare_application()
    settings = service.settings.server
    keys, draining = Keys(settings), Draining()
    application.state.service = service
    application.state.keys = keys
    application.state.proxies = TrustedProxies(settings.trusted_proxies)
    application.state.draining = draining
    application.state.chats = ChatRuns(service, draining)
    application.state.mcp = McpEndpoint(service, application.state.chats)
    _add_routes(application, service, draining)
    add_error_handlers(application)
    # The layer added last is the outermost.
    application.add_middleware(HeadAsGet)
    application.add_middleware(
        BoundedBodies, keys=keys, max_bytes=int(settings.max_body_megabytes * _BYTES_PER_MEGABYTE)
    )
    application.add_middleware(KeyGuessMiddleware, keys=keys)
    application.add_middleware(BugReporter)
    application.add_middleware(SecurityMiddleware, keys=keys)
    application.add_middleware(HttpTelemetry, metrics=service.metrics)
    return application


def _bare_application() -> FastAPI:
    return FastAPI(
        title="Holmes",
        version=__version__,
        description="Finds the root cause of Kubernetes problems.",
        # Disabled: the documentation pages load scripts from other sites, and `/openapi.json` must require the key.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would use the host from the request
        # FastAPI's telemetry would send exception messages. `holmes.telemetry` replaces it.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )


def _add_routes(application: FastAPI, service: "Service", draining: Draining) -> None:
    """Add the public routes, and the routes that require the key."""
    runs: ChatRuns = application.state.chats
    for each in (health.router(service, draining), alerts.router(service), pages.router(service)):
        application.include_router(each)
    inside = (
        chat.router(runs, service.settings.server.heartbeat_seconds),
        health.models_router(service),
        checks.router(runs),
        investigations.router(service, draining),
        incidents.router(service),
        incidents.deliveries_router(service),
        investigations.results_router(service),
        health.metrics_router(service),
    )
    for each in inside:
        application.include_router(each, dependencies=[Depends(require_key)])
    application.router.routes.append(Route(PATH, endpoint=application.state.mcp, include_in_schema=False))
    application.add_api_route("/openapi.json", _document, include_in_schema=False, dependencies=[Depends(require_key)])


async def _document(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(request.app.openapi())
