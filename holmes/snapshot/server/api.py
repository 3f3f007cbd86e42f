"""Turns a request into an answer: finds what the path means and who answers it.

Nothing here changes anything. Whatever would, on a real cluster, is refused with 405.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.snapshot.server.access_reviews import REVIEWS, Subject, review
from holmes.snapshot.server.discovery_answers import aggregated_answer, deprecation, plain_answer
from holmes.snapshot.server.failures import ApiFailure, bad_request, no_such_path, read_only
from holmes.snapshot.server.log_answers import log_answer
from holmes.snapshot.server.media import JSON, MAGIC, accepted, decode_review
from holmes.snapshot.server.objects import ObjectAnswers, ObjectRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.snapshot.discovery import ResourceType
    from holmes.snapshot.recording import Recording
    from holmes.snapshot.server.media import Form
    from holmes.values.json_types import JsonObject, JsonValue

_OBJECT_FORMS: Final[tuple[Form, ...]] = ("object", "table", "metadata")
_CHANGING_BELOW: Final = frozenset(
    {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "portforward", "proxy", "token"}
)
_NO_SCHEMAS: Final = "this recording has no schemas; `holmes snapshot create --openapi` records them"
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One HTTP request. `impersonated` is whom the caller asks for, without a user mostly."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = ""
    body: bytes = b""
    impersonated: Subject = field(default_factory=Subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer."""

    body: bytes
    content_type: str = JSON
    status_code: int = 200
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A list whose changes the caller wants to see."""

    request: ObjectRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A path below `/api` or `/apis` that names objects."""

    kind: ResourceType
    namespace: str
    name: str
    below: str


class Api:
    """The API of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.objects = ObjectAnswers(recording)

    def answer(self, request: ApiRequest) -> Answer | Watch:
        """The answer to `request`. Raises `ApiFailure`. Blocks on files and may take a while: call it in a thread."""
        parts = tuple(part for part in request.path.split("/") if part)
        if parts[:1] not in {("api",), ("apis",)}:
            _require_reading(request)
            return self._outside(parts)
        if len(parts) <= (2 if parts[0] == "api" else 3):
            _require_reading(request)
            return self._discovery(request, parts)
        if request.method == "POST" and (parts[1], parts[-1]) in REVIEWS:
            # Also where discovery does not name them: kubectl posts them without asking.
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

    def _discovery(self, request: ApiRequest, parts: tuple[str, ...]) -> Answer:
        if len(parts) > 1:
            return _json_answer(plain_answer(self._recording.discovery, parts))
        wish = accepted(request.accept, forms=("aggregated",))
        if wish.form == "aggregated":
            return _json_answer(aggregated_answer(self._recording.discovery, parts[0]), content_type=wish.content_type)
        return _json_answer(plain_answer(self._recording.discovery, parts))

    def _place(self, parts: tuple[str, ...]) -> _Place:
        """What a path names. Raises `ApiFailure` when the cluster has no such resource."""
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
        if place.name:
            return replace(_json_answer(self.objects.one(wanted)), warning=warning)
        if request.query.get("watch", "") in {"true", "1"}:
            return Watch(request=wanted)
        return replace(_json_answer(self.objects.many(wanted)), warning=warning)


def _require_reading(request: ApiRequest) -> None:
    if request.method not in {"GET", "HEAD"}:
        raise read_only()


def failure_answer(failure: ApiFailure) -> Answer:
    """The answer of a refusal."""
    return _json_answer(failure.document(), status_code=failure.status_code)


def _json_answer(document: JsonObject, *, status_code: int = 200, content_type: str = JSON) -> Answer:
    fields = (_encoded(key) + b":" + _members_encoded(value) for key, value in document.items())
    body = b"{" + b",".join(fields) + b"}"
    return Answer(body=body, content_type=content_type, status_code=status_code)


def _members_encoded(value: JsonValue) -> bytes:
    """A list piece by piece: one call for megabytes would hold up every other thread, and the event loop with them."""
    if not isinstance(value, list):
        return _encoded(value)
    return b"[" + b",".join(map(_encoded, value)) + b"]"


def _encoded(value: JsonValue) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _posted(request: ApiRequest) -> JsonObject:
    """The object in the body. Raises `ApiFailure`."""
    if request.body.startswith(MAGIC):
        decoded = decode_review(request.body)
        if decoded is None:
            raise bad_request("the body of the request is not a review")
        return decoded
    try:
        document = json.loads(request.body)
    except (ValueError, RecursionError):
        raise bad_request("the body of the request is not JSON") from None
    if not isinstance(document, dict):
        raise bad_request("the body of the request must be a JSON object")
    return document
