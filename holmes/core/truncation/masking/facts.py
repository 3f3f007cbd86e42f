"""What a mask says about the result it stands for: the call, how much it was, how it began.

A result that was spilled or cut before is described as it was returned, as far as the message still tells. Pure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.excerpts import count_lines
from holmes.tokens import utf8_bytes
from holmes.values.messages import AssistantMessage, Image, ToolMessage
from holmes.values.texts import shortened
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message, ToolCall

CUT_CHARACTERS = 80
_LOOKED_AT_CHARACTERS = 65_536
_POINTER_SIZE = re.compile(r"[\d,]+ bytes, ([\d,]+) lines?\b")
_POINTER_PREVIEW = re.compile(r"^(?:Preview\b[^\n]*|The whole text):\n", re.MULTILINE)
_NUMBERED_FIRST_LINE = re.compile(r"^(?:\[[^\]\n]*\] )?1\| ([^\n]*)", re.MULTILINE)
_POINTER_STARTS = ("Too large ", "[Too large ", "[stored: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """`call` as people write it. `lines` is None where it is not known; `first_line` is empty where there is none."""

    call: str
    size_bytes: int
    lines: int | None
    pictures: int
    first_line: str

    @property
    def amount(self) -> str:
        """`42 lines, 1.2 KB`, `1 picture, 34.5 KB`."""
        shown = [size_text(self.size_bytes)]
        if self.pictures:
            shown.insert(0, _counted(self.pictures, "picture"))
        if self.lines is not None and (self.lines or not self.pictures):
            shown.insert(0, _counted(self.lines, "line"))
        return ", ".join(shown)


def calls_of_results(messages: Sequence[Message]) -> dict[int, ToolCall]:
    """The call of each result, by the position of the result. A result that nobody called for is left out."""
    found: dict[int, ToolCall] = {}
    waiting: dict[str, ToolCall] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            waiting = {call.id: call for call in reversed(message.tool_calls)}
        elif isinstance(message, ToolMessage) and message.call_id in waiting:
            found[position] = waiting[message.call_id]
    return found


def describe_result(message: ToolMessage, call: ToolCall | None) -> ResultFacts:
    """The facts of `message` as the tool returned it."""
    text = output_text(message)
    pictures = sum(isinstance(part, Image) for part in message.parts)
    picture_bytes = sum(len(part.data) for part in message.parts if isinstance(part, Image))
    stored_text_bytes = sum(item.size_bytes for item in message.stored if not _is_picture(item.media_type))
    text_bytes = utf8_bytes(text)
    facts = ResultFacts(
        call=f"{message.tool_name}({_arguments(call)})",
        size_bytes=sum(item.size_bytes for item in message.stored) or text_bytes + picture_bytes,
        lines=count_lines(text),
        pictures=pictures or sum(_is_picture(item.media_type) for item in message.stored),
        first_line=_first_line(text),
    )
    if message.spilled:
        return _facts_of_pointer(facts, text)
    if message.stored and stored_text_bytes != text_bytes:
        return _replaced_lines(facts, None, facts.first_line)
    return facts


def beginning_of_output(message: ToolMessage) -> str:
    """How the output of `message` begins: all that it shows of it, or the preview in its pointer."""
    text = output_text(message)
    return _preview_in(text) if message.spilled and text.startswith(_POINTER_STARTS) else text


def size_text(size_bytes: int) -> str:
    """`512 B`, `1.2 KB`, `3.4 MB`; 1 KB is 1,024 bytes."""
    if size_bytes < 1_024:
        return f"{size_bytes} B"
    if round(size_bytes / 1_024, 1) < 1_024:
        return f"{size_bytes / 1_024:.1f} KB"
    return f"{size_bytes / 1_048_576:.1f} MB"


def cut(text: str) -> str:
    """`text` on one line of at most 80 characters."""
    return shortened(" ".join(shortened(text, 8 * CUT_CHARACTERS, mark="").split()), CUT_CHARACTERS)


def _facts_of_pointer(facts: ResultFacts, text: str) -> ResultFacts:
    """What a pointer (T8) tells of the output it stands for; without its first line, what its preview says first."""
    size = _POINTER_SIZE.search(text)
    first_line = facts.first_line  # of an error, which stays in front of its pointer (T11)
    if text.startswith(_POINTER_STARTS):
        shown = _preview_in(text)
        numbered = _NUMBERED_FIRST_LINE.search(shown)
        first_line = _first_line(numbered[1] if numbered else shown)
    return _replaced_lines(facts, int(size[1].replace(",", "")) if size else None, first_line)


def _preview_in(pointer: str) -> str:
    preview = _POINTER_PREVIEW.search(pointer)
    return pointer[preview.end() : preview.end() + _LOOKED_AT_CHARACTERS] if preview else ""


def _replaced_lines(facts: ResultFacts, lines: int | None, first_line: str) -> ResultFacts:
    return ResultFacts(
        call=facts.call, size_bytes=facts.size_bytes, lines=lines, pictures=facts.pictures, first_line=first_line
    )


def _arguments(call: ToolCall | None) -> str:
    """`kind: pods, namespace: shop`, at most 80 characters."""
    if call is None:
        return ""
    try:
        parsed = json.loads(call.arguments)
    except ValueError:
        return cut(call.arguments)
    if not isinstance(parsed, dict):
        return cut(call.arguments)
    return cut(", ".join(f"{name}: {_argument(value)}" for name, value in parsed.items()))


def _argument(value: object) -> str:
    return value[: 8 * CUT_CHARACTERS] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _first_line(text: str) -> str:
    """The first line that is not blank."""
    head = text[:_LOOKED_AT_CHARACTERS].lstrip()
    return cut(head.partition("\n")[0])


def _is_picture(media_type: str) -> bool:
    return media_type.startswith("image/")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
