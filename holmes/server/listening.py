"""Runs an application on a socket until it is told to end. Called by `holmes serve` and by tests.

Ends in order: first `/readyz` fails and nothing new is begun while chats may finish, then the socket is closed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from holmes.server.connections import guarded
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator

    from fastapi import FastAPI

    from holmes.server.connections import GuardedProtocol
    from holmes.settings.server import ServerSettings

_BACKLOG = 256
_ACCEPTED_AT_ONCE = 32
_CLOSING_SECONDS = 5


class _SignalFreeServer(uvicorn.Server):
    """Leaves the signals to whoever started it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio accepts as many at once as may wait, all before the first one is looked at: few, and more may wait.
        for each in sockets or []:
            each.listen(_BACKLOG)


def listen(settings: ServerSettings) -> socket.socket:
    """A socket that accepts connections already. Raises `ConfigError` when it may not be, or cannot."""
    host = settings.listen_host()
    if settings.api_key is None and not _is_loopback(host):
        raise ConfigError(
            f"without a key only loopback is served, not {host!r}: set HOLMES_API_KEY, or leave --host out"
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
            f"port {settings.port} of {host!r} cannot be used: {error.strerror or error}; choose another with --port"
        ) from error
    listener.setblocking(False)  # noqa: FBT003  the interface of sockets
    return listener


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """The address at which people of this machine find the listener."""
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
    """Serve until the block ends; then what still runs gets a few seconds."""
    config = uvicorn.Config(
        application,
        http=protocol or guarded(),
        backlog=_ACCEPTED_AT_ONCE,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # it would believe everybody on this machine; see `clients`
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
