"""Keeps one connection to an MCP server open, and opens it again after it was lost.

A task of its own holds the connection, because the scopes of the SDK must end in the task that began them. Calls run
at once, from any task.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from holmes.toolsets.mcp.faults import REFUSED, Trail, fault, fault_of
from holmes.toolsets.mcp.servers import HttpEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    import httpx2
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, Tool

    from holmes.toolsets.mcp.oauth import Browser
    from holmes.toolsets.mcp.servers import McpServer
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject
    from holmes.values.request_headers import RequestHeaders

_CLOSE_SECONDS: Final = 8.0
"""The SDK ends a local process within 6 s: it closes its input, then it sends SIGTERM, then SIGKILL."""
_OPEN_SECONDS: Final = 30.0
_MOST_PAGES: Final = 50
_SESSION_UNKNOWN: Final = frozenset({400, 404})
"""404 by the protocol, and 400 by servers that are older than it."""
_SDK_WORDS: Final = frozenset({"Not Found", "Server returned an error response"})
"""Errors that the SDK writes itself, because the response contains none."""
_CORRECT: Final = "correct the call, or check the server"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Product, version and tools of a server, and the time that the list took."""

    product: str
    tools: tuple[Tool, ...]
    seconds: float


class _LostError(Exception):
    """The connection ended before the response. If `may_have_run` is false, the server refused the request unread."""

    def __init__(self, *, may_have_run: bool) -> None:
        super().__init__()
        self.may_have_run = may_have_run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """An open connection, and the task that holds it until `closing` is set."""

    client: Client
    task: asyncio.Task[None]
    closing: asyncio.Event
    trail: Trail


class McpSession:
    """The connection to one server. Every error is a `ToolError` with one line.

    `tokens` is the folder of OAuth tokens. With `browser`, a person logs in.
    """

    def __init__(
        self, server: McpServer, environment: Environment, *, tokens: Path, browser: Browser | None = None
    ) -> None:
        self._server = server
        self._environment = environment
        self._tokens = tokens
        self._browser = browser
        self._held: _Held | None = None
        self._opening = asyncio.Lock()
        self._running = 0
        self._by_request: WeakKeyDictionary[RequestHeaders, McpSession] = WeakKeyDictionary()

    def of_request(self, request: RequestHeaders, headers: Mapping[str, str]) -> McpSession:
        """Return the session of one request, which sends `headers` as well. It is closed at the end of the run."""
        endpoint = self._server.endpoint
        known = self._by_request.get(request)
        if known is None and isinstance(endpoint, HttpEndpoint):
            own = replace(endpoint, headers={**endpoint.headers, **headers}, passed={})
            server = replace(self._server, endpoint=own)
            known = self._by_request[request] = McpSession(server, self._environment, tokens=self._tokens)
            request.at_end(known.aclose)
        return known or self

    async def listing(self) -> Listing:
        """Connect if necessary, and list the tools. Calls the health check of the server first if it has one."""
        check = self._server.health_check_tool
        if check is not None and (await self.call(check, {}, is_repeatable=True)).is_error:
            raise fault(self._server, f"its health check {check!r} failed", "check the server and its log")

        async def list_all(client: Client) -> Listing:
            started = time.monotonic()
            tools: list[Tool] = []
            cursor: str | None = None
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            info = client.server_info
            product = " ".join(filter(None, (info.name, info.version))) if info is not None else ""
            return Listing(product=product, tools=tuple(tools), seconds=time.monotonic() - started)

        return await self._request(list_all, is_repeatable=True)

    async def call(self, tool: str, arguments: JsonObject, *, is_repeatable: bool) -> CallToolResult:
        """Call a tool. If the connection is lost meanwhile, the call is sent again only if it `is_repeatable`."""

        async def call(client: Client) -> CallToolResult:
            return await client.call_tool(tool, dict(arguments))

        if not is_repeatable:
            # A connection that was lost earlier shows only now, while nothing can have had an effect.
            await self._request(lambda client: client.list_tools(), is_repeatable=True)
        return await self._request(call, is_repeatable=is_repeatable)

    async def aclose(self) -> None:
        """Close the connection, and end the local process. A later request opens it again."""
        held, self._held = self._held, None
        if held is not None:
            held.closing.set()
            await _ended(held.task)

    async def _request(self, send: Callable[[Client], Awaitable[_T]], *, is_repeatable: bool) -> _T:
        try:
            return await self._sent(send)
        except _LostError as lost:
            if lost.may_have_run and not is_repeatable:
                advice = "the call may have had an effect; check before you repeat it"
                raise fault(self._server, "the connection was lost during the call", advice) from lost
        try:
            return await self._sent(send)
        except _LostError as lost:
            raise fault(self._server, "the connection was lost twice", "check the server and its log") from lost

    async def _sent(self, send: Callable[[Client], Awaitable[_T]]) -> _T:
        seconds = self._server.call_seconds
        opening = max(seconds, _OPEN_SECONDS)
        try:
            async with asyncio.timeout(opening):
                held = await self._opened_once()
        except TimeoutError as error:
            raise fault(self._server, f"no connection within {opening:g} s", "check the server and its log") from error
        try:
            async with asyncio.timeout(seconds):
                return await self._explained(held, send)
        except TimeoutError as error:
            raise fault(self._server, f"no response within {seconds:g} s", "request less, or try again") from error

    async def _explained(self, held: _Held, send: Callable[[Client], Awaitable[_T]]) -> _T:
        import anyio
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        refused: list[httpx2.Response] = []
        token = REFUSED.set(refused)
        self._running += 1
        try:
            return await send(held.client)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            await self._drop(held)
            raise self._lost(held, error) from error
        except MCPError as error:
            if refused:
                await self._after_refusal(held, error, refused[-1])
            if held.task.done() or _is_closed(error):
                await self._drop(held)
                raise self._lost(held, error) from error
            raise fault(self._server, error.message, _CORRECT) from error
        except ValidationError as error:
            raise fault(self._server, "its response is not valid MCP", "report it to the server's author") from error
        finally:
            self._running -= 1
            REFUSED.reset(token)

    def _lost(self, held: _Held, error: Exception) -> Exception:
        """Explain a connection that ended because no token could be obtained. Others may be opened again."""
        if held.trail.unauthorized is not None:
            return fault_of(self._server, error, held.trail)
        return _LostError(may_have_run=True)

    async def _after_refusal(self, held: _Held, error: MCPError, refused: httpx2.Response) -> NoReturn:
        """Explain a response other than 2xx. A server that was restarted refuses what belongs to the old session."""
        if _is_answer(refused, error):
            raise fault(self._server, error.message, _CORRECT) from error
        if refused.status_code in _SESSION_UNKNOWN:
            await self._drop(held)
            # Of several requests, it is not known which one was refused.
            raise _LostError(may_have_run=self._running > 1) from error
        held.trail.refused = refused
        raise fault_of(self._server, error, held.trail) from error

    async def _drop(self, held: _Held) -> None:
        """Close this connection, unless another request has already opened a new one."""
        if self._held is held:
            await self.aclose()

    async def _opened_once(self) -> _Held:
        async with self._opening:
            if self._held is not None and self._held.closing.is_set():
                await self.aclose()
            if self._held is None or self._held.task.done():
                self._held = await self._opened()
            return self._held

    async def _opened(self) -> _Held:
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        closing = asyncio.Event()
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            trail = Trail(errors, closing.set)
            task = asyncio.create_task(self._hold(opened, closing, trail), name=f"mcp-{self._server.name}")
            closed = asyncio.create_task(closing.wait())
            held: _Held | None = None
            try:
                await asyncio.wait((task, opened, closed), return_when=asyncio.FIRST_COMPLETED)
                if opened.done():
                    held = _Held(client=opened.result(), task=task, closing=closing, trail=trail)
                    return held
            finally:
                closed.cancel()
                if held is None:
                    task.cancel()
                    await _ended(task)
            error = None if task.cancelled() else task.exception()
            error = error or ConnectionError("the connection ended at once")
            raise fault_of(self._server, error, trail) from error

    async def _hold(self, opened: asyncio.Future[Client], closing: asyncio.Event, trail: Trail) -> None:
        from holmes.toolsets.mcp.transport import open_client

        auth, endpoint = None, self._server.endpoint
        if isinstance(endpoint, HttpEndpoint) and endpoint.login is not None:
            from holmes.toolsets.mcp.oauth import auth_of

            def end(error: Exception) -> None:
                # SSE ignores the exception, and the caller would wait for a response.
                trail.unauthorized = error
                trail.lost()

            auth = auth_of(self._server, endpoint, self._tokens, self._browser, failed=end)
        async with open_client(self._server, self._environment, auth, trail) as client:
            opened.set_result(client)
            await closing.wait()


class McpSessions:
    """The sessions of all servers, by their configuration. They stay open between two checks of the toolsets.

    `tokens` is the folder of OAuth tokens.
    """

    def __init__(self, tokens: Path) -> None:
        self._tokens = tokens
        self._sessions: dict[tuple[str, Environment], tuple[McpServer, McpSession]] = {}

    async def session(self, server: McpServer, environment: Environment) -> McpSession:
        """Return the open session of this server. A session with an older configuration is closed."""
        key = (server.name, environment)
        known = self._sessions.get(key)
        if known is not None and known[0] == server:
            return known[1]
        session = McpSession(server, environment, tokens=self._tokens)
        self._sessions[key] = (server, session)
        if known is not None:
            await known[1].aclose()
        return session

    async def aclose(self) -> None:
        """Close all sessions in parallel."""
        sessions = [session for _, session in self._sessions.values()]
        self._sessions.clear()
        await asyncio.gather(*(session.aclose() for session in sessions))


@asynccontextmanager
async def open_sessions(tokens: Path) -> AsyncIterator[McpSessions]:
    """Keep sessions, and close them at the end."""
    sessions = McpSessions(tokens)
    try:
        yield sessions
    finally:
        await sessions.aclose()


def _is_closed(error: MCPError) -> bool:
    """Return whether the SDK raised the error because the connection ended. A server may use the same code itself."""
    from mcp_types import CONNECTION_CLOSED

    return error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def _is_answer(refused: httpx2.Response, error: MCPError) -> bool:
    """Return whether a refusal is the server's answer to a call of the newest protocol, which has no sessions."""
    headers = refused.request.headers
    is_newest = "mcp-protocol-version" in headers and "mcp-session-id" not in headers
    return is_newest and refused.status_code in _SESSION_UNKNOWN and error.message not in _SDK_WORDS


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait until `task` ends, and ignore its exception."""
    done, late = await asyncio.wait((task,), timeout=_CLOSE_SECONDS)
    for each in late:
        each.cancel()
    for each in done:
        if not each.cancelled():
            each.exception()
