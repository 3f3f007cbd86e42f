"""`/mcp`: Holmes as an MCP server over streamable HTTP, with the server's key."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from tests.server.http_server import KEY, WEBHOOK_KEY
from tests.support.openai_server import Reply, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.server.http_server import HttpServer, Provider


@asynccontextmanager
async def mcp_client(server: HttpServer, key: str = KEY, **others: str) -> AsyncIterator[Client]:
    """A client that also sends `others` as headers."""
    headers = {"Authorization": f"Bearer {key}", **others}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_tools_and_answers_with_their_steps(server: HttpServer, scripted: Provider) -> None:
    scripted.play(Reply(tool_calls=(call("kubernetes_diagnose"),)), Reply(text="The cluster has faults."))
    steps: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(steps) + 1, None)
        steps.append(message or "")

    async with mcp_client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        pods = await client.call_tool("kubectl_get", {"kind": "pods", "namespace": "shop"})
        answer = await client.call_tool("ask_holmes", {"question": "is all well?"}, progress_callback=note)
    assert {"ask_holmes", "kubernetes_diagnose", "kubectl_get"} <= names
    assert "risky_echo" not in names
    assert isinstance(pods.content[0], TextContent)
    assert "catalog-" in pods.content[0].text
    assert isinstance(answer.content[0], TextContent)
    assert answer.content[0].text.startswith("The cluster has faults.")
    assert len(steps) >= 1


async def test_questions_count_as_chats(server: HttpServer, scripted: Provider) -> None:
    async with mcp_client(server) as client:
        asked = [client.call_tool("ask_holmes", {"question": f"question {number}"}) for number in range(8)]
        results = await asyncio.gather(*asked)
    refused = [result for result in results if result.is_error]
    assert refused
    for each in refused:
        assert isinstance(each.content[0], TextContent)
        assert "\n" not in each.content[0].text
    assert scripted.server.requests


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": f"Bearer {WEBHOOK_KEY}"}])
def test_it_requires_the_key(server: HttpServer, headers: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    refused = httpx.post(f"{server.url}/mcp", json=body, headers=headers, timeout=10)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "API key required" in refused.text


def test_a_body_that_is_too_large_or_no_json_is_refused(server: HttpServer) -> None:
    headers = {"X-API-Key": KEY, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    large = httpx.post(f"{server.url}/mcp", content=b"x" * 2_000_000, headers=headers, timeout=10)
    assert large.status_code == 413
    broken = httpx.post(f"{server.url}/mcp", content=b"{", headers=headers, timeout=10)
    assert broken.status_code == 400
