"""Says what pydantic found in the words of a person. Used by `load` and `model_list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "missing": "is missing",
    "dict_type": "must be an object: keys and values",
    "model_type": "must be an object: keys and values",
    "model_attributes_type": "must be an object: keys and values",
    "tuple_type": "must be a list",
    "union_tag_not_found": "the key 'type' is missing",
}


def reason_of(error: ValidationError) -> str:
    """The first complaint as one clause, without the value: it may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if words := _WORDS.get(first["type"]):
        return words
    if first["type"] == "too_short" and isinstance(error.errors()[0]["input"], str):  # pydantic counts "items"
        return f"needs at least {error.errors()[0]['ctx']['min_length']} characters"
    if first["type"] == "union_tag_invalid":  # "Input tag 'x' found using 'type' does not match ... expected tags: ..."
        return f"the type must be one of {first['msg'].rpartition(': ')[2]}"
    message = first["msg"].removeprefix("Value error, ")
    return f"must be {message.removeprefix('Input should be ')}" if message.startswith("Input should be ") else message
