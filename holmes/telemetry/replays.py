"""Tells what an earlier attempt of a durable investigation did already, so that it is not counted or traced again.

Put around the recorded steps by whoever runs durable investigations: a step that comes out of the journal does not run
its function, and that is how it is known. Changes nothing about the steps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar

from holmes.core.tools_utils.tool_context_window_limiter import ToolOutcome
from holmes.values.events import (
    AssistantReplied,
    CompactionFailed,
    HistoryCompacted,
    ToolCallFinished,
    ToolResultSpilled,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolCallId
    from holmes.values.steps import StepRunner

T = TypeVar("T")

_NAME: Final = re.compile(r"step-(\d+)/(complete-)?")


class ReplayNotes:
    """A `StepRunner` around another one."""

    def __init__(self, inner: StepRunner) -> None:
        self._inner = inner
        self._replies: dict[int, bool] = {}
        self._others: defaultdict[int, list[bool]] = defaultdict(list)
        self._calls: set[ToolCallId] = set()

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """What the inner runner says."""
        ran = False

        async def noted() -> T:
            nonlocal ran
            ran = True
            return await step()

        result = await self._inner.run(name, noted)
        self._note(name, result, replayed=not ran)
        return result

    def now_seconds(self) -> float:
        """The inner runner's clock."""
        return self._inner.now_seconds()

    def new_id(self) -> str:
        """The inner runner's id."""
        return self._inner.new_id()

    def is_replayed(self, event: AgentEvent, step: int) -> bool:
        """Whether `event`, which came in the turn `step`, tells of something that an earlier attempt did."""
        match event:
            case AssistantReplied():
                return self._replies.get(step, False)
            case ToolCallFinished() | ToolResultSpilled():
                return event.call.id in self._calls
            case HistoryCompacted() | CompactionFailed():
                return self.had_compaction(step)
            case _:
                return False

    def had_compaction(self, step: int) -> bool:
        """Whether the summary of this turn was written by an earlier attempt."""
        return bool(self._others[step]) and all(self._others[step])

    def _note(self, name: str, result: object, *, replayed: bool) -> None:
        if isinstance(result, ToolOutcome):
            if replayed:
                self._calls.add(result.spill.message.call_id)
            return
        found = _NAME.match(name)
        if found is None:
            return
        if found[2]:
            self._replies[int(found[1])] = replayed
        else:
            self._others[int(found[1])].append(replayed)
