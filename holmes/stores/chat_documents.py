"""Reads conversations from files and writes them back in the same format.

A file contains a JSON list of messages, a JSON object with "messages", or a conversation that `--continue` can resume,
as JSON lines. The file that `holmes ask --json-output-file` writes is an object with "messages". Messages are in the
format of Holmes or OpenAI. Unchanged messages are written back verbatim, including unknown fields. An error message is
one line that identifies the message and the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.stores import openai_messages
from holmes.stores.conversation_store import is_conversation, read_lines
from holmes.stores.message_codec import message_from_json, message_to_json
from holmes.values.errors import ConfigError
from holmes.values.messages import ToolMessage

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message

_OPENAI_KEYS = frozenset({"content", "tool_call_id"})


class ChatDocument:
    """The messages of a file. `originals` are the same messages in the format of the file.

    `unread_bytes` is the number of bytes at the end of the file that cannot be read.
    """

    def __init__(
        self, messages: Sequence[Message], originals: Sequence[JsonObject], *, is_openai: bool, unread_bytes: int = 0
    ) -> None:
        self.unread_bytes = unread_bytes
        self.messages = tuple(messages)
        self._originals = tuple(originals)
        self._is_openai = is_openai
        self._by_message = {id(message): original for message, original in zip(messages, originals, strict=True)}
        named = (original for original in reversed(originals) if isinstance(original.get("tool_call_id"), str))
        self._by_call = {str(original["tool_call_id"]): original for original in named}

    def with_messages(self, messages: Sequence[Message]) -> ChatDocument:
        """Return a copy with `messages`, which replace the old messages in order. Unknown fields are kept."""
        originals = [
            original if new is old else self._encoded(new, original)
            for old, new, original in zip(self.messages, messages, self._originals, strict=True)
        ]
        return ChatDocument(messages, originals, is_openai=self._is_openai)

    def written(self, messages: Sequence[Message]) -> tuple[JsonObject, ...]:
        """Convert `messages` to the format of the file. Messages that came from the file are written back verbatim."""
        return tuple(self._written(message) for message in messages)

    def _written(self, message: Message) -> JsonObject:
        original = self._by_message.get(id(message))
        if original is not None:
            return original
        original = self._by_call.get(message.call_id) if isinstance(message, ToolMessage) else None
        return self._encoded(message, original or {})

    def _encoded(self, message: Message, original: JsonObject) -> JsonObject:
        return openai_messages.encoded(message, original) if self._is_openai else message_to_json(message)


def read_chat_document(text: str, name: str) -> ChatDocument:
    """Read the conversation in `text`. Raises `ConfigError` with a one-line message that starts with `name`."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ConfigError(f"{name} is empty; expected a JSON list of messages")
    lines = BytesIO(text.encode("utf-8", "surrogatepass"))
    if is_conversation(lines.readline()):
        lines.seek(0)
        kept = read_lines(lines, Path(name))
        originals = [message_to_json(message) for message in kept.messages]
        return ChatDocument(kept.messages, originals, is_openai=False, unread_bytes=len(kept.garbage))
    items = _message_list(text, name)
    is_openai = any(isinstance(item, Mapping) and not _OPENAI_KEYS.isdisjoint(item) for item in items)
    decoder = openai_messages.Decoder().decode if is_openai else message_from_json
    messages: list[Message] = []
    for number, item in enumerate(items, start=1):
        try:
            messages.append(decoder(item))
        except ValueError as error:
            raise ConfigError(f"{name}: message {number}: {error}") from error
    return ChatDocument(messages, [item for item in items if isinstance(item, Mapping)], is_openai=is_openai)


def _message_list(text: str, name: str) -> Sequence[JsonValue]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ConfigError(f"{name} is not valid JSON: {reason}") from error
    except (ValueError, RecursionError) as error:
        reason = "the JSON is nested too deeply, or a number is too long"
        raise ConfigError(f"{name} cannot be read as JSON: {reason}") from error
    items = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(items, list):
        found = "has no 'messages' list" if isinstance(document, dict) else "is not a conversation"
        raise ConfigError(f"{name} {found}; expected a list of messages, or an object with a 'messages' list")
    return items
