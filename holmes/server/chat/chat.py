"""Serves `/api/chat`, which returns answers or resumable streams, and `/api/investigate` for older clients."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, cast

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import JSONResponse, Response

from holmes.investigations.records.wire_events import WireEvent
from holmes.server.chat.chat_jobs import ChatAnswer, ChatRequest, OlderAnswer, OlderRequest, chat_job
from holmes.server.chat.chat_production import MISFIT_CODE
from holmes.server.chat.chat_runs import ChatRun, ChatRuns
from holmes.server.errors import ApiError, documented
from holmes.server.limits import caller_of
from holmes.server.sse import STREAM_DOCUMENTATION, EventStreamResponse, until_disconnected

_STATUSES: Final = {
    2: (400, "bad_request"),
    3: (503, "cluster_unreachable"),
    MISFIT_CODE: (422, "answer_does_not_fit"),
}
_HEADING: Final = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_RUN: Final = Path(description="Id of the run, which is the first part of its event ids.", pattern=r"^[0-9a-f]{1,64}$")
LastEventId = Annotated[
    str | None,
    Header(description="Id `<run>:<number>` of the last event that the client received. The stream resumes after it."),
]
RunId = Annotated[str, _RUN]


class ChatRoutes:
    def __init__(self, runs: ChatRuns, heartbeat_seconds: float) -> None:
        self._runs = runs
        self._heartbeat_seconds = heartbeat_seconds

    async def chat(self, body: ChatRequest, request: Request, last_event_id: LastEventId = None) -> Response:
        """Ask a question. `Last-Event-ID` resumes an interrupted stream without asking again."""
        if last_event_id and body.stream:
            return self._resumed(last_event_id)
        job = chat_job(body, await self._runs.codec(body.cluster))
        run = await self._runs.start(job, caller_of(request))
        if body.stream:
            run.wait_for_reader(begin=True)
            return self._stream(run, 0)
        last = await finished(run, request)
        document = {
            "analysis": "",
            "tool_calls": run.production.tool_calls,
            "pending_approvals": [],
            **last.data,
        }
        return JSONResponse(ChatAnswer.model_validate(document).model_dump(mode="json"))

    async def events(self, run_id: RunId, last_event_id: LastEventId = None) -> Response:
        """Stream the events of a chat from the start, or after `Last-Event-ID`."""
        run = self._runs.get(run_id)
        return self._stream(run, _number(last_event_id, run_id))

    async def cancel(self, run_id: RunId) -> Response:
        """Cancel a running chat."""
        self._runs.get(run_id).cancel("the chat was cancelled")
        return Response(status_code=204)

    async def investigate(self, body: OlderRequest, request: Request) -> OlderAnswer:
        """Ask a question in the format of older clients."""
        asked = ChatRequest(ask=_older_question(body), model=body.model, cluster=body.cluster)
        job = chat_job(asked, await self._runs.codec(body.cluster))
        run = await self._runs.start(job, caller_of(request))
        last = await finished(run, request)
        analysis = str(last.data.get("analysis", ""))
        return OlderAnswer.model_validate(
            {"analysis": analysis, "sections": _sections(analysis), "tool_calls": run.production.tool_calls}
        )

    def _resumed(self, last_event_id: str) -> Response:
        identity = last_event_id.partition(":")[0]
        return self._stream(self._runs.get(identity), _number(last_event_id, identity))

    def _stream(self, run: ChatRun, after: int) -> Response:
        return EventStreamResponse(
            run.frames(after), heartbeat_seconds=self._heartbeat_seconds, headers={"X-Holmes-Run": run.identity}
        )


def router(runs: ChatRuns, heartbeat_seconds: float) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["chat"])
    handlers = ChatRoutes(runs, heartbeat_seconds)
    asking = documented(400, 401, 403, 404, 408, 413, 422, 429, 502, 503)
    streamed = cast("dict[int | str, dict[str, object]]", {200: {"model": ChatAnswer, **STREAM_DOCUMENTATION}})
    routes.add_api_route(
        "/chat", handlers.chat, methods=["POST"], summary="Ask a question", responses={**asking, **streamed}
    )
    routes.add_api_route(
        "/chat/{run_id}/events",
        handlers.events,
        methods=["GET"],
        summary="Resume a streamed chat",
        response_class=Response,
        responses={**documented(400, 401, 403, 404, 422), 200: dict(STREAM_DOCUMENTATION)},
    )
    routes.add_api_route(
        "/chat/{run_id}",
        handlers.cancel,
        methods=["DELETE"],
        summary="Cancel a chat",
        status_code=204,
        responses=documented(401, 403, 404, 422),
    )
    routes.add_api_route(
        "/investigate",
        handlers.investigate,
        methods=["POST"],
        summary="Ask a question (older clients)",
        responses=asking,
    )
    return routes


async def finished(run: ChatRun, request: Request) -> WireEvent:
    """Wait for the last event of `run`. Cancels the run if the client disconnects.

    Raises `ApiError` if the run ends without an answer.
    """
    leaving = asyncio.create_task(until_disconnected(request.receive))
    ended = asyncio.create_task(_drain(run))
    try:
        await asyncio.wait({leaving, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            run.cancel("the client disconnected")
            await ended
    finally:
        if not ended.done():
            run.cancel("the request was cancelled")
        for task in (leaving, ended):
            task.cancel()
        await asyncio.gather(leaving, ended, return_exceptions=True)
    last = run.last
    if last is None or last.name == "error":
        data = last.data if last else {}
        status, code = _STATUSES.get(cast("int", data.get("error_code", 1)), (502, "run_failed"))
        raise ApiError(status, str(data.get("description", "the chat ended without an answer")), code=code)
    return last


async def _drain(run: ChatRun) -> None:
    async for _ in run.frames():
        pass


def _number(last_event_id: str | None, run_id: str) -> int:
    identity, _, number = (last_event_id or f"{run_id}:0").partition(":")
    if identity != run_id or not number.isdecimal() or len(number) > 12:
        raise ApiError(400, "Last-Event-ID is not a valid event id of this run")
    return int(number)


def _older_question(body: OlderRequest) -> str:
    parts = [f"Find the root cause of: {body.title}"]
    if body.source:
        parts.append(f"Reported by {body.source}.")
    parts.append(body.description)
    for name, value in (("Subject", body.subject), ("Context", body.context)):
        if value:
            parts.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return "\n\n".join(part for part in parts if part)


def _sections(analysis: str) -> Mapping[str, str]:
    """Split an answer into sections by heading.

    If it has no headings, the section `analysis` contains the whole answer.
    """
    pieces = _HEADING.split(analysis)
    found = {name.strip("* "): text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    return found or {"analysis": analysis.strip()}
