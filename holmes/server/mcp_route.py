"""Serves `/mcp`: the MCP server over streamable HTTP, for clients with the server's key.

The SDK is imported on the first request. Requests share no session, so that any replica can answer them, except for
stored results: those belong to the process that returned their ids.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers
from starlette.requests import Request

from holmes.app.requests import AskRequest
from holmes.mcp_server.served import Answered, ServedTools
from holmes.server.chat.chat_jobs import ChatJob
from holmes.server.errors import ApiError, api_error, error_response
from holmes.server.limits import caller_of
from holmes.server.security import keys_in, keys_of
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import Receive, Scope, Send

    from holmes.app.investigator import Investigator
    from holmes.app.serving import Service
    from holmes.core.single_calls import SingleCalls
    from holmes.mcp_server.served import Report
    from holmes.server.chat.chat_runs import ChatRun, ChatRuns
    from holmes.server.limits import Caller

PATH: Final = "/mcp"
_STARTED: Final = b"event: start_tool_calling\ndata: "
_KEY_REQUIRED: Final = "API key required: send it as Authorization: Bearer or as X-API-Key"


class McpEndpoint:
    """The ASGI application of the route."""

    def __init__(self, service: Service, runs: ChatRuns) -> None:
        self._service = service
        self._runs = runs
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._holding: asyncio.Task[None] | None = None
        self._calls: dict[str | None, tuple[Investigator, SingleCalls]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys, headers = keys_of(Request(scope)), Headers(scope=scope)
        if keys.required and not any(keys.matches(key) for key in keys_in(headers)):
            refused = ApiError(401, _KEY_REQUIRED, headers={"WWW-Authenticate": "Bearer"})
            await error_response(refused)(scope, receive, send)
            return
        try:
            self._service.investigators.clusters.name_of(Request(scope).query_params.get("cluster") or None)
        except ConfigError as error:
            await error_response(ApiError(400, str(error)))(scope, receive, send)
            return
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def aclose(self) -> None:
        """End the requests that still run."""
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)

    async def _started(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

                from holmes.mcp_server.protocol import create_server

                manager = StreamableHTTPSessionManager(app=create_server(self._served), stateless=True)
                ready = asyncio.Event()
                # A task of its own, because it must end the requests that it began.
                self._holding = asyncio.create_task(_hold(manager, ready), name="mcp server")
                await ready.wait()
                self._manager = manager
            return self._manager

    async def _served(self, request: Any) -> ServedTools:  # noqa: ANN401  the SDK does not know the type
        investigators = self._service.investigators
        cluster = investigators.clusters.name_of(request.query_params.get("cluster") or None)
        investigator = await investigators.investigator(None, cluster)
        known = self._calls.get(cluster)
        if known is None or known[0] is not investigator:
            known = self._calls[cluster] = (investigator, investigator.single_calls())

        async def ask(question: str, report: Report) -> Answered:
            job = ChatJob(ask=AskRequest(question=question), cluster=cluster)
            return await self._ask(job, report, caller_of(request))

        return ServedTools(known[1], ask, caller_of(request).headers)

    async def _ask(self, job: ChatJob, report: Report, caller: Caller) -> Answered:
        """Run a chat, within the limits and the budget of all chats."""
        try:
            run = await self._runs.start(job, caller)
        except ApiError as error:
            return Answered(text=str(error.detail), failed=True)
        except HolmesError as error:
            return Answered(text=str(api_error(error).detail), failed=True)
        try:
            async for frame in run.frames():
                if _STARTED in frame:
                    await report(str(json.loads(frame.partition(_STARTED)[2])["description"]))
        finally:
            run.cancel("the client disconnected")
        return _answered(run)


def _answered(run: ChatRun) -> Answered:
    data = run.last.data if run.last is not None else {}
    if run.last is None or run.last.name == "error":
        return Answered(text=str(data.get("description", "the chat ended without an answer")), failed=True)
    return Answered(text=str(data.get("analysis", "")), messages=run.production.messages)


async def _hold(manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()
