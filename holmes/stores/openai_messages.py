"""Converts messages to and from OpenAI's chat format, for files from other programs.

Unsupported content (audio, files, images by URL) is converted to its JSON text. An invalid message raises a
`ValueError` that identifies the key.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from holmes.core.truncation.mask_texts import looks_masked
from holmes.values.messages import (
    AssistantMessage,
    Image,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    joined_text,
)

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, Part

_ROLES = "system, developer, user, assistant, tool"


class Decoder:
    """Decodes messages in order, so that the tool name of a result can be read from its call."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def decode(self, raw: object) -> Message:
        """Decode one message. Raises `ValueError` if it is not valid."""
        fields = _object(raw, "a message")
        match fields.get("role"):
            case "system" | "developer":
                return SystemMessage(text=joined_text(_parts(fields)))
            case "user":
                return UserMessage(parts=_parts(fields))
            case "assistant":
                return self._assistant(fields)
            case "tool":
                return self._result(fields)
            case None:
                raise ValueError("'role' is missing")
            case role:
                raise ValueError(f"unknown 'role' {role!r}; valid roles: {_ROLES}")

    def _assistant(self, fields: Mapping[str, object]) -> AssistantMessage:
        raw_calls = fields.get("tool_calls") or ()
        if not isinstance(raw_calls, list | tuple):
            raise ValueError("'tool_calls' is not a list")  # noqa: TRY004  callers catch only `ValueError`
        calls = tuple(_call(raw) for raw in raw_calls)
        self._names.update({call.id: call.name for call in calls})
        text = joined_text(_parts(fields)) if fields.get("content") is not None else ""
        return AssistantMessage(text=text, tool_calls=calls)

    def _result(self, fields: Mapping[str, object]) -> ToolMessage:
        call_id = _string(fields, "tool_call_id")
        name = fields.get("name")
        parts = _parts(fields)
        return ToolMessage(
            call_id=ToolCallId(call_id),
            tool_name=name if isinstance(name, str) and name else self._names.get(call_id, "tool"),
            status="success",
            parts=parts,
            masked=looks_masked(joined_text(parts)),
        )


def encoded(message: Message, original: JsonObject) -> JsonObject:
    """Convert `message`. Keeps unknown fields of `original`, the message that `message` replaces."""
    match message:
        case SystemMessage():
            return {"role": "system", **original, "content": message.text}
        case UserMessage():
            return {"role": "user", **original, "content": _content(message.parts)}
        case AssistantMessage():
            return _encoded_reply(message, original)
        case ToolMessage():
            return {**original, "role": "tool", "tool_call_id": message.call_id, "content": _content(message.parts)}
        case _:
            assert_never(message)


def _encoded_reply(message: AssistantMessage, original: JsonObject) -> JsonObject:
    calls: JsonValue = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return {**original, "role": "assistant", "content": message.text, **({"tool_calls": calls} if calls else {})}


def _content(parts: tuple[Part, ...]) -> JsonValue:
    """Return plain text for content without images, otherwise a list of parts."""
    if not any(isinstance(part, Image) for part in parts):
        return joined_text(parts)
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": _url(part)}
        for part in parts
    ]


def _url(image: Image) -> JsonObject:
    return {"url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"}


def _call(raw: object) -> ToolCall:
    call = _object(raw, "'tool_calls' entry")
    function = _object(call.get("function"), "'function' of 'tool_calls'")
    arguments = function.get("arguments", "{}")
    return ToolCall(
        id=ToolCallId(_string(call, "id")),
        name=_string(function, "name"),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
    )


def _parts(fields: Mapping[str, object]) -> tuple[Part, ...]:
    if "content" not in fields:
        raise ValueError("'content' is missing")
    content = fields["content"]
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        message = "'content' must be a string or a list of parts"
        raise ValueError(message)  # noqa: TRY004  callers catch only `ValueError`
    return tuple(_part(_object(part, "'content' entry")) for part in content)


def _part(part: Mapping[str, object]) -> Part:
    text = part.get("text")
    if isinstance(text, str):
        return Text(text=text)
    if part.get("type") == "image_url":
        url = part.get("image_url")
        image = _image(url.get("url") if isinstance(url, Mapping) else url)
        if image is not None:
            return image
    return Text(text=json.dumps(part, ensure_ascii=False))


def _image(url: object) -> Image | None:
    """Decode the image of a data URL. Returns None for other URLs."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    header, _, data = url.removeprefix("data:").partition(",")
    media_type, _, encoding = header.partition(";")
    if encoding != "base64":
        return None
    try:
        return Image(data=base64.b64decode(data, validate=True), media_type=media_type)
    except binascii.Error:
        return None


def _object(raw: object, what: str) -> Mapping[str, object]:
    if not isinstance(raw, Mapping):
        raise ValueError(f"{what} is not an object")  # noqa: TRY004  callers catch only `ValueError`
    return raw


def _string(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is None:
        raise ValueError(f"{name!r} is missing")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is not a string")  # noqa: TRY004  callers catch only `ValueError`
    return value
