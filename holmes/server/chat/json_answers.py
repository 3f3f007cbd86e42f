"""Answers that must be JSON: finds it in what a model wrote, and checks it against a schema. Pure.

Used for `response_format` and for checks. The schema comes from a client, so only keywords that cost nothing are looked
at: types, values, objects, lists, combinations and references within the schema; no patterns, no addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

_FENCE: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_DEPTH: Final = 64
_MAX_CHECKS: Final = 100_000
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


def schema_of(response_format: JsonObject) -> JsonObject:
    """The schema in `response_format`: OpenAI's wrapping, or the schema itself. Raises `ConfigError`."""
    kind = response_format.get("type")
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        return response_format
    wrapped = response_format.get("json_schema")
    schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else None
    if not isinstance(schema, Mapping):
        raise ConfigError("response_format: 'json_schema' needs an object 'schema'")
    return schema


def find_json(text: str) -> JsonValue:
    """The JSON in a model's answer: the whole of it, a fenced block, or its first object. Raises `ValueError`."""
    for candidate in (text, *(_FENCE.findall(text)[::-1])):
        try:
            value: JsonValue = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value
    decoder = json.JSONDecoder()
    for start in (match.start() for match in re.finditer(r"\{", text[:100_000])):
        try:
            value = decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        return value
    raise ValueError("there is no JSON in it")


def mismatch(value: JsonValue, schema: JsonObject) -> str | None:
    """Where `value` is not what `schema` says, None when it fits. Raises `ConfigError` for a schema without end."""
    return next(_mismatches(value, schema, _Place("$", schema, 0, count(1))), None)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a value the check is, with the whole schema for references. `checks` counts all of them."""

    path: str
    root: JsonObject
    depth: int
    checks: Iterator[int]

    def below(self, name: str | int) -> _Place:
        return replace(self, path=f"{self.path}.{name}", depth=self.depth + 1)

    def again(self) -> _Place:
        return replace(self, depth=self.depth + 1)


def _mismatches(value: JsonValue, schema: object, place: _Place) -> Iterator[str]:
    if next(place.checks) > _MAX_CHECKS:
        raise ConfigError("response_format: checking an answer against this schema takes too long")
    if schema is False or place.depth > _DEPTH:
        yield f"{place.path}: nothing is allowed here"
    if not isinstance(schema, Mapping) or place.depth > _DEPTH:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _mismatches(value, _referred(reference, place.root), place.again())
    yield from _of_type(value, schema, place)
    yield from _of_combinations(value, schema, place)
    if isinstance(value, Mapping):
        yield from _of_object(value, schema, place)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mismatches(item, schema.get("items"), place.below(index))


def _of_type(value: JsonValue, schema: JsonObject, place: _Place) -> Iterator[str]:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if names and not any(_is_a(value, name) for name in names):
        yield f"{place.path}: {' or '.join(map(str, names))} is expected"
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        yield f"{place.path}: one of {json.dumps(allowed)[:200]} is expected"
    if "const" in schema and value != schema["const"]:
        yield f"{place.path}: {json.dumps(schema['const'])[:200]} is expected"


def _of_combinations(value: JsonValue, schema: JsonObject, place: _Place) -> Iterator[str]:
    for each in _list(schema.get("allOf")):
        yield from _mismatches(value, each, place.again())
    for name in ("anyOf", "oneOf"):
        options = _list(schema.get(name))
        if options and all(any(_mismatches(value, option, place.again())) for option in options):
            yield f"{place.path}: it fits none of {name}"


def _of_object(value: Mapping[str, JsonValue], schema: JsonObject, place: _Place) -> Iterator[str]:
    properties = schema.get("properties")
    known: Mapping[str, JsonValue] = properties if isinstance(properties, Mapping) else {}
    for name in _list(schema.get("required")):
        if isinstance(name, str) and name not in value:
            yield f"{place.path}: {name!r} is missing"
    for name, item in value.items():
        if name in known:
            yield from _mismatches(item, known[name], place.below(name))
        elif schema.get("additionalProperties") is False:
            yield f"{place.path}: {name!r} is not allowed"
        else:
            yield from _mismatches(item, schema.get("additionalProperties"), place.below(name))


def _is_a(value: JsonValue, name: object) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(name, str) and isinstance(value, _TYPES.get(name, ()))


def _list(value: object) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else []


def _referred(reference: str, root: JsonObject) -> object:
    found: object = root
    if not reference.startswith("#"):
        return True
    for part in reference[1:].strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name, True) if isinstance(found, Mapping) and name else found
    return found
