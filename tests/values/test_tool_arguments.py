"""Arguments of small models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.values.errors import ToolError
from holmes.values.json_types import JsonValue
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import JsonType, Parameter, ParameterSchema, Tool


def tool_of(schema: ParameterSchema, *, required: bool = True, default: JsonValue = None) -> Tool:
    parameter = Parameter(name="value", schema=schema, required=required, default=default)
    return Tool(name="a_tool", description="", parameters=(parameter,))


STRINGS = ParameterSchema(types=("string",))
CASES: tuple[tuple[tuple[JsonType, ...], JsonValue, JsonValue], ...] = (
    (("integer",), "5", 5),
    (("integer",), 5.0, 5),
    (("integer",), " -7 ", -7),
    (("number",), "2.5", 2.5),
    (("boolean",), "True", True),
    (("boolean",), "no", False),
    (("boolean",), 1, True),
    (("string",), 5, "5"),
    (("string",), True, "true"),
    (("string",), ["only"], "only"),
    (("array",), "one", ["one"]),
    (("array",), '["a", "b"]', ["a", "b"]),
    (("object",), '{"a": 1}', {"a": 1}),
    (("string", "integer"), "5", "5"),
    (("string", "null"), None, None),
)


@pytest.mark.parametrize(("types", "given_value", "expected"), CASES)
def test_what_can_be_read_only_one_way_is_converted(
    types: tuple[JsonType, ...], given_value: JsonValue, expected: JsonValue
) -> None:
    coerced = coerce_arguments(tool_of(ParameterSchema(types=types)), {"value": given_value})["value"]
    assert coerced == expected
    assert type(coerced) is type(expected)


@pytest.mark.parametrize(
    ("types", "value"),
    [
        (("integer",), "five"),
        (("integer",), 1.5),
        (("boolean",), "maybe"),
        (("object",), "[1]"),
        (("string",), {"a": 1}),
    ],
)
def test_what_does_not_fit_is_refused_with_the_expected_type(types: tuple[JsonType, ...], value: JsonValue) -> None:
    with pytest.raises(ToolError, match=f"parameter 'value' must be of type {types[0]}"):
        coerce_arguments(tool_of(ParameterSchema(types=types)), {"value": value})


def test_items_of_a_list_are_converted_too() -> None:
    schema = ParameterSchema(types=("array",), items=ParameterSchema(types=("integer",)))
    assert coerce_arguments(tool_of(schema), {"value": ["1", 2]})["value"] == [1, 2]


def test_an_enum_ignores_case_and_names_its_members() -> None:
    tool = tool_of(ParameterSchema(types=("string",), enum=("Warning", "Normal")))
    assert coerce_arguments(tool, {"value": "warning"})["value"] == "Warning"
    with pytest.raises(ToolError, match="must be one of 'Warning', 'Normal', not 'Fatal'"):
        coerce_arguments(tool, {"value": "Fatal"})


INTEGER, STRING = ParameterSchema(types=("integer",)), ParameterSchema(types=("string",))
NULL = ParameterSchema(types=("null",))
LIST = ParameterSchema(types=("array",), items=INTEGER)
NAMED = ParameterSchema(types=("object",), properties=(Parameter(name="name", schema=STRING),))
COUNTED = ParameterSchema(types=("object",), properties=(Parameter(name="count", schema=INTEGER),))
CLOSED = ParameterSchema(types=("object",), properties=NAMED.properties, additional_properties=False)
OPEN = ParameterSchema(types=("object",), additional_properties=INTEGER)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ((STRING, INTEGER), 5),
        ((INTEGER, STRING), "7"),
        ((INTEGER, STRING), "seven"),
        ((STRING, ParameterSchema(types=("boolean",))), True),
        ((ParameterSchema(types=("boolean",)), INTEGER), 1),
        ((LIST, INTEGER), 3),
        ((STRING, LIST), [1]),
        ((ParameterSchema(types=("array",), items=STRING), LIST), [1, 2]),
        ((STRING, NULL), None),
        ((STRING, ParameterSchema(any_of=(LIST, NULL))), None),
        ((ParameterSchema(enum=("on", "off")), STRING), "ON"),
        ((ParameterSchema(enum=(1, 2)), ParameterSchema(types=("boolean",))), True),
        ((COUNTED, NAMED), {"name": "x", "count": "5"}),
        ((CLOSED, OPEN, NAMED), {"name": "x", "more": "y"}),
        ((NAMED, OPEN), {"a": 1}),
    ],
)
def test_a_value_that_fits_one_alternative_is_left_alone(
    options: tuple[ParameterSchema, ...], value: JsonValue
) -> None:
    coerced = coerce_arguments(tool_of(ParameterSchema(any_of=options)), {"value": value})["value"]
    assert (coerced, type(coerced)) == (value, type(value))


def test_a_value_that_fits_none_goes_to_the_first_alternative_that_can_read_it() -> None:
    tool = tool_of(ParameterSchema(any_of=(INTEGER, ParameterSchema(types=("boolean",)))))
    assert coerce_arguments(tool, {"value": "7"})["value"] == 7
    assert coerce_arguments(tool, {"value": "yes"})["value"] is True
    with pytest.raises(ToolError, match=r"must be of type integer.* or must be of type boolean"):
        coerce_arguments(tool, {"value": "perhaps"})


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(
        ToolError, match=r"unknown parameter 'valeu', did you mean 'value'\?; parameter 'value' is required"
    ):
        coerce_arguments(tool_of(STRINGS), {"valeu": "x"})


def test_a_default_replaces_a_missing_or_null_value() -> None:
    tool = tool_of(STRINGS, required=False, default="fallback")
    assert coerce_arguments(tool, {}) == {"value": "fallback"}
    assert coerce_arguments(tool, {"value": None}) == {"value": "fallback"}
    assert coerce_arguments(tool_of(STRINGS, required=False), {"value": None}) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
TYPES: st.SearchStrategy[JsonType] = st.sampled_from(
    ["string", "integer", "number", "boolean", "array", "object", "null"]
)


@given(value=JSON, types=st.lists(TYPES, unique=True, max_size=3))
def test_any_value_is_accepted_or_refused_and_accepting_is_stable(value: JsonValue, types: list[JsonType]) -> None:
    tool = tool_of(ParameterSchema(types=tuple(types)), required=False)
    try:
        once = coerce_arguments(tool, {"value": value})
    except ToolError:
        return
    assert coerce_arguments(tool, once) == once


def test_a_text_that_is_a_list_nested_too_deeply_is_refused() -> None:
    schema = ParameterSchema(types=("array",))
    with pytest.raises(ToolError, match="Invalid arguments"):
        coerce_arguments(
            Tool(name="t", description="d", parameters=(Parameter(name="p", schema=schema),)), {"p": "[" * 20_000}
        )
