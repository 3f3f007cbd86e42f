"""Offers the tools of one MCP server."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from holmes.toolsets.mcp.passed import passed_headers, without_passed
from holmes.toolsets.mcp.schemas import parameters_of
from holmes.toolsets.mcp.servers import HttpEndpoint
from holmes.values.errors import ToolError
from holmes.values.request_headers import current_headers
from holmes.values.texts import shortened
from holmes.values.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mcp_types import Tool as ServerTool

    from holmes.toolsets.mcp.servers import McpServer
    from holmes.toolsets.mcp.session import Listing, McpSession
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolInvocation, ToolResult

_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1_200
_LONGEST_CALL: Final = 200
_LONGEST_VALUE: Final = 80
_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """A tool as the model sees it, its name at the server, and whether it runs without approval."""

    tool: Tool
    original: str
    is_read_only: bool


class McpToolset:
    """The tools of one server at the time of `listing`. The tools in `prefixed` have the server's name before theirs.

    Names have only characters that all providers accept.
    """

    def __init__(
        self, server: McpServer, session: McpSession, listing: Listing, prefixed: frozenset[str] = frozenset()
    ) -> None:
        self._server = server
        self._session = session
        self._listing = listing
        self._offered: dict[str, _Offered] = {}
        for tool in listing.tools:
            if not _is_task(tool):
                offered = _offered(server, tool, prefixed, self._offered)
                self._offered[offered.tool.name] = offered

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def server(self) -> McpServer:
        return self._server

    @property
    def instructions(self) -> str:
        return self._server.instructions

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(each.tool for each in self._offered.values())

    @property
    def detail(self) -> str:
        """One line for people: product and version, time of the list, and how many tools require approval."""
        gated = len(self.gated)
        counted = f"{gated} of {len(self._offered)} tools require approval" if gated else ""
        return ", ".join(filter(None, (self._listing.product, f"{self._listing.seconds * 1000:.0f} ms", counted)))

    @property
    def gated(self) -> tuple[str, ...]:
        """The names of the tools that require approval."""
        return tuple(name for name, each in self._offered.items() if not each.is_read_only)

    @property
    def revision(self) -> str:
        """A hash of all tools, which changes when the server changes one of them."""
        return hashlib.sha256(repr(self.tools).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def renewed(self) -> McpToolset:
        """Return the toolset with the tools that the server lists now. Raises `ToolError`."""
        return McpToolset(self._server, self._session, await self._session.listing())

    def with_prefix(self, names: Collection[str]) -> McpToolset:
        """Return the toolset with its own name before the names of these tools."""
        return McpToolset(self._server, self._session, self._listing, frozenset(names))

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `tickets: search(text=checkout)`."""
        given = ", ".join(f"{name}={_written(value)}" for name, value in invocation.arguments.items())
        return f"{self.name}: {self._offered[invocation.tool.name].original}({shortened(given, _LONGEST_CALL)})"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Call the tool at the server. Raises `ToolError` with the server, the reason and the next step."""
        endpoint, request = self._server.endpoint, current_headers()
        if not (isinstance(endpoint, HttpEndpoint) and endpoint.passed):
            return await self._called(invocation, self._session)
        headers = passed_headers(self._server, endpoint.passed, request)
        session = self._session if request is None else self._session.of_request(request, headers)
        try:
            result = await self._called(invocation, session)
        except ToolError as error:
            raise ToolError(without_passed(str(error), headers)) from None
        shown = None if result.error is None else without_passed(result.error, headers)
        return replace(result, data=without_passed(result.data, headers), error=shown)

    async def _called(self, invocation: ToolInvocation, session: McpSession) -> ToolResult:
        from holmes.toolsets.mcp.results import tool_result

        offered = self._offered[invocation.tool.name]
        result = await session.call(offered.original, invocation.arguments, is_repeatable=offered.is_read_only)
        return tool_result(result, invocation=self.describe(invocation))


def with_unique_names(toolsets: Sequence[McpToolset], taken: Collection[str]) -> tuple[McpToolset, ...]:
    """Put the server's name before each tool name that two servers have, or that is in `taken`."""
    counts = Counter(tool.name for toolset in toolsets for tool in toolset.tools)
    shared = {name for name, count in counts.items() if count > 1} | set(taken)
    return tuple(
        toolset.with_prefix(repeated) if (repeated := shared & {tool.name for tool in toolset.tools}) else toolset
        for toolset in toolsets
    )


def _offered(server: McpServer, tool: ServerTool, prefixed: frozenset[str], taken: Collection[str]) -> _Offered:
    name = _usable(tool.name)
    name = _usable(f"{server.name}_{name}") if name in prefixed else name
    if name in taken:  # names that differ only in characters that providers do not accept
        name = f"{name[: _LONGEST_NAME - 7]}_{hashlib.sha256(tool.name.encode()).hexdigest()[:6]}"
    about = (tool.description or tool.title or tool.name).strip()
    return _Offered(
        tool=Tool(
            name=name, description=shortened(about, _LONGEST_DESCRIPTION), parameters=parameters_of(tool.input_schema)
        ),
        original=tool.name,
        is_read_only=_is_read_only(server, tool),
    )


def _is_task(tool: ServerTool) -> bool:
    """Return whether the tool runs only as a task, an extension of the protocol that Holmes does not support."""
    return tool.execution is not None and tool.execution.task_support == "required"


def _is_read_only(server: McpServer, tool: ServerTool) -> bool:
    """Return whether the operator, or a server that the operator trusts, says that the tool changes nothing."""
    if any(fnmatchcase(tool.name, pattern) for pattern in server.approval_patterns):
        return False
    if any(fnmatchcase(tool.name, pattern) for pattern in server.read_only):
        return True
    return server.trusts_annotations and tool.annotations is not None and tool.annotations.read_only_hint is True


def _usable(name: str) -> str:
    return _UNUSABLE.sub("_", name)[:_LONGEST_NAME] or "tool"


def _written(value: JsonValue) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
