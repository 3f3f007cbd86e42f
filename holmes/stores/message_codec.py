"""Converts messages to and from JSON, for files that people and programs read.

`holmes.llm` converts messages to provider formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Final, cast

from holmes.values.codec import Codec
from holmes.values.messages import AssistantMessage, Image, Message, SystemMessage, Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from dataclasses import Field

    from holmes.values.json_types import JsonObject
    from holmes.values.messages import StoredResult


def _is_default(field: Field[object], value: object) -> bool:
    return field.default is not MISSING and value == field.default and field.name != "kind"


_MESSAGES: Final = Codec(
    tags={
        SystemMessage: ("role", "system"),
        UserMessage: ("role", "user"),
        AssistantMessage: ("role", "assistant"),
        ToolMessage: ("role", "tool"),
        Text: ("type", "text"),
        Image: ("type", "image"),
    },
    renamed={(Image, "data"): "base64"},
    omits=_is_default,
)


def message_to_json(message: Message) -> JsonObject:
    """Return the message as JSON values, without fields that have their default values. Images are in base64."""
    return cast("JsonObject", _MESSAGES.encode(message))


def message_from_json(raw: object) -> Message:
    """Read a message that `message_to_json` wrote. Raises `ValueError`."""
    if isinstance(raw, Mapping) and isinstance(raw.get("spilled"), list):
        raw = {**raw, "stored": raw["spilled"], "spilled": bool(raw["spilled"])}  # the format of early versions
    return _MESSAGES.decode(cast("type[Message]", Message), raw)


def stored_result_to_json(stored: StoredResult) -> JsonObject:
    """Return the id, path, size and media type of a stored result as JSON values."""
    return cast("JsonObject", _MESSAGES.encode(stored))
