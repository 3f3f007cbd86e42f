"""An MCP server that tells who asks: `python tenant_server.py MODE PORT`."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.requests import Request

server = MCPServer("tenants", version="1.0.0", log_level="ERROR")


def _request(context: Context) -> Request:
    request = context.request_context.request
    assert isinstance(request, Request)
    return request


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def tell(context: Context, name: str) -> str:
    """Return the header `name` of the request."""
    return f"{name} is {_request(context).headers.get(name)!r}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def refuse(context: Context, name: str) -> str:
    """Fail with the header `name` of the request."""
    raise ToolError(f"not accepted: {_request(context).headers.get(name)}")


if __name__ == "__main__":
    if sys.argv[1] == "sse":
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
