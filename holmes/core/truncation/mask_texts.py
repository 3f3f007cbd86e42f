"""Writes the text of a mask: the call, and the size, beginning and id of its result.

A fingerprint is a single line. A preview also shows the important parts of the result, and a path also shows its first
characters. If the result is already a pointer or was cut, the mask describes the original result as far as the message
shows it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from holmes.core.tools_utils.pointers import Pointer
from holmes.previews import structured_preview
from holmes.previews.excerpts import count_lines
from holmes.tokens import utf8_bytes
from holmes.values.expressions import expression
from holmes.values.messages import AssistantMessage, Image, Text, ToolMessage
from holmes.values.texts import before_placeholder, shortened
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.policy import ContextPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message, StoredResult, ToolCall

_CUT_CHARACTERS = 80
_LOOKED_AT_CHARACTERS = 65_536
_NUMBERED_FIRST_LINE = expression(r"^(?:\[[^\]\n]*\] )?1\| ([^\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """The properties of a result that its mask shows.

    `call` describes the call for the model. An unknown number of `lines` is None, and an unknown `first_line` is empty.
    """

    call: str
    size_bytes: int
    lines: int | None
    pictures: int
    first_line: str

    @property
    def amount(self) -> str:
        """The size of the result, for example `42 lines, 1.2 KB` or `1 image, 34.5 KB`."""
        shown = [size_text(self.size_bytes)]
        if self.pictures:
            shown.insert(0, _counted(self.pictures, "image"))
        if self.lines is not None and (self.lines or not self.pictures):
            shown.insert(0, _counted(self.lines, "line"))
        return ", ".join(shown)


def calls_of_results(messages: Sequence[Message]) -> dict[int, ToolCall]:
    """Return the call of each result, by the position of the result. Results without a call are omitted."""
    found: dict[int, ToolCall] = {}
    waiting: dict[str, ToolCall] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            waiting = {call.id: call for call in reversed(message.tool_calls)}
        elif isinstance(message, ToolMessage) and message.call_id in waiting:
            found[position] = waiting[message.call_id]
    return found


def describe_result(message: ToolMessage, call: ToolCall | None) -> ResultFacts:
    """Describe the result in `message` as the tool returned it."""
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


def _beginning_of_output(message: ToolMessage) -> str:
    """Return the text of `message`. For a pointer, return the error or the preview that it contains."""
    text = output_text(message)
    if not message.spilled:
        return text
    pointer = Pointer.parse(text)
    return pointer.error or pointer.preview


def size_text(size_bytes: int) -> str:
    """Format a size, for example as `512 B`, `1.2 KB` or `3.4 MB`. A KB has 1,024 bytes."""
    if size_bytes < 1_024:
        return f"{size_bytes} B"
    if round(size_bytes / 1_024, 1) < 1_024:
        return f"{size_bytes / 1_024:.1f} KB"
    return f"{size_bytes / 1_048_576:.1f} MB"


def cut(text: str) -> str:
    """Shorten `text` to one line of at most 80 characters."""
    return shortened(" ".join(shortened(text, 8 * _CUT_CHARACTERS, mark="").split()), _CUT_CHARACTERS)


def _facts_of_pointer(facts: ResultFacts, text: str) -> ResultFacts:
    """Describe the result that a pointer replaces. `first_line` is the first line of the error or of the preview."""
    pointer = Pointer.parse(text)
    first_line = facts.first_line  # for an error result, the error precedes the pointer
    if not pointer.error:
        numbered = _NUMBERED_FIRST_LINE.search(pointer.preview)
        first_line = _first_line(numbered[1] if numbered else pointer.preview)
    return _replaced_lines(facts, pointer.lines, first_line)


def _replaced_lines(facts: ResultFacts, lines: int | None, first_line: str) -> ResultFacts:
    return ResultFacts(
        call=facts.call, size_bytes=facts.size_bytes, lines=lines, pictures=facts.pictures, first_line=first_line
    )


def _arguments(call: ToolCall | None) -> str:
    """Format the arguments of a call, for example as `kind: pods, namespace: shop`, in at most 80 characters."""
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
    return value[: 8 * _CUT_CHARACTERS] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _first_line(text: str) -> str:
    head = text[:_LOOKED_AT_CHARACTERS].lstrip()
    return cut(head.partition("\n")[0])


def _is_picture(media_type: str) -> bool:
    return media_type.startswith("image/")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _fingerprint_text(facts: ResultFacts, stored: tuple[StoredResult, ...]) -> str:
    """Return a mask on one line.

    An example is `[Tool output cleared — get(kind: pods) returned 2 lines, 1.2 KB — "NAME"; full output: 1f2e3d]`.
    """
    first_line = f' — "{facts.first_line}"' if facts.first_line else ""
    where = ", ".join(result.id for result in stored)
    return f"[Tool output cleared — {facts.call} returned {facts.amount}{first_line}; full output: {where}]"


_SMALLEST_PREVIEW_TOKENS = 16


def _preview_text(
    facts: ResultFacts, stored: tuple[StoredResult, ...], text: str, cap_tokens: int, counter: TokenCounter
) -> str:
    """Return a line about the call and the stored result, followed by a preview of `text` within `cap_tokens`."""
    where = ", ".join(result.id if result.path is None else f"{result.id} (file {result.path})" for result in stored)
    line = f"[Tool output moved to the store — {facts.call} returned {facts.amount}; full output: {where}]"
    if not text.strip() or cap_tokens < _SMALLEST_PREVIEW_TOKENS:
        return line
    preview = structured_preview(text, cap_tokens, counter)
    return f"{line}\nPreview, {preview.shown}:\n{preview.text}" if preview.text else line


_SHOWN_CHARACTERS = 500


def _path_text(facts: ResultFacts, stored: tuple[StoredResult, ...], output: str) -> str:
    """Return the paths of the stored result and the first 500 characters of `output`.

    If the store does not use files, the text contains result ids. The tools for stored results accept both paths and
    ids.
    """
    where = ", ".join(result.path or result.id for result in stored)
    line = f"[Tool output moved to {where} — {facts.call} returned {facts.amount}"
    if not output.strip():
        return f"{line}]"
    rest = "[...]" if len(output) > _SHOWN_CHARACTERS else ""
    return f"{line}; it begins:]\n{output[: before_placeholder(output, _SHOWN_CHARACTERS)]}{rest}"


_MASK = expression(r"\[Tool output (?:cleared — |moved to )[^\n]{1,4000}")


def masked_message(
    message: ToolMessage,
    call: ToolCall | None,
    stored: tuple[StoredResult, ...],
    policy: ContextPolicy,
    counter: TokenCounter,
) -> ToolMessage:
    """Replace the text and the images of `message` with the policy's mask, which refers to `stored`."""
    text = _mask_text(message, call, stored, policy, counter)
    return replace(message, parts=(Text(text=text),), stored=stored, masked=True)


def fingerprinted(message: ToolMessage, call: ToolCall | None) -> ToolMessage:
    """Replace a stored result with a fingerprint, under any policy."""
    text = _fingerprint_text(describe_result(message, call), message.stored)
    return replace(message, parts=(Text(text=text),), masked=True)


def looks_masked(text: str) -> bool:
    """Return whether `text` is a mask, for conversation formats without a field for masks."""
    return _MASK.match(text) is not None


def preview_cap_tokens(policy: ContextPolicy) -> int:
    """Return the cap of a preview.

    The cap is the preview's share of the maximum size of an unmasked result, but at most the limit for previews.
    """
    share = int(policy.masking.max_tool_message_tokens * policy.spill.preview_share)
    return min(share, policy.spill.preview_max_tokens)


def _mask_text(
    message: ToolMessage,
    call: ToolCall | None,
    stored: tuple[StoredResult, ...],
    policy: ContextPolicy,
    counter: TokenCounter,
) -> str:
    facts = describe_result(message, call)
    match policy.masking.kind:
        case "fingerprint":
            return _fingerprint_text(facts, stored)
        case "path":
            return _path_text(facts, stored, _beginning_of_output(message))
        case "preview":
            return _preview_text(facts, stored, output_text(message), preview_cap_tokens(policy), counter)
        case _:
            assert_never(policy.masking.kind)
