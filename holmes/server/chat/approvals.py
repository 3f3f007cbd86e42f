"""Approval of tool calls over HTTP: a chat ends where it would wait, and another request continues it.

The first run stops when all calls of a reply are done or waiting, before the next model call. The next request has the
decisions. The waiting calls then run instead of a first reply.
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
    """A call that waits for approval."""

    call: ToolCall
    description: str


class ChatApprover:
    """Answers from `decisions`; other calls wait until the run ends.

    A decision about the call of a hook applies to all turns, because the continued run counts its turns from the start.
    A decision about a call of the model applies once, because a provider may reuse its id.
    """

    def __init__(self, decisions: Mapping[str, bool]) -> None:
        self._decisions = {_decided_about(each): approved for each, approved in decisions.items()}
        self._waiting: dict[ToolCallId, str] = {}
        self._round: dict[ToolCallId, ToolCall] = {}
        self.changed = asyncio.Event()

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        """The user's decision. Without one, waits forever."""
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
        """Update the state with an event of the run."""
        match event:
            case AssistantReplied():
                self._round = {call.id: call for call in event.message.tool_calls}
            case ToolCallStarted():
                self._round[event.call.id] = event.call  # a call of a hook belongs to no reply
            case ToolCallFinished():
                self._round.pop(event.call.id, None)
            case _:
                pass

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The waiting calls if nothing else runs, else none."""
        if not self._round or self._round.keys() - self._waiting.keys():
            return ()
        return tuple(
            PendingCall(call=call, description=self._waiting[identity]) for identity, call in self._round.items()
        )


def _decided_about(call_id: str) -> str:
    """The key of a decision: the call, or the hook that makes it."""
    hook_id = hook_of(call_id)
    return call_id if hook_id is None else f"hook {hook_id}"


async def until_approval(
    events: AsyncGenerator[AgentEvent, None], approver: ChatApprover
) -> AsyncGenerator[AgentEvent, None]:
    """`events` until the run ends or only waiting for approval, which ends it; `approver.pending` has the calls."""
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
    """True if no event is pending."""
    await asyncio.sleep(0)
    return not upcoming.done()


class Replay:
    """Calls of an earlier run that are made instead of the first reply, once."""

    def __init__(self, calls: tuple[ToolCall, ...]) -> None:
        self._calls = calls

    def take(self) -> tuple[ToolCall, ...]:
        """The calls, at the first use."""
        calls, self._calls = self._calls, ()
        return calls

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that were not made: they wait again if the call of a hook ends the run first."""
        return tuple(PendingCall(call=call, description=f"{call.name}({call.arguments})") for call in self._calls)


class ReplayedModel:
    """A `ChatModel` that starts with a reply of an earlier run, at no cost."""

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
        """The earlier reply, then replies of the model."""
        calls = self._replay.take() if request.tool_choice == "auto" else ()
        if not calls:
            return await self._inner.complete(request, emit)
        message = AssistantMessage(text="", tool_calls=calls)
        return ModelReply(message=message, finish_reason="tool_calls", stats=NOTHING_SPENT, model=self.name)
