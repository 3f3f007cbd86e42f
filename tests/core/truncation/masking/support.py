"""Conversations with results that are in a store, and what masking is handed. Used by the tests of this folder."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.policy import ContextPolicy, MaskingPolicy
from holmes.core.truncation.context import CompactionContext, HistoryBudget
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import AssistantMessage, ResultId, StoredResult, SystemMessage, Text, ToolMessage, user_text
from holmes.values.steps import DirectStepRunner
from holmes.values.tools import result_label
from tests.support.counting_model import CountingModel, EventLog, tool_call

if TYPE_CHECKING:
    from holmes.values.messages import Message, Part, ToolCallId
    from holmes.values.tools import ResultStore

COUNTER = TokenCounter()


class MemoryStore:
    """A store without paths."""

    def __init__(self) -> None:
        self.contents: dict[ResultId, tuple[bytes, StoredResult]] = {}

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:  # noqa: ARG002
        result_id = ResultId(hashlib.sha256(content).hexdigest()[:12])
        stored = StoredResult(id=result_id, path=None, size_bytes=len(content), media_type=media_type)
        self.contents[result_id] = (content, stored)
        return stored

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        return self.contents[result_id]


def result(
    call_id: str,
    text: str = "",
    *more: Part,
    tool_name: str = "kubectl_get",
    path: str | None = None,
    label: bool = False,
) -> ToolMessage:
    """A result whose text is stored, and whole in the conversation."""
    content = text.encode()
    stored = StoredResult(
        id=ResultId(hashlib.sha256(content).hexdigest()[:12]),
        path=path,
        size_bytes=len(content),
        media_type="text/plain",
    )
    parts: tuple[Part, ...] = (*((Text(text=text),) if text else ()), *more)
    labelled = (*parts, Text(text=result_label((stored,)))) if label else parts
    return ToolMessage(
        call_id=tool_call(call_id).id, tool_name=tool_name, status="success", parts=labelled, stored=(stored,)
    )


def conversation(*rounds: tuple[ToolMessage, ...], arguments: str = "{}") -> tuple[Message, ...]:
    """System prompt, question, and for each round a reply that calls what follows."""
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text("why is checkout failing?")]
    for results in rounds:
        calls = tuple(tool_call(message.call_id, message.tool_name, arguments) for message in results)
        messages += [AssistantMessage(text="", tool_calls=calls), *results]
    return tuple(messages)


def history_of(messages: tuple[Message, ...]) -> History:
    return History(messages, COUNTER)


def budget(policy: MaskingPolicy, *, window_tokens: int = 400_000) -> HistoryBudget:
    """A window of which half is usable, so that no share is smaller than the policy's tokens unless a test wants it."""
    return HistoryBudget(
        window_tokens=window_tokens,
        reserve_tokens=window_tokens // 2,
        schema_tokens=0,
        system_tokens=0,
        max_output_tokens=window_tokens // 2,
        policy=ContextPolicy(masking=policy),
    )


def context(policy: MaskingPolicy, store: ResultStore | None) -> CompactionContext:
    """What the loop would hand over; no model is ever asked."""

    def never(_: object) -> AssistantMessage:
        raise AssertionError("masking asks no model")

    return CompactionContext(
        model=CountingModel(never),
        budget=budget(policy),
        tools=(),
        store=store,
        emit=EventLog(),
        steps=DirectStepRunner(),
        counter=COUNTER,
        prompt="",
        step_name="step-1",
    )


def unstored(message: ToolMessage) -> ToolMessage:
    """`message` as it joins when there is no storage."""
    return replace(message, stored=())
