"""Finds the JSON in a model's answer, and checks it against a client's schema.

The schema is untrusted: its remote references are not fetched, its regular expressions do not run, and the number and
nesting of checks are limited.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from holmes.values.errors import ConfigError
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

_FENCE: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_MAX_CHECKS: Final = 50_000
# These limits are below Python's recursion limit, at which the Rust code of jsonschema panics.
_MAX_SCHEMA_LEVELS: Final = 64
_MAX_NESTED_CHECKS: Final = 120
_MAX_QUOTED_CHARACTERS: Final = 60
_MAX_MESSAGE_CHARACTERS: Final = 300
# These keywords would run regular expressions from the client. The last two read `patternProperties`.
_NOT_CHECKED: Final = frozenset({"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"})

_Check = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def schema_of(response_format: JsonObject) -> JsonObject:
    """Return the schema in an OpenAI `response_format`, or `response_format` itself if it is a schema.

    Raises `ConfigError`.
    """
    kind = response_format.get("type")
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        return _valid(response_format)
    wrapped = response_format.get("json_schema")
    schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else None
    if not isinstance(schema, Mapping):
        raise ConfigError("response_format: 'json_schema' requires a 'schema' object")
    return _valid(schema)


def find_json(text: str) -> JsonValue:
    """Parse the JSON in an answer: the whole text, the last fenced block, or the first object. Raises `ValueError`."""
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
    raise ValueError("no JSON found")


def mismatch(value: JsonValue, schema: JsonObject) -> str | None:
    """Describe where and why `value` does not match `schema`. Returns None if it matches.

    Raises `ConfigError` if the schema refers to itself endlessly or checking takes too long.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_validator(schema).iter_errors(value))
    if error is None:
        return None
    message, quoted = error.message, repr(error.instance)
    if len(quoted) > _MAX_QUOTED_CHARACTERS:
        message = message.replace(quoted, "the value")
    return f"{error.json_path}: {excerpt(message, _MAX_MESSAGE_CHARACTERS)}"


def _valid(schema: JsonObject) -> JsonObject:
    """Return `schema` if it is a valid JSON Schema. Raises `ConfigError`."""
    from jsonschema.exceptions import SchemaError

    if _levels(schema) > _MAX_SCHEMA_LEVELS:
        raise ConfigError(f"response_format: the schema has more than {_MAX_SCHEMA_LEVELS} nested levels")
    try:
        _dialect(schema).check_schema(schema)
    except SchemaError as error:
        place, message = error.json_path, excerpt(error.message, _MAX_MESSAGE_CHARACTERS)
        raise ConfigError(f"response_format is not a valid JSON Schema at {place}: {message}") from None
    return schema


def _levels(schema: JsonObject) -> int:
    """Return the nesting depth of the objects and lists in a schema."""
    levels, inside = 0, [cast("JsonValue", schema)]
    while inside:
        levels += 1
        inside = [
            child
            for each in inside
            for child in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            if isinstance(child, dict | list)
        ]
    return levels


def _dialect(schema: JsonObject) -> Any:  # noqa: ANN401  jsonschema ships no types
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    if not isinstance(schema.get("$schema"), str):
        return Draft202012Validator
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # raised for an unknown `$schema`
        return validator_for(schema, default=Draft202012Validator)


def _validator(schema: JsonObject) -> Any:  # noqa: ANN401  jsonschema ships no types
    """Create a validator that limits checks and their nesting, without network access or regular expressions."""
    from jsonschema.validators import extend
    from referencing import Registry

    dialect, checks, open_checks = _dialect(schema), count(1), [0]
    checked = {name: _bounded(name, check, checks, open_checks) for name, check in dialect.VALIDATORS.items()}
    return extend(dialect, validators=checked)(dict(schema), registry=Registry())


def _bounded(name: str, check: _Check, checks: Iterator[int], open_checks: list[int]) -> _Check:
    """Add the limits to `check`, which checks the keyword `name`.

    `open_checks[0]` is the number of unfinished checks.
    """
    from referencing.exceptions import Unresolvable

    def bounded(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:  # noqa: ANN401  any JSON
        if next(checks) > _MAX_CHECKS:
            raise ConfigError("response_format: checking an answer against this schema takes too long")
        if open_checks[0] >= _MAX_NESTED_CHECKS:
            raise ConfigError(
                "response_format: the schema refers to itself endlessly, or the answer is nested too deeply"
            )
        if name in _NOT_CHECKED or (name == "additionalProperties" and "patternProperties" in schema):
            return
        open_checks[0] += 1
        try:
            if name not in {"$ref", "$dynamicRef"}:
                yield from check(validator, wanted, value, schema) or ()
            elif wanted.startswith("#"):
                with suppress(Unresolvable):  # an unresolvable reference matches any value
                    yield from check(validator, wanted, value, schema) or ()
        finally:
            open_checks[0] -= 1

    return bounded
