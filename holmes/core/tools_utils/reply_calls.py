"""Decides which calls of one reply run: a bounded number, and identical ones once.

Calls beyond that are answered with the reason. Of a flood only some stay in the message, so that neither calls nor
results fill the history; the last answer says how many were removed. Every call that stays has exactly one result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.tools_utils.repeated_calls import IDENTICAL_CALL, call_key
from holmes.values.messages import Text, ToolMessage

if TYPE_CHECKING:
    from holmes.values.messages import AssistantMessage, ToolCall, ToolCallId

MAX_RUNNING_CALLS = 32
MAX_ANSWERED_CALLS = 32
"""How many calls that do not run stay in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedReply:
    """The reply as it joins the history. `answers` has the result of each of its calls, None for those that run."""

    message: AssistantMessage
    answers: tuple[ToolMessage | None, ...]

    @property
    def running(self) -> tuple[ToolCall, ...]:
        """The calls that run."""
        return tuple(call for call, answer in zip(self.message.tool_calls, self.answers, strict=True) if answer is None)


def bound_reply(message: AssistantMessage) -> BoundedReply:
    """`message` with at most 32 calls that run and 32 that do not; the same object when it has no more."""
    first_ids: dict[tuple[str, str], ToolCallId] = {}
    kept: list[ToolCall] = []
    answers: list[ToolMessage | None] = []
    answered = 0
    for call in message.tool_calls:
        key = call_key(call)
        answer = _answer(call, first_ids.get(key), len(first_ids))
        if answer is None:
            first_ids[key] = call.id
        elif answered == MAX_ANSWERED_CALLS:
            continue
        else:
            answered += 1
        kept.append(call)
        answers.append(answer)
    removed = len(message.tool_calls) - len(kept)
    if not removed:
        return BoundedReply(message=message, answers=tuple(answers))
    last = max(index for index, answer in enumerate(answers) if answer is not None)
    answers[last] = _with_removed(answers[last], removed)
    return BoundedReply(message=replace(message, tool_calls=tuple(kept)), answers=tuple(answers))


def _answer(call: ToolCall, first_id: ToolCallId | None, running: int) -> ToolMessage | None:
    """The result of a call that does not run, None for one that does."""
    if first_id is not None:
        text = f"{IDENTICAL_CALL} {first_id!r} of this reply, which runs once: its result is the result of this call."
        return ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=text),))
    if running < MAX_RUNNING_CALLS:
        return None
    text = f"Not run: at most {MAX_RUNNING_CALLS} calls of one reply run. Call it again if it is still needed."
    return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=(Text(text=text),))


def _with_removed(answer: ToolMessage | None, removed: int) -> ToolMessage | None:
    if answer is None:
        return None
    note = f"{removed:,} more calls of this reply were not run either, and were removed from the conversation."
    return replace(answer, parts=(*answer.parts, Text(text=note)))
