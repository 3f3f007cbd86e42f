"""An MCP server for tests: `python server.py stdio`, or with `sse PORT` or `streamable-http PORT`.

A process of its own, so that the tests can end it and see what a client then says.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent, ToolAnnotations

# A red dot.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
server = MCPServer("tickets", version="4.5.6", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def search(text: str, limit: int = 10) -> str:
    """Search tickets by words."""
    return "\n".join(f"ticket {number} about {text}" for number in range(limit))


@server.tool(annotations=ToolAnnotations(read_only_hint=False))
async def close(ticket: int) -> str:
    """Close a ticket."""
    return f"closed {ticket}"


@server.tool()
async def picture() -> list[TextContent | ImageContent]:
    """Draw the tickets of a week."""
    image = ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")
    return [TextContent(text="tickets of a week"), image]


@server.tool()
async def fail(words: str) -> str:
    """Fail with a message."""
    raise ToolError(f"the ticket system says:\n  {words}")


@server.tool()
async def wait(seconds: float) -> str:
    """Wait, and tell when the wait began and ended."""
    began = time.monotonic()
    await asyncio.sleep(seconds)
    return f"{began} {time.monotonic()}"


@server.tool()
async def variables() -> str:
    """List the names of the environment variables."""
    return "\n".join(sorted(os.environ))


@server.tool()
async def end() -> str:
    """End the process in the middle of the call."""
    os._exit(7)


@server.tool()
async def learn(name: str) -> str:
    """Add a tool, of which the client is told."""

    async def learned() -> str:
        return f"{name} was learned"

    server.add_tool(learned, name=name, description=f"Tell of {name}.")
    return "learned"


if __name__ == "__main__":
    transport = sys.argv[1]
    if transport == "stdio":
        server.run("stdio")
    elif transport == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
