"""Creates error responses, parses `Accept`, and decodes protobuf requests.

Only access reviews are decoded from the protobuf format of Kubernetes. All responses are JSON, which all clients
accept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.json_types import JsonObject, JsonValue

READ_ONLY: Final = "this recording is read-only"


class ApiFailure(Exception):
    """An error response. `reason` is a Kubernetes `Status` reason."""

    def __init__(
        self, status_code: int, reason: str, message: str, *, details: JsonObject | None = None, allow: str = ""
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.allow = allow
        self._reason = reason
        self._details = details

    def document(self) -> JsonObject:
        """Return the Kubernetes `Status` object of the error."""
        document: dict[str, JsonValue] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self._reason,
            "code": self.status_code,
        }
        if self._details is not None:
            document["details"] = self._details
        return document


def bad_request(message: str) -> ApiFailure:
    return ApiFailure(400, "BadRequest", message)


def no_such_path() -> ApiFailure:
    return ApiFailure(404, "NotFound", "the server could not find the requested resource", details={})


def read_only() -> ApiFailure:
    """Create the error for a request that would change something."""
    return ApiFailure(405, "MethodNotAllowed", READ_ONLY, details={}, allow="GET, HEAD")


def no_such_object(group: str, plural: str, name: str) -> ApiFailure:
    qualified = f"{plural}.{group}" if group else plural
    details = {"name": name, **({"group": group} if group else {}), "kind": plural}
    return ApiFailure(404, "NotFound", f'{qualified} "{name}" not found', details=details)


def not_recorded(group: str, plural: str, why: str) -> ApiFailure:
    """Create the error for objects that were not recorded.

    The server never returns an empty list instead.
    """
    qualified = f"{plural}.{group}" if group else plural
    details = {**({"group": group} if group else {}), "kind": plural}
    return ApiFailure(403, "Forbidden", f"{qualified} is forbidden: {why}", details=details)


Form: TypeAlias = Literal["object", "table", "metadata", "aggregated"]

JSON: Final = "application/json"
_FORMS: Final[dict[tuple[str, str, str], Form]] = {
    ("Table", "meta.k8s.io", "v1"): "table",
    ("PartialObjectMetadata", "meta.k8s.io", "v1"): "metadata",
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"): "metadata",
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"): "aggregated",
}
_PLAIN: Final = frozenset({JSON, "application/*", "*/*"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The format of a response, and its `Content-Type`."""

    form: Form
    content_type: str


def accepted(header: str, *, forms: tuple[Form, ...]) -> Accepted:
    """Return the first media type in `header` whose form is in `forms`, or plain JSON if the header is empty.

    Raises `ApiFailure` (406) if the client accepts only other formats.
    """
    wishes = [part.strip() for part in header.split(",") if part.strip()]
    for wish in wishes:
        media, *pieces = (piece.strip() for piece in wish.split(";"))
        if media not in _PLAIN:
            continue
        parameters = dict(piece.partition("=")[::2] for piece in pieces)
        if "as" not in parameters:
            return Accepted(form="object", content_type=JSON)
        form = _FORMS.get((parameters["as"], parameters.get("g", ""), parameters.get("v", "")))
        if form is not None and form in forms:
            return Accepted(form=form, content_type=_content_type(parameters) if form == "aggregated" else JSON)
    if wishes:
        message = f"only the following media types are accepted: {JSON}"
        raise ApiFailure(406, "NotAcceptable", message)
    return Accepted(form="object", content_type=JSON)


def _content_type(parameters: dict[str, str]) -> str:
    return f"{JSON};g={parameters['g']};v={parameters['v']};as={parameters['as']}"


MAGIC: Final = b"k8s\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A protobuf field: text, a list of texts, or a message with its own fields by number."""

    name: str
    message: Mapping[int, Field] | None = None
    repeated: bool = False


_Fields: TypeAlias = "dict[int, Field]"


def _texts(*names: str) -> _Fields:
    return {number: Field(name=name) for number, name in enumerate(names, start=1)}


_RESOURCE: Final = _texts("namespace", "verb", "group", "version", "resource", "subresource", "name")
_ACCESS: Final[_Fields] = {
    1: Field(name="resourceAttributes", message=_RESOURCE),
    2: Field(name="nonResourceAttributes", message=_texts("path", "verb")),
    3: Field(name="user"),
    4: Field(name="groups", repeated=True),
}
_SPECS: Final[Mapping[str, _Fields]] = {
    "SelfSubjectAccessReview": _ACCESS,
    "SubjectAccessReview": _ACCESS,
    "LocalSubjectAccessReview": _ACCESS,
    "SelfSubjectRulesReview": _texts("namespace"),
    "SelfSubjectReview": {},
}
_ENVELOPE: Final[_Fields] = {1: Field(name="type", message=_texts("apiVersion", "kind"))}


def decode_review(body: bytes) -> JsonObject | None:
    """Decode a review from `body`, which starts with `MAGIC`. Returns None if it is malformed or not a review."""
    try:
        content = body[len(MAGIC) :]
        head = _message(content, _ENVELOPE)["type"]
        raw = next(piece for number, piece in _pieces(content) if number == 2)
        if not isinstance(head, dict) or head.get("kind") not in _SPECS:
            return None
        fields: _Fields = {2: Field(name="spec", message=_SPECS[str(head["kind"])])}
        return {**head, **_message(raw, fields)}
    except (IndexError, KeyError, StopIteration, UnicodeDecodeError):
        return None


def _message(content: bytes, fields: Mapping[int, Field]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    lists: dict[str, list[JsonValue]] = {}
    for number, piece in _pieces(content):
        field = fields.get(number)
        if field is None:
            continue
        value: JsonValue = piece.decode() if field.message is None else _message(piece, field.message)
        if field.repeated:
            lists.setdefault(field.name, []).append(value)
        else:
            found[field.name] = value
    return found | lists


def _pieces(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the number and content of each length-delimited field. Skips numeric fields. Raises `IndexError`."""
    position = 0
    while position < len(content):
        tag, position = _varint(content, position)
        wire_type = tag & 7
        if wire_type == 0:
            _, position = _varint(content, position)
        elif wire_type == 2:
            length, position = _varint(content, position)
            if position + length > len(content):
                raise IndexError(length)
            yield tag >> 3, content[position : position + length]
            position += length
        else:
            raise IndexError(wire_type)


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
