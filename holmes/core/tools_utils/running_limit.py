"""Limits how many tools run at once. The innermost wrapper of a toolset.

A call that waits for a person, or whose result is being masked, holds no slot: only the running tool does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.values.tools import WrapperToolset

if TYPE_CHECKING:
    from asyncio import Semaphore

    from holmes.values.tools import ToolInvocation, ToolResult, Toolset


@dataclass(frozen=True, slots=True)
class RunningLimit(WrapperToolset):
    """Runs a call of the wrapped toolset as soon as one of `slots`, which toolsets share, is free."""

    slots: Semaphore

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """The wrapped result."""
        async with self.slots:
            return await self.inner.call(invocation)


def limit_running(toolset: Toolset, slots: Semaphore) -> WrapperToolset:
    """`toolset` with the limit inside of all its wrappers."""
    if isinstance(toolset, WrapperToolset):
        return replace(toolset, inner=limit_running(toolset.inner, slots))
    return RunningLimit(toolset, slots)
