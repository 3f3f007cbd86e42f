"""Reads the JSON schemas of MCP tools into the parameters that Holmes checks and shows to models.

A server may use any keyword. References are resolved, and what `ParameterSchema` lacks, such as a range or a default,
becomes a part of the description, so that the model still reads it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast, get_args

from holmes.values.texts import shortened
from holmes.values.tools import JsonType, Parameter, ParameterSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonObject, JsonScalar, JsonValue

_DEEPEST: Final = 8
_MOST_SCHEMAS: Final = 300
"""Schemas that refer to themselves would otherwise grow with each level."""
_MOST_CHARACTERS: Final = 400
_TOLD: Final = {
    "default": "default",
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "minimum length",
    "maxLength": "maximum length",
    "minItems": "minimum items",
    "maxItems": "maximum items",
}


def parameters_of(schema: Mapping[str, JsonValue]) -> tuple[Parameter, ...]:
    """Return the parameters of a tool's `inputSchema`, in the server's order."""
    return _Reader(schema).properties(schema, 0)


class _Reader:
    def __init__(self, root: Mapping[str, JsonValue]) -> None:
        self._root = root
        self._read = 0
        self._open: list[str] = []

    def properties(self, schema: Mapping[str, JsonValue], depth: int) -> tuple[Parameter, ...]:
        listed, required = schema.get("properties"), schema.get("required")
        needed = set(map(str, required)) if isinstance(required, list | tuple) else set()
        if not isinstance(listed, dict):
            return ()
        return tuple(
            Parameter(name=name, schema=self.schema(below, depth + 1), required=name in needed)
            for name, below in listed.items()
        )

    def schema(self, written: JsonValue, depth: int) -> ParameterSchema:
        self._read += 1
        if not isinstance(written, dict) or depth > _DEEPEST or self._read > _MOST_SCHEMAS:
            return ParameterSchema()
        reference = written.get("$ref")
        if not isinstance(reference, str):
            return self._of(self._resolved(written), depth)
        if reference in self._open:  # it refers to itself
            return ParameterSchema(description=_description(written))
        self._open.append(reference)
        try:
            return self._of(self._resolved(written), depth)
        finally:
            self._open.pop()

    def _of(self, schema: JsonObject, depth: int) -> ParameterSchema:
        options = schema.get("anyOf") or schema.get("oneOf")
        read = ParameterSchema(
            types=_types(schema),
            description=_description(schema),
            enum=_enum(schema),
            items=self.schema(schema["items"], depth + 1) if "items" in schema else None,
            properties=self.properties(schema, depth),
            additional_properties=self._additional(schema, depth),
        )
        if isinstance(options, list | tuple) and options:
            return replace(read, any_of=tuple(self.schema(option, depth + 1) for option in options))
        return read

    def _additional(self, schema: JsonObject, depth: int) -> ParameterSchema | bool | None:
        rule = schema.get("additionalProperties")
        return self.schema(rule, depth + 1) if isinstance(rule, dict) else rule if isinstance(rule, bool) else None

    def _resolved(self, schema: JsonObject) -> JsonObject:
        """Follow `$ref` and merge `allOf`. A reference that leads nowhere or in a circle allows any value."""
        for _ in range(_DEEPEST):
            reference, parts = schema.get("$ref"), schema.get("allOf")
            if isinstance(reference, str):
                others = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(reference), **others}
            elif isinstance(parts, list | tuple):
                schema = _merged(schema, [part for part in parts if isinstance(part, dict)])
            else:
                break
        return schema

    def _target(self, reference: str) -> JsonObject:
        place: JsonValue = dict(self._root)
        for step in reference.removeprefix("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, dict) else None
        return place if isinstance(place, dict) and reference.startswith("#/") else {}


def _merged(schema: JsonObject, parts: list[JsonObject]) -> JsonObject:
    merged: dict[str, JsonValue] = {}
    own = {key: value for key, value in schema.items() if key != "allOf"}
    for part in (*parts, own):
        for key, value in part.items():
            known = merged.get(key)
            if isinstance(known, dict) and isinstance(value, dict):
                merged[key] = {**known, **value}
            elif key == "required" and isinstance(known, list) and isinstance(value, list):
                merged[key] = [*known, *value]
            else:
                merged[key] = value
    return merged


def _types(schema: JsonObject) -> tuple[JsonType, ...]:
    written = schema.get("type")
    names = written if isinstance(written, list | tuple) else [written]
    return tuple(cast("JsonType", name) for name in names if name in get_args(JsonType))


def _enum(schema: JsonObject) -> tuple[JsonScalar, ...]:
    written = [schema["const"]] if "const" in schema else schema.get("enum")
    values = written if isinstance(written, list | tuple) else ()
    return tuple(value for value in values if not isinstance(value, dict | list | tuple))


def _description(schema: JsonObject) -> str:
    written = schema.get("description")
    about = " ".join(written.split()) if isinstance(written, str) else ""
    told = [f"{word}: {json.dumps(schema[key])}" for key, word in _TOLD.items() if schema.get(key) is not None]
    text = f"{about} ({'; '.join(told)})" if told and about else about or "; ".join(told)
    return shortened(text, _MOST_CHARACTERS)
