"""Handles approvals over HTTP. A chat ends instead of waiting for approval, and the next request continues the chat.

The first run stops before the next model call, when each tool call of the reply has finished or is waiting for
approval. The next request contains the decisions, and its run starts with the waiting tool calls instead of a model
reply.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.hooks import hook_of
from holmes.values.events import AssistantReplied, ToolCallFinished, ToolCallStarted
from holmes.values.messages import AssistantMessage
from holmes.values.model import ModelReply
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolCall, ToolCallId
    from holmes.values.model import ChatModel, EmitEvent, ModelLimits, ModelRequest
    from holmes.values.tools import ToolInvocation


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A tool call that is waiting for approval."""

    call: ToolCall
    description: str


class ChatApprover:
    """Approves or denies tool calls from `decisions`. Calls without a decision wait until the run ends.

    A decision on a hook's call applies to all turns, because the call id contains the turn number, which restarts in
    the continued run. A decision on a model's call applies once, because a provider may reuse the call id.
    """

    def __init__(self, decisions: Mapping[str, bool]) -> None:
        self._decisions = {_decided_about(each): approved for each, approved in decisions.items()}
        self._waiting: dict[ToolCallId, str] = {}
        self._round: dict[ToolCallId, ToolCall] = {}
        self.changed = asyncio.Event()

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        """Return the user's decision. If the user has not decided yet, wait until the run is cancelled."""
        about = _decided_about(invocation.call_id)
        decision = self._decisions.get(about)
        if decision is not None:
            if about == invocation.call_id:
                del self._decisions[about]
            return decision
        self._waiting[invocation.call_id] = description
        self.changed.set()
        await asyncio.Event().wait()
        raise AssertionError  # the event is never set

    def note(self, event: AgentEvent) -> None:
        """Track which tool calls of the current turn are unfinished."""
        match event:
            case AssistantReplied():
                self._round = {call.id: call for call in event.message.tool_calls}
            case ToolCallStarted():
                self._round[event.call.id] = event.call  # a hook's call is not part of a reply
            case ToolCallFinished():
                self._round.pop(event.call.id, None)
            case _:
                pass

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that are waiting for approval. The tuple is empty while other calls in the turn are running."""
        if not self._round or self._round.keys() - self._waiting.keys():
            return ()
        return tuple(
            PendingCall(call=call, description=self._waiting[identity]) for identity, call in self._round.items()
        )


def _decided_about(call_id: str) -> str:
    """Return the key of a decision: the call id, or the id of the hook that makes the call."""
    hook_id = hook_of(call_id)
    return call_id if hook_id is None else f"hook {hook_id}"


async def until_approval(
    events: AsyncGenerator[AgentEvent, None], approver: ChatApprover
) -> AsyncGenerator[AgentEvent, None]:
    """Yield `events` until the run ends, or until it cannot continue without a decision on `approver.pending`."""
    async with aclosing(events):
        upcoming = asyncio.ensure_future(anext(events, None))
        changed = asyncio.ensure_future(approver.changed.wait())
        try:
            while True:
                await asyncio.wait({upcoming, changed}, return_when=asyncio.FIRST_COMPLETED)
                if upcoming.done():
                    event = upcoming.result()
                    if event is None:
                        return
                    approver.note(event)
                    yield event
                    upcoming = asyncio.ensure_future(anext(events, None))
                if approver.pending and await _is_idle(upcoming):
                    return
                if changed.done():
                    approver.changed.clear()
                    changed = asyncio.ensure_future(approver.changed.wait())
        finally:
            for task in (upcoming, changed):
                task.cancel()
            await asyncio.gather(upcoming, changed, return_exceptions=True)


async def _is_idle(upcoming: asyncio.Future[AgentEvent | None]) -> bool:
    """Return whether the run has no event ready to yield."""
    await asyncio.sleep(0)
    return not upcoming.done()


class Replay:
    """Tool calls from an earlier run, which replace the model's first reply."""

    def __init__(self, calls: tuple[ToolCall, ...]) -> None:
        self._calls = calls

    def take(self) -> tuple[ToolCall, ...]:
        """Return the calls the first time, and an empty tuple afterwards."""
        calls, self._calls = self._calls, ()
        return calls

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that have not run.

        If a hook's call ends the run before these calls run, they wait for the next request.
        """
        return tuple(PendingCall(call=call, description=f"{call.name}({call.arguments})") for call in self._calls)


class ReplayedModel:
    """A `ChatModel` whose first reply repeats tool calls from an earlier run. This reply is free."""

    def __init__(self, inner: ChatModel, replay: Replay) -> None:
        self._inner = inner
        self._replay = replay

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def limits(self) -> ModelLimits:
        return self._inner.limits

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        """Return a reply with the earlier tool calls, or call the model if these calls were already returned."""
        calls = self._replay.take() if request.tool_choice == "auto" else ()
        if not calls:
            return await self._inner.complete(request, emit)
        message = AssistantMessage(text="", tool_calls=calls)
        return ModelReply(message=message, finish_reason="tool_calls", stats=NOTHING_SPENT, model=self.name)
