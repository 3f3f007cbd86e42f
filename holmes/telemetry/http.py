"""Counts HTTP requests and stores the incoming trace context, as the outermost middleware of the server.

The middleware is pure ASGI and does not buffer, so event streams are not delayed. Labels contain route templates, never
paths. A request without a route is counted as `unmatched`, so a scanner that tries a million paths adds only one
series.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol, Self

from starlette.routing import Mount

from holmes.telemetry.runs import incoming_trace

if TYPE_CHECKING:
    from types import TracebackType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holmes.telemetry.metrics import Metrics

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNMATCHED: Final = "unmatched"
_NO_ANSWER: Final = "none"
_TRACE_HEADERS: Final = frozenset({b"traceparent", b"tracestate"})


class _Route(Protocol):
    @property
    def path(self) -> str: ...


class HttpTelemetry:
    """The telemetry middleware. Add it as the last middleware.

    For example, call `application.add_middleware(HttpTelemetry, metrics=metrics)`.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = incoming_trace.set(_trace_headers(scope))
        try:
            with _Answer(self._metrics, scope, send) as answer:
                await self._app(scope, receive, answer.send)
        finally:
            incoming_trace.reset(token)


class _Answer:
    """Measures one request until the end of its response."""

    def __init__(self, metrics: Metrics, scope: Scope, send: Send) -> None:
        self._instruments = metrics.instruments
        self._scope = scope
        self._send = send
        self._mounted_below = scope.get("root_path", "")
        self._started = time.perf_counter()
        self._seconds: float | None = None
        self._status = _NO_ANSWER
        self._is_stream = False

    async def send(self, message: Message) -> None:
        """Forward a part of the response. The first part contains the status."""
        if message["type"] == "http.response.start":
            self._status = f"{message['status'] // 100}xx"
            if _is_event_stream(message):
                self._is_stream = True
                self._seconds = time.perf_counter() - self._started
                self._instruments.http_streams.inc()
        await self._send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count the request with its status class, or as interrupted."""
        if self._status == _NO_ANSWER and kind is not None and issubclass(kind, Exception):
            self._status = "5xx"  # an outer layer of the server sends the error response
        seconds = time.perf_counter() - self._started if self._seconds is None else self._seconds
        method = self._scope["method"] if self._scope["method"] in _METHODS else "other"
        route = self._route()
        self._instruments.http_requests.labels(method, route, self._status).inc()
        self._instruments.http_request_duration.labels(method, route).observe(seconds)
        if self._is_stream:
            self._instruments.http_streams.dec()

    def _route(self) -> str:
        route: _Route | None = self._scope.get("route")
        mounted = str(self._scope.get("root_path", "")).removeprefix(self._mounted_below)
        if route is None or isinstance(route, Mount):
            return f"{mounted}/*" if mounted else _UNMATCHED
        return f"{mounted}{route.path}"


def _trace_headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE_HEADERS
    }


def _is_event_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
