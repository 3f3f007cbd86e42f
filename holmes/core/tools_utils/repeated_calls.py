"""Replaces the result of a repeated call with "unchanged since step 7" or a diff, if this is shorter.

The repeated call still runs, so polling works. The short text refers only to results that the model can still see, and
is always smaller than the result. Errors and small results are never replaced. The short text contains the id of the
complete stored result.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.tools_utils.output_changes import output_change
from holmes.previews.excerpts import count_lines
from holmes.values.expressions import expression
from holmes.values.messages import Image, Text, ToolMessage
from holmes.values.on_demand import called
from holmes.values.tools import RESULT_TOOLS, label_of, output_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.tokens import TokenCounter
    from holmes.values.messages import Message, ToolCall

_SMALLEST_ANSWERED_TOKENS = 60
_DIFF_SHARE = 1 / 3
_SMALLEST_CHARACTERS = 80
ANSWERED = expression(r"(?:Unchanged|Changed) since step \d+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierResult:
    """The last result of a call. The conversation contains this result in full or as a pointer.

    `latest` is the most recent short text about this result, or None. `latest_step` is the step of this short text.
    """

    message: ToolMessage
    step: int
    latest: ToolMessage | None = None
    latest_step: int = 0


async def answer_repeated(
    earlier: EarlierResult, call: ToolCall, message: ToolMessage, history: Sequence[Message], counter: TokenCounter
) -> ToolMessage:
    """Return `message`, or a shorter text that refers to an earlier result of `call`, if `history` still shows it.

    The short text keeps the call id, the status and the stored results of `message`.
    """
    if message.masked or message.status != earlier.message.status:
        return message
    if len(output_text(message)) < _SMALLEST_CHARACTERS and not _pictures(message):
        return message
    if not _shows(history, earlier.message):
        return message
    if earlier.latest is not None and not _shows(history, earlier.latest):
        earlier = replace(earlier, latest=None)
    return await asyncio.to_thread(_answer, earlier, message, _read_id(call), counter)


def _answer(earlier: EarlierResult, message: ToolMessage, read_id: str | None, counter: TokenCounter) -> ToolMessage:
    size = counter.count_message(message)
    if size < _SMALLEST_ANSWERED_TOKENS:
        return message
    text, limit_tokens = _unchanged_text(earlier, message), size - 1
    if text is None and message.stored and not _stands_for_other(earlier.message, message):
        text, limit_tokens = _changed_text(earlier, message), int(size * _DIFF_SHARE)
    if text is None:
        return message
    answered = _with_text(message, text, _ids(message) or _ids(earlier.message), read_id)
    return answered if counter.count_message(answered) <= limit_tokens else message


def _unchanged_text(earlier: EarlierResult, message: ToolMessage) -> str | None:
    """Return the text for an unchanged result, or None if the result changed.

    A result is unchanged if an earlier result, alone or with a diff, shows the content of `message`.
    """
    if _same(earlier.message, message):
        if message.spilled:
            return f"Unchanged since step {earlier.step}: same as result {message.stored[0].id}."
        return f"Unchanged since step {earlier.step} ({_lines(message)})."
    if earlier.latest is not None and message.stored and _ids(earlier.latest) == _ids(message):
        return f"Unchanged since step {earlier.latest_step} ({_lines(message)})."
    return None


def _changed_text(earlier: EarlierResult, message: ToolMessage) -> str | None:
    """Return the short text with the changes since the earlier result, or None if the comparison takes too long.

    Omits lines in which only ages increased.
    """
    change = output_change(output_text(earlier.message), output_text(message))
    if change is None:
        return None
    if not change.diff:
        return f"Unchanged since step {earlier.step} except {change.left_out} ({_lines(message)})."
    left_out = f"; {change.left_out} left out" if change.left_out else ""
    size = f"{change.changed_lines:,} of {_lines(message)}"
    return f"Changed since step {earlier.step} ({size}{left_out}):\n{change.diff}"


def _with_text(message: ToolMessage, text: str, ids: tuple[str, ...], read_id: str | None) -> ToolMessage:
    """Return `message` with `text` and the ids of the stored result in place of its result.

    `read_id` is the id of the stored result that the call read, or None if the call did not read a stored result.
    """
    label = label_of(message)
    if label is None and ids:
        text = f"{text}\nThe full result is stored as {', '.join(ids)}."
    elif read_id is not None:
        text = f"{text}\nThe text is a part of result {read_id}."
    parts = (Text(text=text),) if label is None else (Text(text=text), Text(text=label))
    return replace(message, parts=parts, spilled=bool(message.stored))


def _same(one: ToolMessage, other: ToolMessage) -> bool:
    """Return whether two results have the same content. Pointers are equal if they refer to the same stored bytes."""
    if one.spilled or other.spilled:
        return one.spilled == other.spilled and bool(other.stored) and _ids(one) == _ids(other)
    return output_text(one) == output_text(other) and _pictures(one) == _pictures(other)


def _stands_for_other(one: ToolMessage, other: ToolMessage) -> bool:
    """Return whether the text of either result is incomplete, which makes a comparison of the texts meaningless."""
    return one.spilled or other.spilled or bool(_pictures(one)) or bool(_pictures(other))


def _shows(history: Sequence[Message], wanted: ToolMessage) -> bool:
    """Return whether `history` still contains `wanted` unchanged."""
    return any(
        isinstance(message, ToolMessage) and message.call_id == wanted.call_id and message == wanted
        for message in reversed(history)
    )


def _read_id(call: ToolCall) -> str | None:
    """Return the id of the stored result that `call` reads, or None if `call` does not read a stored result."""
    call = called(call)
    if call.name not in RESULT_TOOLS or call.malformed is not None:
        return None
    read_id = json.loads(call.arguments or "{}").get("result_id")
    return read_id if isinstance(read_id, str) else None


def _ids(message: ToolMessage) -> tuple[str, ...]:
    return tuple(stored.id for stored in message.stored)


def _pictures(message: ToolMessage) -> tuple[Image, ...]:
    return tuple(part for part in message.parts if isinstance(part, Image))


def _lines(message: ToolMessage) -> str:
    lines = count_lines(output_text(message))
    return "1 line" if lines == 1 else f"{lines:,} lines"
