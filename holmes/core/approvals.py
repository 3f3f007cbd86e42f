"""Calls that a person must allow. A wrapper around a toolset.

The loop emits `ApprovalRequired` before the call reaches the gate. Nobody to ask means not run, and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from holmes.values.tools import ToolResult, WrapperToolset

if TYPE_CHECKING:
    from holmes.values.tools import ToolInvocation


class Approver(Protocol):
    """A person, or somebody who answers in a person's place."""

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        """True to run the call, None when nobody is here after all. May wait as long as the person needs."""
        ...


@dataclass(frozen=True, slots=True)
class ApprovalGate(WrapperToolset):
    """Asks before it runs a call whose tool name matches one of `patterns` (shell globs)."""

    patterns: tuple[str, ...]
    approver: Approver | None

    def needs_approval(self, invocation: ToolInvocation) -> bool:
        """Whether a pattern matches."""
        return any(fnmatchcase(invocation.tool.name, pattern) for pattern in self.patterns)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """The wrapped result, or status `approval_required` when nobody is there or the person refused."""
        name = invocation.tool.name
        if not self.needs_approval(invocation):
            return await self.inner.call(invocation)
        decision = None
        if self.approver is not None:
            decision = await self.approver.decide(invocation, self.inner.describe(invocation))
        if decision is None:
            reason = f"{name!r} needs the approval of a person, and none is here."
            return ToolResult(status="approval_required", error=reason)
        if not decision:
            return ToolResult(status="approval_required", error=f"The user refused to run {name!r}. Find another way.")
        return await self.inner.call(invocation)
