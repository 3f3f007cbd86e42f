"""The HTTP side: reads a request, lets `api` answer it, and writes the answer.

Every answer has the time of the recording as its `Date`, from which clients take how old things were, and the recorded
namespaces, outside of which absence proves nothing. Only requests that name this machine as their host are answered, so
that no web page can read a recording through a browser. A watch shows what is there, and then nothing, until the
client's timeout or the end of the server.
"""

from __future__ import annotations

import asyncio
import json
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from holmes.kubernetes.client import RECORDED_NAMESPACES
from holmes.snapshot.server.access_reviews import Subject
from holmes.snapshot.server.api import Answer, Api, ApiRequest, Watch, failure_answer
from holmes.snapshot.server.failures import ApiFailure, bad_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from holmes.snapshot.recording import Recording
    from holmes.snapshot.server.objects import ObjectAnswers, ObjectRequest
    from holmes.values.json_types import JsonObject

_DEFAULT_SECONDS = 300.0


async def watch_events(objects: ObjectAnswers, request: ObjectRequest, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """The events of a watch, one JSON document a line. Raises `ApiFailure` before the first for a wrong selector."""
    query = request.query
    initial = query.get("sendInitialEvents", "") in {"true", "1"}
    if initial or query.get("resourceVersion", "") in {"", "0"}:
        for item in await asyncio.to_thread(objects.selected, request):
            yield _line("ADDED", objects.event(request, item))
    if initial:
        yield _line("BOOKMARK", _initial_end(objects, request))
    wished = query.get("timeoutSeconds", "")
    seconds = float(wished) if wished.isdigit() and wished != "0" else _DEFAULT_SECONDS
    try:
        await asyncio.wait_for(closing.wait(), seconds)
    except TimeoutError:
        return


def _initial_end(objects: ObjectAnswers, request: ObjectRequest) -> JsonObject:
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": objects.resource_version, "creationTimestamp": None, "annotations": annotations}
    return {"kind": request.kind.kind, "apiVersion": request.kind.group_version, "metadata": metadata}


def _line(kind: str, item: JsonObject) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_BODY_LIMIT_BYTES: Final = 1024 * 1024


class SnapshotApp:
    """An ASGI application for one recording. `prefix` is a first path segment that may stand before every path."""

    def __init__(self, recording: Recording, *, prefix: str, closing: asyncio.Event) -> None:
        self._api = Api(recording)
        self._prefix = prefix
        self._closing = closing
        self._headers = {"Date": format_datetime(recording.recorded_at, usegmt=True)}
        if recording.namespaces:
            self._headers[RECORDED_NAMESPACES] = ",".join(recording.namespaces)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # no web sockets, which kubectl tries first for exec
            await send({"type": "websocket.close", "code": 1000})
            return
        request = Request(scope, receive)
        try:
            response = await self._response(request)
            response.headers.update(self._headers)
            await response(scope, receive, send)
        except ClientDisconnect:
            return  # it lost interest

    async def _response(self, request: Request) -> Response:
        try:
            _check_host(request.headers.get("host", ""))
            wanted = await self._read(request)
            answer = await asyncio.to_thread(self._api.answer, wanted)
            if isinstance(answer, Watch):
                await asyncio.to_thread(self._api.objects.selected, answer.request)  # refuse a wrong selector now
        except ApiFailure as failure:
            response = _whole(failure_answer(failure), request.method)
            if failure.allow:
                response.headers["Allow"] = failure.allow
            return response
        if isinstance(answer, Watch):
            events = watch_events(self._api.objects, answer.request, self._closing)
            return StreamingResponse(events, media_type="application/json")
        return _whole(answer, request.method)

    async def _read(self, request: Request) -> ApiRequest:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _BODY_LIMIT_BYTES:
                raise ApiFailure(413, "RequestEntityTooLarge", "the body of the request is too large")
        groups = tuple(request.headers.getlist("impersonate-group"))
        return ApiRequest(
            method=request.method,
            path=request.url.path.removeprefix(f"/{self._prefix}"),
            query=dict(request.query_params),
            accept=request.headers.get("accept", ""),
            body=bytes(body),
            impersonated=Subject.of(request.headers.get("impersonate-user", ""), groups),
        )


def _whole(answer: Answer, method: str) -> Response:
    body = b"" if method == "HEAD" else answer.body
    headers = {"Content-Type": answer.content_type}
    if answer.warning:
        headers["Warning"] = f'299 - "{answer.warning}"'
    return Response(body, status_code=answer.status_code, headers=headers)


def _check_host(host: str) -> None:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in _HOSTS:
        raise bad_request(f"this recording is served to this machine only, not to {host!r}")
