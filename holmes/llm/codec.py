"""Converts messages and tools to the OpenAI wire format that litellm accepts.

The encoding of a message depends only on that message. An earlier message is always encoded to the same bytes, so the
provider's prompt cache stays valid. Tool messages can contain only text. A user message after the results of a turn
contains the images of these results. Reasoning is sent back unchanged, and only to the provider that created it. This
module never shortens or drops content.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from holmes.values.messages import (
    AssistantMessage,
    Image,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
    joined_text,
)
from holmes.values.texts import whole_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message, Part
    from holmes.values.tools import Tool

Wire: TypeAlias = dict[str, Any]

_IMAGES_HEADER = "Images of the tool results above:"


class MessageCodec:
    """Encodes conversations for one provider. Caches the encoded messages of the last request."""

    def __init__(self, *, provider: str, vision: bool) -> None:
        self._provider = provider
        self._vision = vision
        self._encoded: dict[int, tuple[Message, Wire]] = {}
        self._tools: tuple[tuple[Tool, ...], list[Wire]] = ((), [])

    def encode(self, messages: Sequence[Message]) -> list[Wire]:
        """Encode the messages. Returns a copy, because litellm modifies its input."""
        wire: list[Wire] = []
        round_results: list[ToolMessage] = []
        encoded: dict[int, tuple[Message, Wire]] = {}
        for message in messages:
            if isinstance(message, ToolMessage):
                round_results.append(message)
            else:
                wire += self._images_of(round_results)
                round_results = []
            entry = self._encoded.get(id(message)) or (message, _whole(self._encode_message(message)))
            encoded[id(message)] = entry
            wire.append(_copied(entry[1]))
        wire += self._images_of(round_results)
        self._encoded = encoded
        return wire

    def encode_tools(self, tools: tuple[Tool, ...]) -> list[Wire]:
        """Encode the tools in the given order. Returns a copy, because litellm modifies its input."""
        if self._tools[0] is not tools:
            self._tools = (tools, [_encode_tool(tool) for tool in tools])
        return [_copied(tool) for tool in self._tools[1]]

    def _encode_message(self, message: Message) -> Wire:
        match message:
            case SystemMessage():
                return {"role": "system", "content": message.text}
            case UserMessage():
                return {"role": "user", "content": self._content(message.parts)}
            case AssistantMessage():
                return self._encode_assistant(message)
            case ToolMessage():
                return self._encode_result(message)
            case _:
                assert_never(message)

    def _encode_assistant(self, message: AssistantMessage) -> Wire:
        wire: Wire = {"role": "assistant", "content": message.text or None}
        for reasoning in message.reasoning:
            if reasoning.provider == self._provider:
                wire.update(json.loads(reasoning.payload))
        if message.tool_calls:
            wire["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        elif not message.text:
            wire["content"] = "(empty reply)"  # several providers reject an assistant message without content
        return wire

    def _encode_result(self, message: ToolMessage) -> Wire:
        text = message.text
        if not self._vision:
            notes = [_image_note(part) for part in message.parts if isinstance(part, Image)]
            text = "\n".join([text, *notes] if text else notes)
        return {"role": "tool", "tool_call_id": message.call_id, "name": message.tool_name, "content": text}

    def _images_of(self, results: list[ToolMessage]) -> list[Wire]:
        """Return the images of a turn as a list with one user message. The list is empty if the turn has no images."""
        if not self._vision:
            return []
        parts: list[Part] = []
        for result in results:
            images = [part for part in result.parts if isinstance(part, Image)]
            if images:
                parts += [Text(text=f"{result.tool_name} (call {result.call_id}):"), *images]
        if not parts:
            return []
        return [{"role": "user", "content": self._content((Text(text=_IMAGES_HEADER), *parts))}]

    def _content(self, parts: tuple[Part, ...]) -> str | list[Wire]:
        if not self._vision:
            parts = tuple(Text(text=_image_note(part)) if isinstance(part, Image) else part for part in parts)
        if all(isinstance(part, Text) for part in parts):
            return joined_text(parts)
        return [_encode_part(part) for part in parts]


def _encode_part(part: Part) -> Wire:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": _data_url(part)}}
        case _:
            assert_never(part)


@lru_cache(maxsize=8)
def _data_url(image: Image) -> str:
    """Encode an image as a data URL. The URL is cached, because the image is large and part of every later request."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"


def _encode_tool(tool: Tool) -> Wire:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema()}
    return {"type": "function", "function": function}


def _image_note(image: Image) -> str:
    return f"[An image ({image.media_type}, {len(image.data) / 1024:.1f} KB) that this model cannot see]"


def _whole(value: Any) -> Any:  # noqa: ANN401  accepts and returns any JSON
    """Return `value` without unpaired surrogates, because a request cannot contain them."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return whole_characters(value) if isinstance(value, str) else value


def _copied(value: Any) -> Any:  # noqa: ANN401  accepts and returns any JSON
    """Copy nested dicts and lists. The copy shares the strings with `value`."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
