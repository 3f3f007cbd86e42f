"""What a run did, for its last line, and what it has cost so far.

An interrupted run counts everything that was paid. Counts nothing twice: a reply and a compaction include the failed
attempts that were made for them.
"""

from __future__ import annotations

from holmes.cli.render.wording import cost_line
from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    AssistantReplied,
    RunFailed,
    ToolCallFinished,
    TurnStarted,
)
from holmes.values.stats import RequestStats


class RunSummary:
    """Steps, calls, model and cost of one run that began at `started_at_seconds`."""

    def __init__(self, started_at_seconds: float) -> None:
        self._started_at_seconds = started_at_seconds
        self._steps = 0
        self._tool_calls = 0
        self._model = ""
        self._stats = RequestStats()

    def note(self, event: AgentEvent) -> None:
        """Take account of an event."""
        match event:
            case TurnStarted():
                self._steps = event.step
            case ToolCallFinished():
                self._tool_calls += 1
            case AssistantReplied():
                self._model = event.model
            case AnswerFinished() | RunFailed():
                self._stats = event.stats
            case _:
                pass

    def cost_line(self, now_seconds: float) -> str:
        """The cost of the finished run, or nothing when no model was asked."""
        if not self._stats.calls:
            return ""
        elapsed_seconds = now_seconds - self._started_at_seconds
        return cost_line(self._model, self._steps, self._tool_calls, self._stats, elapsed_seconds)
