"""What one tool step leaves behind, and the events that tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome
from holmes.values.events import ToolResultSpilled

if TYPE_CHECKING:
    from holmes.values.messages import ToolCall, ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """Small enough for a journal, since large data is in the store."""

    spill: SpillOutcome
    cap_tokens: int
    invocation: str | None
    error: str | None
    elapsed_seconds: float

    @classmethod
    def of(cls, answer: ToolMessage) -> ToolOutcome:
        """The outcome of a call that is answered without running."""
        spill = SpillOutcome(message=answer, tokens=0, spilled=False, stored=False)
        error = answer.text if answer.status == "error" else None
        return cls(spill=spill, cap_tokens=0, invocation=None, error=error, elapsed_seconds=0.0)

    def spilled(self, call: ToolCall) -> ToolResultSpilled | None:
        """The event for a result that was too large, None for one that was not."""
        if not self.spill.spilled:
            return None
        return ToolResultSpilled(
            call=call,
            tokens=self.spill.tokens,
            cap_tokens=self.cap_tokens,
            stored=self.spill.stored,
            limit=self.spill.limit,
        )
