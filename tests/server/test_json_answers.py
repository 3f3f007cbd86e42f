"""JSON in what a model wrote, and whether it fits a schema that a client sent."""

from __future__ import annotations

import contextlib

import pytest

from holmes.server.chat.json_answers import find_json, mismatch, schema_of
from holmes.values.errors import ConfigError
from holmes.values.json_types import JsonObject, JsonValue

PERSON: JsonObject = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "tags": {"$ref": "#/$defs/tags"}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('```\n{"a": 1}\n```\n```json\n{"a": 2}\n```', {"a": 2}),
        ('I say {x} and {"a": {"b": "}"}} so.', {"a": {"b": "}"}}),
    ],
)
def test_json_is_found_in_what_models_write(text: str, value: JsonValue) -> None:
    assert find_json(text) == value


@pytest.mark.parametrize("text", ["", "It holds.", "{broken", "[" * 100_000])
def test_what_has_no_json_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        find_json(text)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "x", "age": 3, "tags": ["a"]}, None),
        ({"name": "x", "age": None}, None),
        ({"name": "x", "age": 3.0}, None),
        ({"name": "x", "age": True}, "$.age: True is not of type 'integer', 'null'"),
        ({"age": 3}, "$: 'name' is a required property"),
        ({"name": "x", "size": 3}, "$: Additional properties are not allowed ('size' was unexpected)"),
        ({"name": "x", "tags": ["a", "c"]}, "$.tags[1]: 'c' is not one of ['a', 'b']"),
        ([], "$: [] is not of type 'object'"),
    ],
)
def test_a_value_fits_a_schema_or_the_place_is_named(value: JsonValue, problem: str | None) -> None:
    assert mismatch(value, PERSON) == problem


def test_combinations_are_looked_at() -> None:
    either: JsonObject = {"anyOf": [{"type": "string"}, {"const": 3}], "allOf": [{"enum": ["x", 3]}]}

    assert mismatch("x", either) is None
    assert mismatch(3, either) is None
    assert mismatch("y", either) is not None
    assert mismatch(4, either) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"allOf": [{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}] * 3},
    ],
)
def test_a_schema_without_end_ends(schema: JsonObject) -> None:
    problem: str | None = "takes too long"
    with contextlib.suppress(ConfigError):
        problem = mismatch({}, schema)
    assert problem is not None


def test_patterns_and_addresses_of_clients_are_left_alone() -> None:
    assert mismatch("a" * 50, {"pattern": "(a+)+$", "$ref": "https://example.com/schema.json"}) is None


def test_a_long_value_is_not_quoted() -> None:
    assert mismatch(["a" * 100], {"type": "object"}) == "$: the value is not of type 'object'"


def test_few_words_of_a_schema_may_not_cost_much() -> None:
    choices: JsonObject = {f"a{depth}": {"anyOf": [{"$ref": f"#/$defs/a{depth + 1}"}] * 2} for depth in range(30)}
    with pytest.raises(ConfigError, match="takes too long"):
        mismatch(1, {"$ref": "#/$defs/a0", "$defs": {**choices, "a30": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "place"), [({"type": "text"}, r"\$.type"), ({"required": 5}, r"\$.required"), ({"$schema": 5}, "schema")]
)
def test_a_schema_that_is_none_is_refused_before_anything_is_asked(schema: JsonObject, place: str) -> None:
    with pytest.raises(ConfigError, match=rf"not a valid JSON Schema at .*{place}"):
        schema_of(schema)


def test_openais_wrapping_is_taken_off() -> None:
    assert schema_of({"type": "json_schema", "json_schema": {"schema": PERSON}}) == PERSON
    assert schema_of({"type": "json_object"}) == {"type": "object"}
    assert schema_of(PERSON) == PERSON
    with pytest.raises(ConfigError, match="schema"):
        schema_of({"type": "json_schema"})
