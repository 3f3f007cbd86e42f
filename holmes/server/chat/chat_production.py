"""Runs one chat as a stream of wire events. The last event contains the answer and the signed conversation."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeGuard

from holmes.app.investigators import budgeted
from holmes.app.requests import AskRequest, RunParts
from holmes.core.hooks import hook_note, hook_of
from holmes.investigations.queue.budget import ChatCosts
from holmes.investigations.records.wire_events import (
    WireEvent,
    arguments_of,
    tool_result_data,
    usage_metadata,
    wire_events,
)
from holmes.server.chat.approvals import Replay, ReplayedModel, until_approval
from holmes.server.chat.json_answers import find_json, mismatch
from holmes.settings.model import BUILTIN_MODEL
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    HistoryCompacted,
    RunFailed,
    TokensCounted,
    ToolCallFinished,
    ToolResultsMasked,
    total_cost,
)
from holmes.values.messages import AssistantMessage, Text, UserMessage
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.app.serving import Service
    from holmes.server.chat.approvals import PendingCall
    from holmes.server.chat.chat_jobs import ChatJob
    from holmes.server.chat.conversations import ConversationCodec
    from holmes.values.events import AgentEvent
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import Message
    from holmes.values.model import ChatModel
    from holmes.values.stats import RequestStats

MISFIT_CODE: Final = 422
_REPAIRS = 1


class ChatProduction:
    """Produces the events of one chat. Call `open` first, then `events` once."""

    def __init__(self, service: Service, codec: ConversationCodec, job: ChatJob, run_id: str) -> None:
        self._service = service
        self._codec = codec
        self._job = job
        self._run_id = run_id
        self.costs = ChatCosts(service.database, run_id)
        self._budget = service.investigators.budget(keep=self.costs.add)
        self._messages: list[Message] = []
        self._before: RequestStats = NOTHING_SPENT
        self._stats: RequestStats = NOTHING_SPENT
        self._counted: TokensCounted | None = None
        self._opened: AsyncGenerator[AgentEvent, None] | None = None
        self._replay = Replay(())
        self.tool_calls: list[JsonObject] = []
        self.model = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._messages)

    async def open(self) -> None:
        """Open the investigator. Raises `ConfigError` for an unknown model, and `ClusterUnreachable`."""
        self._opened = await self._ask(self._job.ask)

    async def events(self) -> AsyncGenerator[WireEvent, None]:
        """Run the chat and yield its events. The last event is `ai_answer_end`, `approval_required` or `error`."""
        request = self._job.ask
        for attempt in range(_REPAIRS + 1):
            opened, self._opened = self._opened, None
            end: AnswerFinished | None = None
            async with aclosing(opened or await self._ask(request)) as events:
                async for event in events:
                    self._note(event)
                    if isinstance(event, AnswerFinished):
                        end = event
                        continue
                    for each in wire_events(event):
                        yield self._completed(event, each)
            if end is None:
                if self._pending:
                    yield self._waiting()
                return
            problem, text = self._checked(end)
            if problem is None:
                yield self._answer(end, text)
                return
            if attempt == _REPAIRS or end.model == BUILTIN_MODEL:
                text = f"the model's answer does not match response_format: {problem}"
                yield failure(text, self._metadata(), code=MISFIT_CODE)
                return
            self._before, self._stats = self._before + self._stats, NOTHING_SPENT
            request = _repair(end, request, problem)

    async def _ask(self, request: AskRequest) -> AsyncGenerator[AgentEvent, None]:
        job = self._job
        question = UserMessage(parts=(Text(text=request.question), *request.images))
        self._messages = [*request.conversation, question]
        replay = self._replay = Replay(job.replayed)

        def wrapped(model: ChatModel) -> ChatModel:
            return ReplayedModel(budgeted(model, self._budget), replay)

        parts = RunParts(wrap_model=wrapped, approver=job.approver)
        events = await self._service.investigators.ask(request, model=job.model, cluster=job.cluster, parts=parts)
        return until_approval(events, job.approver) if job.approver else events

    def _note(self, event: AgentEvent) -> None:
        """Collect the conversation, the tool calls and the cost for the last event."""
        self._stats = total_cost(event, self._stats)
        match event:
            case AssistantReplied():
                self._messages.append(event.message)
                self.model = event.model
            case ToolCallFinished():
                hook_id = hook_of(event.call.id)
                self._messages.append(event.message if hook_id is None else hook_note(hook_id, event.message))
                self.tool_calls.append(_call_document(event))
            case HistoryCompacted() | ToolResultsMasked():
                self._messages = list(event.messages) or self._messages
            case TokensCounted():
                self._counted = event
            case AnswerFinished():
                self._messages = list(event.messages)
            case _:
                pass

    def _completed(self, event: AgentEvent, wire: WireEvent) -> WireEvent:
        """Add the signed conversation or the metadata of the whole chat to an event."""
        match event:
            case HistoryCompacted():
                return replace(wire, data={**wire.data, "messages": self._codec.encode(event.messages)})
            case RunFailed():
                return replace(wire, data={**wire.data, "metadata": self._metadata()})
            case _:
                return wire

    @property
    def _pending(self) -> tuple[PendingCall, ...]:
        """The tool calls that require a decision before the chat can continue."""
        waiting = self._job.approver.pending if self._job.approver else ()
        return (*waiting, *self._replay.pending) if waiting else ()

    def _waiting(self) -> WireEvent:
        calls = tuple(each.call for each in self._pending)
        messages, last = list(self._messages), next(filter(_is_reply, reversed(self._messages)), None)
        if last is None or not set(calls) <= set(last.tool_calls):  # the calls are from a hook or an earlier run
            messages.append(AssistantMessage(text="", tool_calls=calls))
        data: JsonObject = {
            "conversation_history": self._codec.encode(messages, calls),
            "pending_approvals": tuple(map(_pending_document, self._pending)),
            "requires_approval": True,
            "follow_up_actions": [],
            "metadata": self._metadata(),
        }
        return WireEvent(name="approval_required", data=data)

    def _checked(self, end: AnswerFinished) -> tuple[str | None, str]:
        """Check the answer against the schema.

        Returns the mismatch, or None if the answer matches, and the text of the answer.
        """
        by_triage = end.model == BUILTIN_MODEL
        if self._job.schema is None or (by_triage and self._job.triage_may_answer):
            return None, end.text
        if by_triage:
            return f"{BUILTIN_MODEL} answers only in Markdown", end.text
        try:
            value = find_json(end.text)
        except ValueError as error:
            return str(error), end.text
        return mismatch(value, self._job.schema), json.dumps(value, ensure_ascii=False)

    def _answer(self, end: AnswerFinished, text: str) -> WireEvent:
        (wire,) = wire_events(end)
        own = wire.data["metadata"]
        assert isinstance(own, dict)  # noqa: S101  `wire_events` creates it
        data: JsonObject = {
            **wire.data,
            "analysis": text,
            "conversation_history": self._codec.encode(end.messages),
            "metadata": {**own, **self._metadata()},
        }
        return replace(wire, data=data)

    def _metadata(self) -> JsonObject:
        counted = self._counted
        sizes: dict[str, JsonValue] = {}
        if counted is not None:
            sizes = {
                "tokens": {"total_tokens": counted.prompt_tokens},
                "max_tokens": counted.context_window_tokens,
                "max_output_tokens": counted.max_output_tokens,
            }
        cluster = self._service.investigators.clusters.name_of(self._job.cluster)
        own: JsonObject = {"run_id": self._run_id, "model": self.model, **({"cluster": cluster} if cluster else {})}
        return {**own, **sizes, **usage_metadata(self._before + self._stats)}


def failure(text: str, metadata: JsonObject | None = None, *, code: int = 1) -> WireEvent:
    """Create the last event of a failed chat."""
    data: JsonObject = {
        "description": text,
        "error_code": code,
        "msg": text,
        "success": False,
        "metadata": metadata or {},
    }
    return WireEvent(name="error", data=data)


def _repair(end: AnswerFinished, request: AskRequest, problem: str) -> AskRequest:
    question = f"Your answer is not valid: {problem}. Answer again with only the JSON."
    return AskRequest(question=question, conversation=end.messages, instructions=request.instructions)


def _is_reply(message: Message) -> TypeGuard[AssistantMessage]:
    return isinstance(message, AssistantMessage)


def _pending_document(pending: PendingCall) -> JsonObject:
    return {
        "tool_call_id": pending.call.id,
        "tool_name": pending.call.name,
        "description": pending.description,
        "params": arguments_of(pending.call),
    }


def _call_document(event: ToolCallFinished) -> JsonObject:
    return {
        "tool_call_id": event.call.id,
        "tool_name": event.call.name,
        "description": event.description,
        "result": tool_result_data(event),
    }
