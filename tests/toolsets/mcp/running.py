"""Runs the test server over each transport, and opens sessions to it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.toolsets.mcp.servers import HttpEndpoint, McpServer, ProcessEndpoint
from holmes.toolsets.mcp.session import McpSession
from holmes.toolsets.mcp.toolset import McpToolset
from holmes.values.environment import Environment
from holmes.values.tools import ToolInvocation
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holmes.toolsets.mcp.servers import HttpMode
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult

SCRIPT: Final = Path(__file__).with_name("server.py")
TENANTS: Final = Path(__file__).with_name("tenant_server.py")
ENVIRONMENT: Final = Environment.of({"PATH": os.environ["PATH"], "SHOP": "open"})
PROCESS: Final = ProcessEndpoint(command=sys.executable, arguments=(str(SCRIPT), "stdio"))
_PATHS: Final = {"sse": "/sse", "streamable-http": "/mcp"}


class RunningServer:
    """The test server at a URL. It can be stopped and started again at the same port."""

    def __init__(self, mode: HttpMode, script: Path) -> None:
        self._mode, self._port, self._script = mode, free_port(), script
        self._service = Service("mcp", end_signal=signal.SIGKILL)
        self.endpoint = HttpEndpoint(mode=mode, url=f"http://127.0.0.1:{self._port}{_PATHS[mode]}")

    def start(self) -> None:
        self._service.start([sys.executable, str(self._script), self._mode, str(self._port)], self._accepts)

    def stop(self) -> None:
        self._service.stop()

    def close(self) -> None:
        self._service.close()

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


@contextmanager
def running_server(mode: HttpMode, script: Path = SCRIPT) -> Iterator[RunningServer]:
    server = RunningServer(mode, script)
    try:
        server.start()
        yield server
    finally:
        server.close()


def server_of(endpoint: HttpEndpoint | ProcessEndpoint, **changes: object) -> McpServer:
    return McpServer(name="tickets", source="config.yaml:1", endpoint=endpoint, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def toolset_of(server: McpServer, tokens: Path = Path("/nonexistent")) -> AsyncIterator[McpToolset]:
    session = McpSession(server, ENVIRONMENT, tokens=tokens)
    try:
        yield McpToolset(server, session, await session.listing())
    finally:
        await session.aclose()


async def call(toolset: McpToolset, tool_name: str, /, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == tool_name)
    return await toolset.call(ToolInvocation(call_id="1", tool=tool, arguments=arguments))  # type: ignore[arg-type]
