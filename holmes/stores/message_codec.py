"""Messages to JSON and back, for files that people and programs read. Used by the conversation store and the faces.

Not the wire of any provider (`holmes.llm` has that). `message_from_json(message_to_json(m)) == m` for every message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never, get_args

from holmes.values.messages import (
    AssistantMessage,
    CompactionMark,
    Image,
    Reasoning,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    ToolStatus,
    UserKind,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message, Part


def message_to_json(message: Message) -> JsonObject:
    """The message as JSON values. Fields that are empty are left out; pictures become base64."""
    match message:
        case SystemMessage():
            return {"role": "system", "text": message.text}
        case UserMessage():
            return _user_to_json(message)
        case AssistantMessage():
            return _assistant_to_json(message)
        case ToolMessage():
            return _tool_to_json(message)
        case _:
            assert_never(message)


def message_from_json(raw: object) -> Message:
    """The message that `message_to_json` wrote. Raises `ValueError` when it is none."""
    fields = _object(raw)
    match fields.get("role"):
        case "system":
            return SystemMessage(text=_string(fields, "text"))
        case "user":
            return UserMessage(
                parts=_parts_from_json(fields),
                kind=_user_kind(fields),
                mark=_mark_from_json(fields),
                stored=tuple(_stored_from_json(item) for item in _objects(fields, "stored")),
            )
        case "assistant":
            return AssistantMessage(
                text=_string(fields, "text"),
                tool_calls=tuple(_call_from_json(item) for item in _objects(fields, "tool_calls")),
                reasoning=tuple(
                    Reasoning(provider=_string(item, "provider"), payload=_string(item, "payload"))
                    for item in _objects(fields, "reasoning")
                ),
            )
        case "tool":
            return ToolMessage(
                call_id=ToolCallId(_string(fields, "call_id")),
                tool_name=_string(fields, "tool_name"),
                status=_status(fields),
                parts=_parts_from_json(fields),
                stored=tuple(_stored_from_json(item) for item in _objects(fields, _stored_key(fields))),
                spilled=bool(fields.get("spilled")),
                masked=fields.get("masked") is True,
            )
        case role:
            message = f"unknown role {role!r}"
            raise ValueError(message)


def stored_result_to_json(stored: StoredResult) -> JsonObject:
    """Where a stored result lies."""
    return {
        "id": stored.id,
        "path": stored.path,
        "size_bytes": stored.size_bytes,
        "media_type": stored.media_type,
    }


def _stored_key(fields: Mapping[str, object]) -> str:
    """Where a result's stored copies stand: conversations of earlier builds have them below `spilled`."""
    return "spilled" if isinstance(fields.get("spilled"), list) else "stored"


def _user_to_json(message: UserMessage) -> JsonObject:
    encoded: dict[str, JsonValue] = {"role": "user", "kind": message.kind, "parts": _parts_to_json(message.parts)}
    if message.mark is not None:
        encoded["mark"] = {"kept_rounds": message.mark.kept_rounds, "tokens": message.mark.tokens}
    if message.stored:
        encoded["stored"] = [stored_result_to_json(stored) for stored in message.stored]
    return encoded


def _mark_from_json(fields: Mapping[str, object]) -> CompactionMark | None:
    if "mark" not in fields:
        return None
    mark = _object(fields["mark"])
    return CompactionMark(kept_rounds=_integer(mark, "kept_rounds"), tokens=_integer(mark, "tokens"))


def _assistant_to_json(message: AssistantMessage) -> JsonObject:
    encoded: dict[str, JsonValue] = {"role": "assistant", "text": message.text}
    if message.tool_calls:
        encoded["tool_calls"] = [_call_to_json(call) for call in message.tool_calls]
    if message.reasoning:
        encoded["reasoning"] = [{"provider": item.provider, "payload": item.payload} for item in message.reasoning]
    return encoded


def _tool_to_json(message: ToolMessage) -> JsonObject:
    encoded: dict[str, JsonValue] = {
        "role": "tool",
        "call_id": message.call_id,
        "tool_name": message.tool_name,
        "status": message.status,
        "parts": _parts_to_json(message.parts),
    }
    if message.stored:
        encoded["stored"] = [stored_result_to_json(stored) for stored in message.stored]
    if message.spilled:
        encoded["spilled"] = True
    if message.masked:
        encoded["masked"] = True
    return encoded


def _call_to_json(call: ToolCall) -> JsonObject:
    encoded: dict[str, JsonValue] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.malformed is not None:
        encoded["malformed"] = call.malformed
    return encoded


def _call_from_json(fields: Mapping[str, object]) -> ToolCall:
    return ToolCall(
        id=ToolCallId(_string(fields, "id")),
        name=_string(fields, "name"),
        arguments=_string(fields, "arguments"),
        malformed=_string(fields, "malformed") if "malformed" in fields else None,
    )


def _stored_from_json(fields: Mapping[str, object]) -> StoredResult:
    return StoredResult(
        id=ResultId(_string(fields, "id")),
        path=_string(fields, "path") if fields.get("path") is not None else None,
        size_bytes=_integer(fields, "size_bytes"),
        media_type=_string(fields, "media_type"),
    )


def _parts_to_json(parts: tuple[Part, ...]) -> Sequence[JsonValue]:
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image", "media_type": part.media_type, "base64": base64.b64encode(part.data).decode("ascii")}
        for part in parts
    ]


def _parts_from_json(fields: Mapping[str, object]) -> tuple[Part, ...]:
    return tuple(_part_from_json(item) for item in _objects(fields, "parts"))


def _part_from_json(fields: Mapping[str, object]) -> Part:
    if fields.get("type") == "text":
        return Text(text=_string(fields, "text"))
    try:
        data = base64.b64decode(_string(fields, "base64"), validate=True)
    except binascii.Error as error:
        message = f"a picture is not base64: {error}"
        raise ValueError(message) from None
    return Image(data=data, media_type=_string(fields, "media_type"))


def _user_kind(fields: Mapping[str, object]) -> UserKind:
    for kind in get_args(UserKind):
        if fields.get("kind") == kind:
            return kind  # type: ignore[no-any-return]  # get_args forgets the type
    message = f"unknown kind {fields.get('kind')!r}"
    raise ValueError(message)


def _status(fields: Mapping[str, object]) -> ToolStatus:
    for status in get_args(ToolStatus):
        if fields.get("status") == status:
            return status  # type: ignore[no-any-return]  # get_args forgets the type
    message = f"unknown status {fields.get('status')!r}"
    raise ValueError(message)


def _object(raw: object) -> Mapping[str, object]:
    if not isinstance(raw, Mapping):
        message = f"an object is expected, not {type(raw).__name__}"
        raise ValueError(message)  # noqa: TRY004  callers handle one error
    return raw


def _objects(fields: Mapping[str, object], name: str) -> tuple[Mapping[str, object], ...]:
    items = fields.get(name, ())
    if not isinstance(items, (list, tuple)):
        message = f"{name!r} is not a list"
        raise ValueError(message)  # noqa: TRY004  callers handle one error
    return tuple(_object(item) for item in items)


def _string(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        message = f"{name!r} is not text"
        raise ValueError(message)  # noqa: TRY004  callers handle one error
    return value


def _integer(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int):
        message = f"{name!r} is not a number"
        raise ValueError(message)  # noqa: TRY004  callers handle one error
    return value
