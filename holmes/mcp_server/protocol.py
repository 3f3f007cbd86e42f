"""Speaks MCP with the official SDK. Clients see every tool as read-only, because only such tools are offered."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ServerTool

from holmes import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext

    from holmes.mcp_server.served import ServedTools
    from holmes.values.tools import Tool

_INSTRUCTIONS: Final = (
    "Holmes troubleshoots Kubernetes clusters and only reads. ask_holmes investigates a question by itself. The other "
    "tools read one thing each. Large results are stored: a preview shows how to read them with search_stored_result "
    "and read_stored_result_lines. Marks such as [[id:3-5]] cite lines of stored results."
)


def create_server(served: Callable[[Any], Awaitable[ServedTools]]) -> Server[Any]:
    """Create the server. `served` returns the tools for the client of an HTTP request, which is None without HTTP."""

    async def list_tools(context: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in (await served(context.request)).tools])

    async def call_tool(context: ServerRequestContext[Any], asked: CallToolRequestParams) -> CallToolResult:
        steps = 0

        async def report(line: str) -> None:
            nonlocal steps
            steps += 1
            await context.session.report_progress(steps, message=line)

        answered = await (await served(context.request)).call(asked.name, asked.arguments or {}, report)
        images = [
            ImageContent(data=base64.b64encode(image.data).decode(), mime_type=image.media_type)
            for image in answered.images
        ]
        return CallToolResult(content=[TextContent(text=answered.text), *images], is_error=answered.failed)

    return Server(
        "holmes",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_standard_streams(served: ServedTools) -> None:
    """Serve one client over standard input and output, until the input ends."""
    from mcp.server.stdio import stdio_server

    async def of_client(_: object) -> ServedTools:
        return served

    server = create_server(of_client)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _listed(tool: Tool) -> ServerTool:
    return ServerTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters_json_schema(),
        annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False),
    )
