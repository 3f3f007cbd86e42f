"""Reads the plain-text transcript of a summary request back into messages. Called by `summary`.

The loop asks for a summary as text when the history itself is too large for a request
(`holmes.core.truncation.summary_request`); what its headings say decides which message a piece is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holmes.values.messages import AssistantMessage, Text, ToolCallId, ToolMessage, user_text

if TYPE_CHECKING:
    from holmes.values.messages import Message

_PARTS_BEFORE = re.compile(r"\ASummary of the parts before:\n(.*?)\n\nTranscript, part \d+ of \d+:\n\n", re.DOTALL)
_FIRST = re.compile(r"\ATranscript, part \d+ of \d+:\n\n")
_HEADING = re.compile(
    r"^## (instructions|assistant|result of ([\w.-]{1,120}) \(|user \((\w+))[^\n]{0,300}$", re.MULTILINE
)


def messages_of_transcript(text: str) -> tuple[Message, ...]:
    """The messages of a transcript; a text that is none is one request."""
    before = _PARTS_BEFORE.match(text)
    start = before or _FIRST.match(text)
    body = text[start.end() :] if start is not None else text
    found: list[Message] = [user_text(before[1], kind="summary")] if before is not None else []
    headings = list(_HEADING.finditer(body))
    if not headings:
        return (*found, user_text(body))
    ends = [*(match.start() for match in headings[1:]), len(body)]
    for match, end in zip(headings, ends, strict=True):
        message = _message(match, body[match.end() : end].strip("\n"))
        if message is not None:
            found.append(message)
    return tuple(found)


def _message(heading: re.Match[str], text: str) -> Message | None:
    kind = heading[1]
    if kind == "instructions":
        return None
    if kind == "assistant":
        return AssistantMessage(text=text)
    if heading[2]:
        parts = (Text(text=heading[0]), Text(text=text))
        return ToolMessage(call_id=ToolCallId("transcript"), tool_name=heading[2], status="success", parts=parts)
    return user_text(text, kind="summary" if heading[3] == "summary" else "request")
