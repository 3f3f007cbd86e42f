"""Opens the connection of the MCP SDK to one server."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Final

from holmes import __version__
from holmes.kubernetes.current_context import current_context
from holmes.observability.access import tls_context
from holmes.toolsets.mcp.servers import ProcessEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client

    from holmes.toolsets.mcp.faults import Trail
    from holmes.toolsets.mcp.servers import HttpEndpoint, McpServer
    from holmes.values.environment import Environment

_CONNECT_SECONDS: Final = 5.0
_REQUEST_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 3_600.0
"""The longest time without an event on an open stream. Servers send pings more often."""


@asynccontextmanager
async def open_client(
    server: McpServer, environment: Environment, auth: httpx2.Auth | None, trail: Trail
) -> AsyncIterator[Client]:
    """Connect, and agree on the protocol version. `trail` keeps what exceptions do not tell.

    Raises exceptions of the SDK, which `fault_of` explains.
    """
    from mcp.client.client import Client
    from mcp_types import Implementation

    # Everything that it logs becomes an error with one line.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)

    endpoint = server.endpoint
    if isinstance(endpoint, ProcessEndpoint):
        transport = _process(endpoint, environment, trail.errors)
    else:
        transport = _http(endpoint, auth, trail)
    identity = Implementation(name="holmes", version=__version__)
    # Older servers answer the probe of the newest protocol over SSE with an error that ends the connection.
    is_sse = not isinstance(endpoint, ProcessEndpoint) and endpoint.mode == "sse"
    async with Client(transport, client_info=identity, cache=None, mode="legacy" if is_sse else "auto") as client:
        yield client


@asynccontextmanager
async def _process(
    endpoint: ProcessEndpoint, environment: Environment, errors: IO[str]
) -> AsyncIterator[TransportStreams]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    with current_context(environment) as own:
        started = StdioServerParameters(
            command=endpoint.command,
            args=list(endpoint.arguments),
            env={**own.as_dict(), **endpoint.variables},
            encoding_error_handler="replace",
        )
        async with stdio_client(started, errlog=errors) as streams:  # type: ignore[arg-type]
            yield streams


@asynccontextmanager
async def _http(endpoint: HttpEndpoint, auth: httpx2.Auth | None, trail: Trail) -> AsyncIterator[TransportStreams]:
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    if endpoint.mode == "sse":

        def own_client(*_: object, **__: object) -> httpx2.AsyncClient:
            return _client(endpoint, auth, trail)

        # The SDK opens and closes this client itself.
        async with sse_client(endpoint.url, httpx_client_factory=own_client) as streams:
            yield streams
        return
    async with (
        _client(endpoint, auth, trail) as http,
        streamable_http_client(endpoint.url, http_client=http) as streams,
    ):
        yield streams


def _client(endpoint: HttpEndpoint, auth: httpx2.Auth | None, trail: Trail) -> httpx2.AsyncClient:
    """Return a client that follows no redirect to another origin and reads no proxy from the environment."""
    import httpx2

    async def remember(response: httpx2.Response) -> None:
        sent = response.request
        # Not that of a login, nor of the optional stream of notifications.
        is_message = sent.method == "POST" and sent.headers.get("content-type") == "application/json"
        is_stream = endpoint.mode == "sse" and str(sent.url) == endpoint.url
        # The SDK sends nothing over SSE after a refused message, and its caller would wait for a response.
        if not response.is_success and (is_message or is_stream) and trail.refuse(response) and endpoint.mode == "sse":
            trail.lost()

    return httpx2.AsyncClient(
        headers={"User-Agent": f"holmes/{__version__}", **endpoint.headers},
        auth=auth,
        verify=tls_context(endpoint.tls),
        proxy=endpoint.proxy,
        trust_env=False,
        event_hooks={"response": [remember]},
        timeout=httpx2.Timeout(_REQUEST_SECONDS, connect=_CONNECT_SECONDS, read=_IDLE_SECONDS),
    )
