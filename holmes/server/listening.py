"""Serves an application on a socket, with limits for each connection.

During the shutdown, `/readyz` fails and new work is rejected while chats finish. Then the socket is closed. Connections
whose request head does not arrive in time are closed. If a new connection would exceed the maximum number of
connections, the connection that has been idle longest is closed. If all connections are busy, the new connection
receives a 503 response.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator

    from fastapi import FastAPI

    from holmes.settings.server import ServerSettings

_HEAD_SECONDS: Final = 10.0
_MOST: Final = 4_096
_LEAST: Final = 16
_OTHER_FILES: Final = 128  # reserved for databases, providers, tool pipes and the backlog
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections.\n"
)


class GuardedProtocol(H11Protocol):
    """The HTTP/1.1 protocol with limits for slow clients and for the number of connections."""

    head_seconds: ClassVar[float] = _HEAD_SECONDS
    most: ClassVar[int] = _MOST

    def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401  uvicorn's signature
        super().__init__(*args, **keywords)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self.most and not self._make_room():
            self.transport = transport
            transport.write(_BUSY)
            transport.close()
            return
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.head_seconds, self.give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.is_waiting:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether the head of the next request is incomplete."""
        return self.conn.their_state is h11.IDLE

    @property
    def given_up_at(self) -> float:
        """The time at which an idle connection is closed, or 0 for a reused connection, which has no deadline."""
        return self._deadline.when() if self._deadline else 0

    def give_up(self) -> None:
        self._forget_deadline()
        self.connections.discard(self)
        self.transport.close()

    def _make_room(self) -> bool:
        waiting = [each for each in self.connections if isinstance(each, GuardedProtocol) and each.is_waiting]
        if not waiting:
            return False
        min(waiting, key=lambda each: each.given_up_at).give_up()
        return True

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def guarded(*, head_seconds: float = _HEAD_SECONDS, most: int | None = None) -> type[GuardedProtocol]:
    """Create a protocol class with these limits. `most` is the maximum number of connections."""
    limits = {"head_seconds": head_seconds, "most": _most_connections() if most is None else most}
    return type("LimitedProtocol", (GuardedProtocol,), limits)


def _most_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(_LEAST, min(_MOST, files - max(_OTHER_FILES, files // 4)))


_BACKLOG = 256
_ACCEPTED_AT_ONCE = 32
_CLOSING_SECONDS = 5


class _SignalFreeServer(uvicorn.Server):
    """A server that leaves signal handling to the caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio accepts up to `backlog` connections at once, so uvicorn receives a small value, which is raised here.
        for each in sockets or []:
            each.listen(_BACKLOG)


def listen(settings: ServerSettings) -> socket.socket:
    """Open a listening socket. Raises `ConfigError` if the address is not allowed or not available."""
    host = settings.listen_host()
    if settings.api_key is None and not _is_loopback(host):
        raise ConfigError(
            f"without a key, only loopback addresses are allowed, not {host!r}: set HOLMES_API_KEY or omit --host"
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {host!r} cannot be used: {error.strerror or error}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"port {settings.port} of {host!r} cannot be used: {error.strerror or error}; set another --port"
        ) from error
    listener.setblocking(False)  # noqa: FBT003  the interface of sockets
    return listener


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL of the server on this machine."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@asynccontextmanager
async def serving(
    application: FastAPI,
    listener: socket.socket,
    protocol: type[GuardedProtocol] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[None]:
    """Serve the application until the context manager exits. Running requests then have a few seconds to finish."""
    config = uvicorn.Config(
        application,
        http=protocol or guarded(),
        backlog=_ACCEPTED_AT_ONCE,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # uvicorn would trust every local process; see `limits`
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        ssl_context_factory=(lambda *_: tls) if tls else None,
    )
    server = _SignalFreeServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait({task})
        listener.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
