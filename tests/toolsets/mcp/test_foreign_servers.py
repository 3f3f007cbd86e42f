"""The client against servers that other people wrote: one in TypeScript over each transport, one in Python."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

import psutil
import pytest

from holmes.toolsets.mcp.servers import HttpEndpoint, HttpMode, McpServer, ProcessEndpoint
from holmes.toolsets.mcp.session import McpSession
from holmes.toolsets.mcp.toolset import McpToolset
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import ToolInvocation
from tests.services.service import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Tool, ToolResult
    from tests.services.fixtures import Command, RunEverything

pytestmark = pytest.mark.slow

ENVIRONMENT: Final = Environment.of({"PATH": os.environ["PATH"]})
HTTP_MODES: Final = get_args(HttpMode)
WAIT: Final = "trigger-long-running-operation"
# What the server does not call read-only.
GATED: Final = (
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
)

Endpoint: TypeAlias = HttpEndpoint | ProcessEndpoint
Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[McpToolset]]


@pytest.fixture(scope="module", params=("stdio", *HTTP_MODES))
def everything(
    request: pytest.FixtureRequest, everything_command: Command, everything_over_http: RunEverything
) -> Iterator[Endpoint]:
    """Yield `server-everything`: a command, or a running server."""
    if request.param == "stdio":
        yield process(*everything_command, "stdio")
        return
    with everything_over_http(request.param) as server:
        yield HttpEndpoint(mode=request.param, url=server.url)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Return `connected` for this test."""
    return functools.partial(connected, tmp_path)


@asynccontextmanager
async def connected(tokens: Path, endpoint: Endpoint, *, trusts_annotations: bool = True) -> AsyncIterator[McpToolset]:
    """Yield the tools of a server. At the end of the test, the session is closed."""
    server = McpServer(
        name="foreign", source="test", endpoint=endpoint, trusts_annotations=trusts_annotations, call_seconds=30
    )
    session = McpSession(server, ENVIRONMENT, tokens=tokens)
    try:
        yield McpToolset(server, session, await session.listing())
    finally:
        await session.aclose()


def process(command: str, *arguments: str) -> ProcessEndpoint:
    return ProcessEndpoint(command=command, arguments=arguments)


def offered(toolset: McpToolset, name: str) -> Tool:
    (tool,) = (each for each in toolset.tools if each.name == name)
    return tool


async def call(toolset: McpToolset, name: str, /, **arguments: JsonValue) -> ToolResult:
    """Call a tool as the tool executor does."""
    tool = offered(toolset, name)
    return await toolset.call(
        ToolInvocation(call_id=ToolCallId("1"), tool=tool, arguments=coerce_arguments(tool, arguments))
    )


async def echo(toolset: McpToolset, message: str) -> str:
    result = await call(toolset, "echo", message=message)
    assert result.status == "success"
    return result.data


def kill(endpoint: ProcessEndpoint) -> None:
    """Kill the process of a local server, as the kernel does when memory runs out."""
    command = [endpoint.command, *endpoint.arguments]
    (found,) = (each for each in psutil.Process().children() if each.cmdline() == command)
    found.kill()


async def test_the_list_tells_product_version_and_what_requires_approval(
    everything: Endpoint, connect: Connect
) -> None:
    async with connect(everything) as toolset:
        assert toolset.detail.startswith("mcp-servers/everything 2.0.0, ")
        assert toolset.detail.endswith(f", {len(GATED)} of 12 tools require approval")
        assert toolset.gated == GATED


async def test_the_schemas_of_the_server_become_parameters(everything: Endpoint, connect: Connect) -> None:
    async with connect(everything) as toolset:
        schemas = {tool.name: tool.parameters_json_schema() for tool in toolset.tools}
    assert schemas["echo"] == {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "Message to echo"}},
        "required": ["message"],
    }
    assert schemas[WAIT]["properties"] == {
        "duration": {"type": "number", "description": "Duration of the operation in seconds (default: 10)"},
        "steps": {"type": "number", "description": "Number of steps in the operation (default: 5)"},
    }
    assert "required" not in schemas[WAIT]
    assert schemas["get-structured-content"]["properties"] == {
        "location": {"type": "string", "description": "Choose city", "enum": ["New York", "Chicago", "Los Angeles"]}
    }
    assert schemas["get-resource-links"]["properties"] == {
        "count": {
            "type": "number",
            "description": "Number of resource links to return (1-10) (default: 3; at least: 1; at most: 10)",
        }
    }
    assert schemas["get-env"] == {"type": "object", "properties": {}}


async def test_text_images_and_resources_arrive(everything: Endpoint, connect: Connect) -> None:
    async with connect(everything) as toolset:
        assert await echo(toolset, "für alle: ✓\nline 2") == "Echo: für alle: ✓\nline 2"
        picture = await call(toolset, "get-tiny-image")
        weather = await call(toolset, "get-structured-content", location="Chicago")
        links = await call(toolset, "get-resource-links", count="2")
        blob = await call(toolset, "get-resource-reference", resourceType="Blob", resourceId=1)
    assert picture.data == "Here's the image you requested:\nThe image above is the MCP logo."
    (image,) = picture.images
    assert image.media_type == "image/png"
    assert image.data.startswith(b"\x89PNG\r\n\x1a\n")
    assert image.data.endswith(b"IEND\xaeB`\x82")
    assert json.loads(weather.data) == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert links.data.splitlines()[1:] == [
        "[link to resource Blob Resource 1 (text/plain): demo://resource/dynamic/blob/1]",
        "[link to resource Text Resource 2 (text/plain): demo://resource/dynamic/text/2]",
    ]
    assert "[binary resource demo://resource/dynamic/blob/1 of type text/plain, which cannot be shown]" in blob.data


async def test_an_error_of_a_tool_is_one_line(everything: Endpoint, connect: Connect) -> None:
    async with connect(everything) as toolset:
        refused = await call(toolset, "get-resource-reference", resourceType="Blob", resourceId=-1)
        # The tool executor would refuse these arguments. The server's own text about them has several lines.
        unchecked = ToolInvocation(call_id=ToolCallId("2"), tool=offered(toolset, "get-sum"), arguments={})
        invalid = await toolset.call(unchecked)
    assert (refused.status, refused.data) == ("error", "")
    assert refused.error == "Invalid resourceId: -1. Must be a finite positive integer."
    assert (invalid.status, invalid.data) == ("error", "")
    assert invalid.error is not None
    assert "Invalid arguments for tool get-sum" in invalid.error
    assert "\n" not in invalid.error


async def test_five_calls_over_one_session_overlap(everything: Endpoint, connect: Connect) -> None:
    finished: list[str] = []

    async def wait(seconds: float) -> None:
        result = await call(toolset, WAIT, duration=seconds, steps=1)
        finished.append(result.data)

    async def last() -> None:
        finished.append(await echo(toolset, "sent last"))

    async with connect(everything) as toolset:
        await asyncio.gather(*(wait(seconds) for seconds in (2, 1.5, 1, 0.5)), last())
    waited = [f"Long running operation completed. Duration: {each} seconds, Steps: 1." for each in (0.5, 1, 1.5, 2)]
    assert finished == ["Echo: sent last", *waited]


@pytest.mark.parametrize("mode", HTTP_MODES)
async def test_a_server_that_restarted_is_connected_again(
    mode: HttpMode, everything_over_http: RunEverything, connect: Connect
) -> None:
    with everything_over_http(mode) as server:
        async with connect(HttpEndpoint(mode=mode, url=server.url)) as toolset:
            assert await echo(toolset, "before") == "Echo: before"
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            assert await echo(toolset, "after") == "Echo: after"
            assert await echo(toolset, "later") == "Echo: later"


@pytest.mark.parametrize("mode", HTTP_MODES)
async def test_a_server_that_is_down_for_a_while_is_connected_again(
    mode: HttpMode, everything_over_http: RunEverything, connect: Connect
) -> None:
    with everything_over_http(mode) as server:
        async with connect(HttpEndpoint(mode=mode, url=server.url)) as toolset:
            await asyncio.to_thread(server.kill)
            with pytest.raises(ToolError, match=r"^MCP server 'foreign' \(.+\): the connection is refused; .+$"):
                await echo(toolset, "down")
            await asyncio.to_thread(server.start)
            assert await echo(toolset, "up") == "Echo: up"


async def test_a_process_that_was_killed_is_started_again(everything_command: Command, connect: Connect) -> None:
    endpoint = process(*everything_command, "stdio")
    async with connect(endpoint) as toolset:
        for message in ("first", "second"):
            kill(endpoint)
            assert await echo(toolset, message) == f"Echo: {message}"


@pytest.mark.parametrize("is_read_only", [True, False])
async def test_only_a_read_only_call_is_sent_again_after_a_loss(
    is_read_only: bool, everything_command: Command, connect: Connect
) -> None:
    endpoint = process(*everything_command, "stdio")
    async with connect(endpoint, trusts_annotations=is_read_only) as toolset:
        waiting = asyncio.create_task(call(toolset, WAIT, duration=1, steps=1))
        # It takes the calls in their order, so the other one has arrived too.
        await echo(toolset, "arrived")
        kill(endpoint)
        if is_read_only:
            assert (await waiting).data.startswith("Long running operation completed")
        else:
            with pytest.raises(ToolError, match=r"^MCP server 'foreign': the connection was lost during the call; .+$"):
                await waiting
        assert await echo(toolset, "after") == "Echo: after"


async def test_a_process_that_goes_on_after_the_end_of_its_input_is_ended(
    everything_command: Command, connect: Connect
) -> None:
    async with connect(process(*everything_command, "stdio")) as toolset:
        # Its timer keeps the process alive; the check for processes after each test proves the end.
        assert (await call(toolset, "toggle-simulated-logging")).status == "success"


async def test_the_time_in_a_timezone(time_command: Command, connect: Connect) -> None:
    endpoint = process(*time_command)
    async with connect(endpoint) as toolset:
        # This server tells the version of its SDK as its own.
        assert toolset.detail.startswith("mcp-time 1.")
        assert [tool.name for tool in toolset.tools] == ["get_current_time", "convert_time"]
        assert [parameter.name for parameter in toolset.tools[1].parameters] == [
            "source_timezone",
            "time",
            "target_timezone",
        ]
        assert toolset.gated == ()
        now = await call(toolset, "get_current_time", timezone="Asia/Kathmandu")
        kill(endpoint)
        again = await call(toolset, "get_current_time", timezone="Asia/Kathmandu")
        unknown = await call(toolset, "get_current_time", timezone="Asia/Atlantis")
    for result in (now, again):
        told = json.loads(result.data)
        assert told["timezone"] == "Asia/Kathmandu"
        assert told["datetime"].endswith("+05:45")
    assert (unknown.status, unknown.data) == ("error", "")
    assert unknown.error is not None
    assert "No time zone found with key Asia/Atlantis" in unknown.error
    assert "\n" not in unknown.error


@pytest.mark.parametrize("mode", HTTP_MODES)
async def test_nothing_at_the_address_is_one_line(mode: HttpMode, connect: Connect) -> None:
    endpoint = HttpEndpoint(mode=mode, url=f"http://127.0.0.1:{free_port()}/mcp")
    with pytest.raises(
        ToolError, match=r"^MCP server 'foreign' \(http://127\.0\.0\.1:\d+\): the connection is refused; .+$"
    ):
        async with connect(endpoint):
            pass


async def test_the_wrong_mode_is_named(everything_over_http: RunEverything, connect: Connect) -> None:
    with everything_over_http("sse") as server:
        endpoint = HttpEndpoint(mode="streamable-http", url=server.url)
        with pytest.raises(ToolError, match=r"^MCP server .+: HTTP 404: MCP with mode streamable-http .+; .+ mode .+$"):
            async with connect(endpoint):
                pass


async def test_a_program_that_is_not_there_is_one_line(connect: Connect) -> None:
    with pytest.raises(ToolError, match=r"^MCP server 'foreign': the program 'no-such-server' is not found; .+$"):
        async with connect(process("no-such-server")):
            pass


async def test_the_last_words_of_a_program_that_ended_are_told(everything_command: Command, connect: Connect) -> None:
    with pytest.raises(ToolError, match=r"^MCP server 'foreign': .+ wrote: Unknown transport: carrier-pigeon; .+$"):
        async with connect(process(*everything_command, "carrier-pigeon")):
            pass
