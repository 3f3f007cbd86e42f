"""Runs tool calls outside of a question, for clients that are models themselves.

As in the loop, large results are stored, and a preview replaces them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from holmes.core.loop_run import LoopRun
from holmes.core.tool_calling_llm import invoke_llm_tool_call
from holmes.evidence.handed_over import with_handed_over
from holmes.values.messages import NOTHING_HANDED_OVER, HandedOver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.loop_run import LoopParts
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, ToolCall, ToolMessage
    from holmes.values.tools import Tool

_MOST_EARLIER: Final = 200


class SingleCalls:
    """Runs calls of one client, or of several that share a key.

    They may read the stored results of the last calls and answers, as long as this process runs.
    """

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._earlier: deque[HandedOver] = deque(maxlen=_MOST_EARLIER)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that no person must approve."""
        return self._parts.executor.free_tools

    async def run(self, call: ToolCall) -> ToolMessage:
        """Run `call`. Every failure becomes a message with status `error`."""

        async def ignore(_: AgentEvent) -> None:
            return None

        run = await LoopRun.begin((), self._parts, ignore)
        known = HandedOver(
            ids=frozenset().union(*(each.ids for each in self._earlier)),
            removed=frozenset().union(*(each.removed for each in self._earlier)),
        )
        message = (await invoke_llm_tool_call(self._parts, run, call, known)).spill.message
        self.hand_over((message,))
        return message

    def hand_over(self, messages: Sequence[Message]) -> None:
        """Let later calls read the stored results of these messages."""
        found = with_handed_over(NOTHING_HANDED_OVER, messages)
        if found.ids:
            self._earlier.append(found)
