"""Counts one run: its events, the time of its model calls, and how it ended. Made by `Metrics.run`.

What a run was billed and no single event says (attempts of a call that failed for good) is counted at its end, so that
the sums are those of the run. What an earlier attempt of a durable run did is not counted again.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Protocol, Self

from holmes.telemetry.operations import CANCELLED, ModelCall
from holmes.telemetry.timeline import Timeline
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    HistoryCompacted,
    HistoryReplaced,
    RunFailed,
    TurnStarted,
    total_cost,
)
from holmes.values.stats import NOTHING_SPENT, RequestStats

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal

    from holmes.telemetry.replays import ReplayNotes
    from holmes.values.events import AgentEvent

_NANOSECONDS = 1_000_000_000


class RunCounter(Protocol):
    """What a run is counted with: `Metrics`."""

    def observe(self, event: AgentEvent) -> None:
        """Count one event."""
        ...

    def spend(self, stats: RequestStats, *, model: str, purpose: Literal["investigation", "compaction"]) -> None:
        """Count tokens, calls and money."""
        ...

    def call_took(self, seconds: float, *, model: str, outcome: Literal["answered", "failed"]) -> None:
        """Count the time of one model call."""
        ...

    def investigation_finished(
        self, *, outcome: Literal["answered", "failed", "cancelled"], source: str, answered_by: str | None
    ) -> None:
        """Count an investigation that ended for good."""
        ...


class RunMetrics:
    """A `Reader` of one run."""

    def __init__(
        self, metrics: RunCounter, *, source: str | None, model: str | None = None, replays: ReplayNotes | None = None
    ) -> None:
        self._metrics = metrics
        self._source = source
        self._replays = replays
        self._timeline = Timeline(model=model, replays=replays)
        self._seen = NOTHING_SPENT
        self._total = NOTHING_SPENT
        self._model = model or ""
        self._ended: AnswerFinished | HistoryReplaced | RunFailed | None = None

    def __enter__(self) -> Self:
        """Nothing happened yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count the end."""
        for operation in self._timeline.close(CANCELLED):
            if isinstance(operation, ModelCall):
                self._took(operation)
        unsaid = _less(self._total, self._seen)
        if unsaid != NOTHING_SPENT:
            self._metrics.spend(unsaid, model=self._model, purpose="investigation")
        if self._source is not None:
            self._count_end(self._source, closed=kind is None or not issubclass(kind, Exception))

    def note(self, event: AgentEvent) -> None:
        """Count an event."""
        for operation in self._timeline.note(event):
            if isinstance(operation, ModelCall):
                self._took(operation)
        self._total = total_cost(event, self._total)
        match event:
            case AssistantReplied() | HistoryCompacted() | CompactionFailed():
                self._seen += event.stats
            case AttemptDiscarded():
                self._model = event.model
            case AnswerFinished() | HistoryReplaced() | RunFailed():
                self._ended = event
            case TurnStarted():
                return
            case _:
                pass
        if self._replays is None or not self._replays.is_replayed(event, self._timeline.step):
            self._metrics.observe(event)

    def _took(self, call: ModelCall) -> None:
        seconds = max(0, call.ended_ns - call.started_ns) / _NANOSECONDS
        self._metrics.call_took(seconds, model=call.model or "", outcome="failed" if call.error_type else "answered")

    def _count_end(self, source: str, *, closed: bool) -> None:
        match self._ended:
            case AnswerFinished():
                self._metrics.investigation_finished(outcome="answered", source=source, answered_by=self._ended.model)
            case HistoryReplaced():
                pass  # no investigation
            case RunFailed():
                self._metrics.investigation_finished(outcome="failed", source=source, answered_by=None)
            case None:
                outcome: Literal["cancelled", "failed"] = "cancelled" if closed else "failed"
                self._metrics.investigation_finished(outcome=outcome, source=source, answered_by=None)


def _less(total: RequestStats, counted: RequestStats) -> RequestStats:
    """What of `total` is not in `counted`, field by field and never below zero."""
    left = {
        field.name: max(0, getattr(total, field.name) - getattr(counted, field.name))
        for field in fields(RequestStats)
        if field.name not in {"estimated", "cost", "compaction_cost", "summaries"}
    }
    cost = total.cost - counted.cost
    return RequestStats(**left, cost=cost if cost > 1e-9 else 0.0)
