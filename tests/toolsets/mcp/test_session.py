"""The client against a real server process over all three transports."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from holmes.toolsets.mcp.session import McpSession
from holmes.values.errors import ToolError
from tests.toolsets.mcp.running import ENVIRONMENT, PROCESS, call, running_server, server_of, toolset_of
from tests.toolsets.mcp.server import PNG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.toolsets.mcp.servers import HttpEndpoint, ProcessEndpoint


@pytest.fixture(scope="module", params=["stdio", "sse", "streamable-http"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[HttpEndpoint | ProcessEndpoint]:
    if request.param == "stdio":
        yield PROCESS
        return
    with running_server(request.param) as server:
        yield server.endpoint


async def test_tools_and_results(endpoint: HttpEndpoint | ProcessEndpoint) -> None:
    async with toolset_of(server_of(endpoint)) as toolset:
        assert toolset.detail.startswith("tickets 4.5.6, ")
        (search,) = [tool for tool in toolset.tools if tool.name == "search"]
        assert search.description == "Search tickets by words."
        assert [(each.name, each.required) for each in search.parameters] == [("text", True), ("limit", False)]

        found = await call(toolset, "search", text="checkout", limit=2)
        assert (found.status, found.data) == ("success", "ticket 0 about checkout\nticket 1 about checkout")
        assert found.invocation == "tickets: search(text=checkout, limit=2)"

        drawn = await call(toolset, "picture")
        assert drawn.data == "tickets of a week"
        assert [(image.data, image.media_type) for image in drawn.images] == [(PNG, "image/png")]

        failed = await call(toolset, "fail", words="closed on Sundays")
        assert failed.status == "error"
        assert failed.error is not None
        assert failed.error.endswith("the ticket system says: closed on Sundays")
        assert "\n" not in failed.error


async def test_calls_run_at_once(endpoint: HttpEndpoint | ProcessEndpoint) -> None:
    async with toolset_of(server_of(endpoint)) as toolset:
        results = await asyncio.gather(*(call(toolset, "wait", seconds=0.4) for _ in range(5)))
    spans = [tuple(map(float, result.data.split())) for result in results]
    assert max(began for began, _ in spans) < min(ended for _, ended in spans)


async def test_time_limit_of_a_call(endpoint: HttpEndpoint | ProcessEndpoint) -> None:
    async with toolset_of(server_of(endpoint, call_seconds=1)) as toolset:
        with pytest.raises(ToolError, match=r"^MCP server 'tickets'.*: no response within 1 s; ") as raised:
            await call(toolset, "wait", seconds=60)
        assert "\n" not in str(raised.value)
        # The session outlives the call.
        assert (await call(toolset, "search", text="x", limit=1)).status == "success"


async def test_a_cancelled_call_ends_at_once(endpoint: HttpEndpoint | ProcessEndpoint) -> None:
    async with toolset_of(server_of(endpoint)) as toolset:
        task = asyncio.create_task(call(toolset, "wait", seconds=60))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1
        assert (await call(toolset, "search", text="x", limit=1)).status == "success"


async def test_a_new_tool_is_listed(endpoint: HttpEndpoint | ProcessEndpoint, tmp_path: Path) -> None:
    server = server_of(endpoint)
    async with toolset_of(server) as toolset:
        name = f"tell_{tmp_path.name}".replace("-", "_")
        before = toolset.revision
        await call(toolset, "learn", name=name)
        later = await toolset.renewed()
        assert later.revision != before
        assert (await call(later, name)).data == f"{name} was learned"


@pytest.mark.parametrize("mode", ["sse", "streamable-http"])
async def test_a_server_that_starts_again(mode: str) -> None:
    with running_server(mode) as server:  # type: ignore[arg-type]
        configured = server_of(server.endpoint, read_only=("search",), call_seconds=5)
        async with toolset_of(configured) as toolset:
            server.stop()
            with pytest.raises(ToolError, match="connection is refused"):
                await call(toolset, "search", text="x")
            server.start()
            assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"
            server.stop()
            server.start()
            # The loss shows only during this call, which is repeated because it changes nothing.
            assert (await call(toolset, "search", text="y", limit=1)).data == "ticket 0 about y"


async def test_a_process_that_ends_starts_again() -> None:
    async with toolset_of(server_of(PROCESS, read_only=("search",))) as toolset:
        for child in _children():
            child.send_signal(signal.SIGKILL)
        assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"
    assert _children() == []


async def test_a_call_that_may_change_something_is_not_repeated() -> None:
    async with toolset_of(server_of(PROCESS)) as toolset:
        with pytest.raises(ToolError, match="connection was lost during the call; the call may have had an effect"):
            await call(toolset, "end")
        assert (await call(toolset, "close", ticket=5)).data == "closed 5"


async def test_a_read_only_call_that_always_ends_the_process() -> None:
    async with toolset_of(server_of(PROCESS, read_only=("*",))) as toolset:
        with pytest.raises(ToolError, match="the connection was lost twice; check the server and its log"):
            await call(toolset, "end")


async def test_a_process_sees_only_the_variables_of_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    endpoint = type(PROCESS)(command=PROCESS.command, arguments=PROCESS.arguments, variables={"REGION": "eu"})
    async with toolset_of(server_of(endpoint)) as toolset:
        names = (await call(toolset, "variables")).data.split()
    assert {"SHOP", "REGION", "PATH"} <= set(names)
    assert "OPENAI_API_KEY" not in names


async def test_cancelling_the_first_connection_ends_the_process(tmp_path: Path) -> None:
    endpoint = type(PROCESS)(command="sleep", arguments=("60",))
    session = McpSession(server_of(endpoint), ENVIRONMENT, tokens=tmp_path)
    task = asyncio.create_task(session.listing())
    await asyncio.sleep(1)
    assert len(_children()) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _children() == []


def _children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if {"server.py", "sleep"} & {part.rpartition("/")[2] for part in child.cmdline()}:
                found.append(child)
    return found
