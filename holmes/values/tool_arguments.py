"""Converts a model's arguments to the types of a tool's schema.

Small models write `"5"` for 5, `"true"` for true, a single value for a list, or the JSON of an object as a string.
Unambiguous values are converted. For all other values, an error helps the model to correct the call.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

from holmes.values.errors import ToolError
from holmes.values.texts import shortened
from holmes.values.tools import ParameterSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.tools import JsonType, Parameter, Tool


class _Mismatch(ValueError):
    """The value does not match the schema. The message states the expected type or values."""


def coerce_arguments(tool: Tool, arguments: JsonObject) -> dict[str, JsonValue]:
    """Return the converted arguments for `tool`, including defaults, in the order of the declaration.

    Raises one `ToolError` that lists all missing parameters, unknown parameters and invalid values.
    """
    problems: list[str] = []
    known = {parameter.name for parameter in tool.parameters}
    problems += [_unknown_parameter(name, known) for name in arguments if name not in known]
    coerced = _coerce_properties(tool.parameters, arguments, problems)
    if problems:
        message = f"Invalid arguments for {tool.name!r}: {'; '.join(problems)}."
        raise ToolError(message)
    return coerced


def text_argument(arguments: JsonObject, name: str) -> str:
    """Return the argument without surrounding spaces, or an empty string if it is missing or not a string."""
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) else ""


def _unknown_parameter(name: str, known: set[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f", did you mean {nearest[0]!r}?" if nearest else f" (available: {', '.join(sorted(known)) or 'none'})"
    return f"unknown parameter {name!r}{hint}"


def _coerce_properties(
    parameters: tuple[Parameter, ...], arguments: JsonObject, problems: list[str]
) -> dict[str, JsonValue]:
    coerced: dict[str, JsonValue] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None and not _takes_null(parameter, arguments):
            if parameter.required and parameter.default is None:
                problems.append(f"parameter {parameter.name!r} is required")
            elif parameter.default is not None:
                coerced[parameter.name] = parameter.default
            continue
        try:
            coerced[parameter.name] = _coerce(value, parameter.schema)
        except _Mismatch as mismatch:
            problems.append(f"parameter {parameter.name!r} {mismatch}")
    return coerced


def _takes_null(parameter: Parameter, arguments: JsonObject) -> bool:
    if "null" in parameter.schema.types:
        return True
    return parameter.name in arguments and any(_fits(None, option) for option in parameter.schema.any_of)


def _coerce(value: JsonValue, schema: ParameterSchema) -> JsonValue:
    if schema.any_of:
        return _first_that_fits(value, schema.any_of)
    coerced = _coerce_type(value, schema)
    return _match_enum(coerced, schema) if schema.enum else coerced


def _first_that_fits(value: JsonValue, options: tuple[ParameterSchema, ...]) -> JsonValue:
    reasons = []
    # A value that already matches one option is not converted for another: 5 stays 5 for string|integer.
    for option in sorted(options, key=lambda option: not _fits(value, option)):
        try:
            return _coerce(value, option)
        except _Mismatch as mismatch:
            reasons.append(str(mismatch))
    raise _Mismatch(" or ".join(reasons))


def _fits(value: JsonValue, schema: ParameterSchema) -> bool:
    """Return whether `value` matches `schema` without conversion."""
    if schema.any_of:
        return any(_fits(value, option) for option in schema.any_of)
    if schema.types and not any(_has_type(value, name) for name in schema.types):
        return False
    if schema.enum and not any(value == option and type(value) is type(option) for option in schema.enum):
        return False
    if isinstance(value, list | tuple) and schema.items is not None:
        return all(_fits(item, schema.items) for item in value)
    return not isinstance(value, dict) or _fits_properties(value, schema)


def _fits_properties(value: Mapping[str, JsonValue], schema: ParameterSchema) -> bool:
    known = {parameter.name for parameter in schema.properties}
    if any(parameter.required and parameter.name not in value for parameter in schema.properties):
        return False
    others, rule = [value[name] for name in value if name not in known], schema.additional_properties
    if isinstance(rule, bool) and not rule and others:
        return False
    if isinstance(rule, ParameterSchema) and not all(_fits(other, rule) for other in others):
        return False
    return all(_fits(value[each.name], each.schema) for each in schema.properties if each.name in value)


def _coerce_type(value: JsonValue, schema: ParameterSchema) -> JsonValue:
    if not schema.types:
        return value
    # A value that already has one of the types stays unchanged: "5" for string|integer stays a string.
    for name in schema.types:
        if _has_type(value, name):
            return _coerce_children(value, schema)
    for name in schema.types:
        try:
            return _coerce_children(_CONVERTERS[name](value), schema)
        except (_Mismatch, ValueError):
            continue
    expected = " or ".join(schema.types)
    message = f"must be of type {expected}, not {_shortened(value)}"
    raise _Mismatch(message)


def _coerce_children(value: JsonValue, schema: ParameterSchema) -> JsonValue:
    if isinstance(value, list | tuple) and schema.items is not None:
        return [_coerce(item, schema.items) for item in value]
    if isinstance(value, dict) and schema.properties:
        problems: list[str] = []
        coerced = {**value, **_coerce_properties(schema.properties, value, problems)}
        if problems:
            raise _Mismatch("is incomplete: " + "; ".join(problems))
        return coerced
    return value


def _match_enum(value: JsonValue, schema: ParameterSchema) -> JsonValue:
    if value in schema.enum:
        return value
    for option in schema.enum:
        if isinstance(value, str) and isinstance(option, str) and value.strip().lower() == option.lower():
            return option
    message = f"must be one of {', '.join(repr(option) for option in schema.enum)}, not {_shortened(value)}"
    raise _Mismatch(message)


def _has_type(value: JsonValue, name: JsonType) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    expected: dict[JsonType, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "array": (list, tuple),
        "object": dict,
        "null": type(None),
        "boolean": bool,
    }
    return isinstance(value, expected[name])


def _to_string(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    raise _Mismatch("must be of type string")


def _to_integer(value: JsonValue) -> JsonValue:
    number = _to_number(value)
    if isinstance(number, float) and not number.is_integer():
        raise _Mismatch("must be of type integer")
    return int(number)


def _to_number(value: JsonValue) -> int | float:
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    raise _Mismatch("must be of type number")


def _to_boolean(value: JsonValue) -> JsonValue:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    answer = words.get(str(value).strip().lower())
    if answer is None:
        raise _Mismatch("must be of type boolean")
    return answer


def _to_array(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and value.lstrip().startswith("["):
        return _parsed(value, list)
    return [value]


def _to_object(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _parsed(value, dict)
    raise _Mismatch("must be of type object")


def _to_null(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and value.strip().lower() in {"", "null", "none"}:
        return None
    raise _Mismatch("must be of type null")


def _parsed(text: str, expected: type) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except RecursionError as error:
        raise _Mismatch("is nested too deeply") from error
    if not isinstance(value, expected):
        raise _Mismatch(f"must be JSON of type {expected.__name__}")
    return value


_CONVERTERS: Mapping[JsonType, Callable[[JsonValue], JsonValue]] = {
    "string": _to_string,
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "array": _to_array,
    "object": _to_object,
    "null": _to_null,
}


def _shortened(value: JsonValue) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "a value that is nested too deeply"
    return shortened(text, 80, mark="...")
