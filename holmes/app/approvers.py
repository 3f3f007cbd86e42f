"""Lets runs that share an investigator have approvers of their own. Used by `Investigators`.

The tools of a run are tasks that its first event starts, so a context variable that is set before reaches all of them,
and those of no other run.
"""

from __future__ import annotations

from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.core.approvals import Approver
    from holmes.values.events import AgentEvent
    from holmes.values.tools import ToolInvocation

_APPROVER: ContextVar[Approver | None] = ContextVar("holmes_approver", default=None)


class RunApprover:
    """Asks the approver of the run that it is called in; nobody is here when that run has none."""

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        """What the run's approver decides."""
        approver = _APPROVER.get()
        return None if approver is None else await approver.decide(invocation, description)


async def with_approver(
    events: AsyncGenerator[AgentEvent, None], approver: Approver
) -> AsyncGenerator[AgentEvent, None]:
    """`events` of a run whose calls `approver` answers for. Nothing of the run may have been read yet."""
    async with aclosing(events):
        token = _APPROVER.set(approver)
        try:
            first = await anext(events, None)
        finally:
            _APPROVER.reset(token)
        if first is None:
            return
        yield first
        async for event in events:
            yield event
