"""JSON schemas of real servers, as parameters."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from holmes.toolsets.mcp.schemas import parameters_of
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import Parameter, ParameterSchema, Tool

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject


def test_plain_parameters_with_what_the_model_must_know() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "A  search\nquery.", "maxLength": 200},
            "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50},
            "state": {"enum": ["open", "closed"]},
            "kind": {"const": "issue"},
        },
        "required": ["query"],
    }
    query, limit, state, kind = parameters_of(schema)
    assert query == Parameter(
        name="query", schema=ParameterSchema(types=("string",), description="A search query. (maximum length: 200)")
    )
    # The server applies its own default, so it is told, not sent.
    assert (limit.required, limit.default) == (False, None)
    assert limit.schema.description == "default: 10; at least: 1; at most: 50"
    assert (state.schema.enum, kind.schema.enum) == (("open", "closed"), ("issue",))


def test_references_unions_and_nested_objects() -> None:
    schema: JsonObject = {
        "$defs": {
            "Range": {
                "type": "object",
                "properties": {"start": {"type": "string"}, "end": {"$ref": "#/$defs/Time"}},
                "required": ["start"],
            },
            "Time": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "properties": {
            "range": {"$ref": "#/$defs/Range", "description": "When."},
            "names": {"type": ["array", "null"], "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "both": {
                "allOf": [
                    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
                ]
            },
        },
    }
    span, names, labels, both = parameters_of(schema)
    assert span.schema.description == "When."
    assert [(each.name, each.required) for each in span.schema.properties] == [("start", True), ("end", False)]
    assert [option.types for option in span.schema.properties[1].schema.any_of] == [("string",), ("null",)]
    assert names.schema.types == ("array", "null")
    assert labels.schema.additional_properties == ParameterSchema(types=("string",))
    assert [(each.name, each.required) for each in both.schema.properties] == [("a", True), ("b", True)]


def test_a_schema_that_refers_to_itself_or_to_nothing_ends() -> None:
    tree: JsonObject = {
        "$defs": {"Node": {"properties": {"left": {"$ref": "#/$defs/Node"}}}, "Loop": {"$ref": "#/$defs/Loop"}},
        "properties": {
            "root": {"$ref": "#/$defs/Node"},
            "loop": {"$ref": "#/$defs/Loop"},
            "lost": {"$ref": "#/$defs/Gone"},
            "outside": {"$ref": "https://example.com/schema"},
        },
    }
    root, loop, lost, outside = parameters_of(tree)
    assert root.schema.properties[0].name == "left"
    assert root.schema.properties[0].schema == ParameterSchema()
    assert loop.schema == lost.schema == outside.schema == ParameterSchema()


def test_what_is_not_a_schema_allows_any_value() -> None:
    assert parameters_of({}) == ()
    assert parameters_of({"properties": ["a"]}) == ()
    (given,) = parameters_of({"properties": {"a": True}, "required": "a"})
    assert given == Parameter(name="a", schema=ParameterSchema(), required=False)


def test_arguments_of_small_models_are_converted() -> None:
    tool = Tool(name="t", description="d", parameters=parameters_of({"properties": {"limit": {"type": "integer"}}}))
    assert coerce_arguments(tool, {"limit": "5"}) == {"limit": 5}


def test_a_schema_that_branches_into_itself_stays_small() -> None:
    names = [f"p{number}" for number in range(8)]
    node: JsonObject = {"type": "object", "properties": {name: {"$ref": "#/$defs/Node"} for name in names}}
    began = time.monotonic()
    parameters = parameters_of(
        {"$defs": {"Node": node}, "properties": {name: {"$ref": "#/$defs/Node"} for name in names}}
    )
    tool = Tool(name="t", description="d", parameters=parameters)
    assert time.monotonic() - began < 1
    assert len(json.dumps(tool.parameters_json_schema())) < 20_000
    assert [each.name for each in parameters] == names
