"""Serves a recording over HTTP: finds the object or list at a path and returns it.

Requests that would change something on a real cluster are rejected with 405.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from holmes.kubernetes.client import RECORDED_NAMESPACES
from holmes.snapshot.recording import VERSION
from holmes.snapshot.server.access_reviews import REVIEWS, Subject, review
from holmes.snapshot.server.answers import aggregated_answer, deprecation, log_answer, plain_answer
from holmes.snapshot.server.metrics_api import METRICS_PATH, metrics_answer
from holmes.snapshot.server.objects import ObjectAnswers, ObjectRequest
from holmes.snapshot.server.responses import (
    JSON,
    MAGIC,
    ApiFailure,
    accepted,
    bad_request,
    decode_review,
    no_such_path,
    not_recorded,
    read_only,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import Receive, Scope, Send

    from holmes.snapshot.discovery import ResourceType
    from holmes.snapshot.recording import Recording
    from holmes.snapshot.server.responses import Form
    from holmes.values.json_types import JsonObject, JsonValue

_OBJECT_FORMS: Final[tuple[Form, ...]] = ("object", "table", "metadata")
_CHANGING_BELOW: Final = frozenset(
    {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "portforward", "proxy", "token"}
)
_NO_SCHEMAS: Final = "this recording has no schemas; `holmes snapshot create --openapi` records them"
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One HTTP request. `impersonated` is the subject from `--as`. By default, it is the client itself."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = ""
    body: bytes = b""
    impersonated: Subject = field(default_factory=Subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete response."""

    body: bytes
    content_type: str = JSON
    status_code: int = 200
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A request to watch a list. The server responds with a stream."""

    request: ObjectRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A parsed path under `/api` or `/apis` that refers to objects."""

    kind: ResourceType
    namespace: str
    name: str
    below: str


class Api:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.objects = ObjectAnswers(recording)

    def answer(self, request: ApiRequest) -> Answer | Watch:
        """Respond to `request`. Raises `ApiFailure`. Reads files and can be slow, so call it in a thread."""
        parts = tuple(part for part in request.path.split("/") if part)
        if parts[:1] == (METRICS_PATH,):
            return self._metrics(request, parts[1:])
        if parts[:1] not in {("api",), ("apis",)}:
            _require_reading(request)
            return self._outside(parts)
        if len(parts) <= (2 if parts[0] == "api" else 3):
            _require_reading(request)
            return self._discovery(request, parts)
        if request.method == "POST" and (parts[1], parts[-1]) in REVIEWS:
            # the path is not checked against discovery, because kubectl does not check it either
            reviewed = review(self._recording, parts[-1], _posted(request), request.impersonated)
            return _json_answer(reviewed, status_code=201)
        place = self._place(parts)
        if place.below in _CHANGING_BELOW:
            raise read_only()
        _require_reading(request)
        return self._read(request, place)

    def _outside(self, parts: tuple[str, ...]) -> Answer:
        match parts:
            case ("version",):
                if not self._recording.version:
                    raise not_recorded("", VERSION, "it is not part of this recording")
                return _json_answer(self._recording.version)
            case (check, *_) if check in _HEALTH:
                return Answer(body=b"ok", content_type="text/plain; charset=utf-8")
            case ():
                return _json_answer({"paths": ["/api", "/apis", "/healthz", "/livez", "/readyz", "/version"]})
            case ("openapi", "v3", *below):
                return self._openapi("/".join(below))
            case _:
                raise no_such_path()

    def _openapi(self, path: str) -> Answer:
        if not self._recording.openapi:
            raise ApiFailure(404, "NotFound", _NO_SCHEMAS, details={})
        if not path:
            known = {each: {"serverRelativeURL": f"/openapi/v3/{each}"} for each in self._recording.openapi}
            return _json_answer({"paths": known})
        file = self._recording.openapi.get(path)
        if file is None:
            raise no_such_path()
        return Answer(body=file.read_bytes())

    def _metrics(self, request: ApiRequest, parts: tuple[str, ...]) -> Answer:
        """Respond as Prometheus does. POST sends a long query and changes nothing."""
        sources = {str(place): each for place, each in enumerate(self._recording.metrics.values())}
        metrics = sources.get(parts[0]) if parts[1:3] == ("api", "v1") else None
        if metrics is None or request.method not in {"GET", "HEAD", "POST"}:
            raise no_such_path()
        form = dict(parse_qsl(request.body.decode("utf-8", "replace"))) if request.method == "POST" else {}
        status, body = metrics_answer(metrics, parts[3:], {**request.query, **form})
        return Answer(body=body, status_code=status)

    def _discovery(self, request: ApiRequest, parts: tuple[str, ...]) -> Answer:
        if len(parts) > 1:
            return _json_answer(plain_answer(self._recording.discovery, parts))
        wish = accepted(request.accept, forms=("aggregated",))
        if wish.form == "aggregated":
            return _json_answer(aggregated_answer(self._recording.discovery, parts[0]), content_type=wish.content_type)
        return _json_answer(plain_answer(self._recording.discovery, parts))

    def _place(self, parts: tuple[str, ...]) -> _Place:
        """Parse a path. Raises `ApiFailure` if the cluster does not have the resource."""
        if parts[0] == "api":
            group, version, rest = "", parts[1], parts[2:]
        else:
            group, version, rest = parts[1], parts[2], parts[3:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and self._recording.discovery.find(group, version, rest[2]):
            namespace, rest = rest[1], rest[2:]
        kind = self._recording.discovery.find(group, version, rest[0])
        if kind is None or (namespace and not kind.namespaced):
            raise no_such_path()
        name, below = (*rest[1:3], "", "")[:2]
        return _Place(kind=kind, namespace=namespace, name=name, below=below)

    def _read(self, request: ApiRequest, place: _Place) -> Answer | Watch:
        if place.kind.namespaced and place.name and not place.namespace:
            raise no_such_path()
        if place.below == "log" and place.kind.qualified == "pods":
            pod = self.objects.find(place.kind, place.namespace, place.name)
            return Answer(body=log_answer(self._recording, pod, request.query), content_type="text/plain")
        if place.below not in {"", "status"}:
            raise no_such_path()
        wanted = ObjectRequest(
            kind=place.kind,
            namespace=place.namespace,
            name=place.name,
            form=accepted(request.accept, forms=_OBJECT_FORMS).form,
            query=request.query,
        )
        warning = deprecation(place.kind.group, place.kind.plural)
        missing = () if place.name else self.objects.missing(place.kind, place.namespace)
        if missing:
            where = f" in namespace {missing[0].namespace}" if missing[0].namespace else ""
            more = f" ({len(missing) - 1} more namespaces)" if len(missing) > 1 else ""
            warning = f"{place.kind.qualified} are not complete{where}{more}: {missing[0].reason}"
        if place.name:
            return replace(_json_answer(self.objects.one(wanted)), warning=warning)
        if request.query.get("watch", "") in {"true", "1"}:
            return Watch(request=wanted)
        return replace(_json_answer(self.objects.many(wanted)), warning=warning)


def _require_reading(request: ApiRequest) -> None:
    if request.method not in {"GET", "HEAD"}:
        raise read_only()


def failure_answer(failure: ApiFailure) -> Answer:
    return _json_answer(failure.document(), status_code=failure.status_code)


def _json_answer(document: JsonObject, *, status_code: int = 200, content_type: str = JSON) -> Answer:
    fields = (_encoded(key) + b":" + _members_encoded(value) for key, value in document.items())
    body = b"{" + b",".join(fields) + b"}"
    return Answer(body=body, content_type=content_type, status_code=status_code)


def _members_encoded(value: JsonValue) -> bytes:
    """Encode a list item by item, because one call for a large list would block all threads and the event loop."""
    if not isinstance(value, list):
        return _encoded(value)
    return b"[" + b",".join(map(_encoded, value)) + b"]"


def _encoded(value: JsonValue) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _posted(request: ApiRequest) -> JsonObject:
    """Parse the object in the request body. Raises `ApiFailure`."""
    if request.body.startswith(MAGIC):
        decoded = decode_review(request.body)
        if decoded is None:
            raise bad_request("the request body is not a review")
        return decoded
    try:
        document = json.loads(request.body)
    except (ValueError, RecursionError):
        raise bad_request("the request body is not JSON") from None
    if not isinstance(document, dict):
        raise bad_request("the request body must be a JSON object")
    return document


_DEFAULT_SECONDS = 300.0


async def _watch_events(objects: ObjectAnswers, request: ObjectRequest, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Send the events of a watch, one JSON document per line. Raises `ApiFailure` for a selector that is not valid."""
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
    """An ASGI application for one recording. `prefix` is an optional first segment of all paths."""

    def __init__(self, recording: Recording, *, prefix: str, closing: asyncio.Event) -> None:
        self._api = Api(recording)
        self._prefix = prefix
        self._closing = closing
        self._headers = {"Date": format_datetime(recording.recorded_at, usegmt=True)}
        if recording.namespaces:
            self._headers[RECORDED_NAMESPACES] = ",".join(recording.namespaces)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # rejects WebSocket, which kubectl tries first for exec
            await send({"type": "websocket.close", "code": 1000})
            return
        request = Request(scope, receive)
        try:
            response = await self._response(request)
            response.headers.update(self._headers)
            await response(scope, receive, send)
        except ClientDisconnect:
            return  # the client has disconnected

    async def _response(self, request: Request) -> Response:
        try:
            _check_host(request.headers.get("host", ""))
            wanted = await self._read(request)
            answer = await asyncio.to_thread(self._api.answer, wanted)
            if isinstance(answer, Watch):
                await asyncio.to_thread(self._api.objects.selected, answer.request)  # reject invalid selectors now
        except ApiFailure as failure:
            response = _whole(failure_answer(failure), request.method)
            if failure.allow:
                response.headers["Allow"] = failure.allow
            return response
        if isinstance(answer, Watch):
            events = _watch_events(self._api.objects, answer.request, self._closing)
            return StreamingResponse(events, media_type="application/json")
        return _whole(answer, request.method)

    async def _read(self, request: Request) -> ApiRequest:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _BODY_LIMIT_BYTES:
                raise ApiFailure(413, "RequestEntityTooLarge", "the request body is too large")
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
        headers["Warning"] = f'299 - "{_quotable(answer.warning)}"'
    return Response(body, status_code=answer.status_code, headers=headers)


def _quotable(text: str) -> str:
    """Return a text that a quoted header value can hold."""
    return "".join(" " if each in '"\\' or not each.isprintable() or not each.isascii() else each for each in text)


def _check_host(host: str) -> None:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in _HOSTS:
        raise bad_request(f"this recording is served only to this machine, not to {host!r}")
