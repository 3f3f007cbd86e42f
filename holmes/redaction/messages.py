"""Masks the secrets of messages as they join the conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.redaction.redactor import redact_off_loop
from holmes.values.messages import Text, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.redaction.redactor import Redactor
    from holmes.values.messages import Message, Part


async def redact_message_off_loop(redactor: Redactor, message: Message) -> Message:
    """`message` without secrets, however long it is; the same object when it has none.

    Only what users, attachments and tools say is read; the instructions and the model's own words stay as they are.
    """
    if not isinstance(message, UserMessage | ToolMessage):
        return message
    parts = [
        _redacted(part, await redact_off_loop(redactor, part.text)) if isinstance(part, Text) else part
        for part in message.parts
    ]
    return _with_parts(message, tuple(parts))


async def redacted_requests(redactor: Redactor | None, messages: Sequence[Message]) -> Sequence[Message]:
    """`messages`, those of users without secrets; the same objects where there are none, or without a redactor."""
    if redactor is None:
        return messages
    return [
        await redact_message_off_loop(redactor, message) if isinstance(message, UserMessage) else message
        for message in messages
    ]


def _redacted(part: Text, text: str) -> Text:
    return part if text is part.text else Text(text=text)


def _with_parts(message: UserMessage | ToolMessage, parts: tuple[Part, ...]) -> Message:
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)
