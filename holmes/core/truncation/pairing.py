"""Restores the rule that every tool call has exactly one result, right after the message that called (invariant 1).

Called once when a conversation is continued or a turn was aborted. Providers refuse a conversation that breaks the
rule. Never invents output: a missing result becomes an error that says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.values.messages import AssistantMessage, Text, ToolCall, ToolCallId, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message

MISSING_RESULT = "the call was interrupted; no result"


def repair_pairing(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` with every call answered exactly once, in call order.

    A missing result is added as an error, a result that nobody asked for is dropped, a call id that was used before is
    renamed together with its result. Messages that need no change stay the same objects; repairing twice changes
    nothing more.
    """
    reserved = {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls}
    used: set[ToolCallId] = set()
    repaired: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            repaired.append(message)
            continue
        results: list[ToolMessage] = []
        while position < len(messages) and isinstance(result := messages[position], ToolMessage):
            results.append(result)
            position += 1
        repaired.extend(_repair_round(message, results, used, reserved))
    return tuple(repaired)


def _repair_round(
    message: AssistantMessage, results: list[ToolMessage], used: set[ToolCallId], reserved: set[ToolCallId]
) -> list[Message]:
    """The round with unique ids and one result for each call; the n-th result of an id belongs to its n-th call."""
    waiting: dict[ToolCallId, list[ToolMessage]] = {}
    for result in results:
        waiting.setdefault(result.call_id, []).append(result)
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for call in message.tool_calls:
        new_id = _unused_id(call.id, used, reserved)
        used.add(new_id)
        calls.append(call if new_id == call.id else replace(call, id=new_id))
        found = waiting.get(call.id)
        answer = found.pop(0) if found else _missing_result(call)
        answers.append(answer if answer.call_id == new_id else replace(answer, call_id=new_id))
    unchanged = tuple(calls) == message.tool_calls
    return [message if unchanged else replace(message, tool_calls=tuple(calls)), *answers]


def _unused_id(call_id: ToolCallId, used: set[ToolCallId], reserved: set[ToolCallId]) -> ToolCallId:
    if call_id not in used:
        return call_id
    number = 2
    while (candidate := ToolCallId(f"{call_id}-{number}")) in used or candidate in reserved:
        number += 1
    return candidate


def _missing_result(call: ToolCall) -> ToolMessage:
    return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=(Text(text=MISSING_RESULT),))
