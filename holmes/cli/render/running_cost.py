"""Sums what a run has cost so far, so that an interrupted one counts everything that was paid. Used by `transcript`.

Counts nothing twice: a reply and a compaction include the failed attempts that were made for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    ContextOverflowed,
    HistoryCompacted,
    HistoryReplaced,
    ModelSwitched,
    RunFailed,
)
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.values.events import AgentEvent


class RunningCost:
    """The cost of one run, event by event."""

    def __init__(self) -> None:
        self._settled = RequestStats()
        self._pending = RequestStats()

    @property
    def stats(self) -> RequestStats:
        """What is settled, and failed attempts whose reply has not come."""
        return self._settled + self._pending

    def note(self, event: AgentEvent) -> None:
        """Take account of an event."""
        match event:
            case AttemptDiscarded():
                self._pending += event.stats
            case AssistantReplied() | HistoryCompacted() | CompactionFailed():
                self._settle(self._settled + event.stats)
            case ContextOverflowed() | ModelSwitched():  # the call failed for good: no reply will count its attempts
                self._settle(self.stats)
            case AnswerFinished() | HistoryReplaced() | RunFailed():
                self._settle(event.stats)
            case _:
                pass

    def _settle(self, stats: RequestStats) -> None:
        self._settled, self._pending = stats, RequestStats()
