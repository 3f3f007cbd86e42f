"""Headers of a request to the API reach the MCP servers whose configuration names them, and nothing else."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from mcp_types import TextContent

from tests.server.http_server import KEY, http_server, provider
from tests.server.test_mcp import mcp_client
from tests.support.openai_server import Reply, call
from tests.toolsets.mcp.running import TENANTS, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.server.http_server import HttpServer, Provider
    from tests.support.openai_server import Body, Scripted

_SECRET: Final = "q7Zt-44aLw-90xKm"


@contextmanager
def _served(folder: Path) -> Iterator[tuple[HttpServer, Provider]]:
    with running_server("streamable-http", TENANTS) as tenants, provider() as scripted:
        headers = {name: f"{{{{ request_context.headers['{name}'] }}}}" for name in ("X-Tenant", "X-Token")}
        keys = {"url": tenants.endpoint.url, "mode": "streamable-http", "extra_headers": headers}
        config = f"mcp_servers: {json.dumps({'tenants': {'read_only': True, 'config': keys}})}\n"
        base = scripted.server.base_url
        with http_server(folder, provider_url=base, config=config, HOLMES_API_KEY=KEY) as server:
            yield server, scripted


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_and_one_without_the_headers(tmp_path: Path, stream: bool) -> None:
    results: list[str] = []

    def respond(body: Body) -> Scripted:
        told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        results.extend(each.splitlines()[0] for each in told)
        if told:
            return Reply(text="Told.")
        return Reply(tool_calls=(call("tell", name="x-tenant"), call("tell", name="x-token")))

    with _served(tmp_path) as (server, scripted):
        scripted.respond = respond
        asked = {"ask": "who asks?", "stream": stream}
        with server.client(**{"X-API-Key": KEY, "X-Tenant": "shop", "X-Token": _SECRET, "X-Other": "o"}) as client:
            first = client.post("/api/chat", json=asked)
        with server.client() as client:
            second = client.post("/api/chat", json=asked)
    assert (first.status_code, second.status_code) == (200, 200)
    assert results[:2] == ["x-tenant is 'shop'", "x-token is '***'"]
    assert len(results) == 4
    assert all("requires the header X-T" in each and "the request has none" in each for each in results[2:])
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert _SECRET not in first.text
    assert _SECRET.encode() not in kept


async def test_a_tool_that_an_mcp_client_calls(tmp_path: Path) -> None:
    with _served(tmp_path) as (server, _):
        async with mcp_client(server, **{"X-Tenant": "shop", "X-Token": _SECRET}) as client:
            told = await client.call_tool("tell", {"name": "x-tenant"})
    assert isinstance(told.content[0], TextContent)
    assert told.content[0].text.splitlines()[0] == "x-tenant is 'shop'"
