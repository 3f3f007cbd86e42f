"""Reads the reviews that kubectl posts in protobuf, Kubernetes' own flavour of it. Called by `api`.

Knows the fields of access reviews and nothing else; every answer of this server is JSON, which clients take as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.values.json_types import JsonObject, JsonValue

MAGIC: Final = b"k8s\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field by its number: text, a list of texts, or a message with fields of its own."""

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
    """The review in `body`, which begins with `MAGIC`; None when it is no review or is broken."""
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
    """Number and content of the fields that have a length; numbers are passed over. Raises `IndexError`."""
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
