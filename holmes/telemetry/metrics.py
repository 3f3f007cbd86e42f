"""Counts events for `/metrics`, with one `Metrics` for each process and one `RunMetrics` for each run.

Label values are from a closed set or limited in number, so the number of series is bounded. A scrape adds the values of
all processes of a server. At the end of a run, the cost of failed attempts that no event includes is added, so that the
sums match the bill. Steps that an earlier attempt of a durable run finished are not counted again.
"""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, assert_never

from prometheus_client.exposition import choose_encoder

from holmes import __version__
from holmes.telemetry.instruments import Instruments, KnownValues, LimitedValues, MergedFigures, QueueGauges
from holmes.telemetry.timeline import CANCELLED, ModelCall, Timeline
from holmes.values.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    HistoryReplaced,
    HookFired,
    ModelSwitched,
    PromptShortened,
    RunFailed,
    TextDelta,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultsMasked,
    ToolResultSpilled,
    TurnStarted,
    total_cost,
)
from holmes.values.stats import NOTHING_SPENT, RequestStats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from prometheus_client import Metric

    from holmes.telemetry.instruments import QueueReading
    from holmes.telemetry.runs import ReplayNotes
    from holmes.values.events import AgentEvent

Outcome: TypeAlias = Literal["answered", "failed", "cancelled"]
DeliveryOutcome: TypeAlias = Literal["delivered", "retried", "gave_up"]
Purpose: TypeAlias = Literal["investigation", "compaction"]

_UNKNOWN_TOOL: Final = ("unknown", "unknown")
_KINDS: Final = (
    ("prompt", "prompt_tokens"),
    ("completion", "completion_tokens"),
    ("cached", "cached_tokens"),
    ("cache_creation", "cache_creation_tokens"),
    ("reasoning", "reasoning_tokens"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """The response to a scrape. `content_type` depends on the formats that the scraper accepts."""

    content: bytes
    content_type: str


class Metrics:
    """The metrics of one process.

    `models` are the configured model names. `models_without_llm` are the names of the models that answer without an
    LLM.
    """

    def __init__(self, *, models: Iterable[str], models_without_llm: Iterable[str] = ()) -> None:
        self.instruments = Instruments()
        self._models = KnownValues(models)
        self._without_llm = frozenset(models_without_llm)
        self._sources = LimitedValues(30)
        self._destinations = LimitedValues(100)
        self._queue = QueueGauges()
        self.instruments.registry.register(self._queue)
        self.instruments.build_info.labels(__version__, platform.python_version()).set(1)

    def run(self, *, source: str | None, model: str | None = None, replays: ReplayNotes | None = None) -> RunMetrics:
        """Create a reader that counts the events of one run. See `holmes.telemetry.readers.observed`."""
        return RunMetrics(self, source=source, model=model, replays=replays)

    def observe(self, event: AgentEvent) -> None:
        """Count one event of any run.

        The readers that `run` creates call this method, so do not call it for the events of these readers.
        """
        match event:
            case TextDelta() | TurnStarted() | ToolCallStarted() | TokensCounted() | HookFired() | PromptShortened():
                pass
            case AssistantReplied():
                self.spend(event.stats, model=event.model, purpose="investigation")
                if event.stats.cached_tokens:
                    self.instruments.llm_cache_hits.labels(self._models.of(event.model)).inc()
            case ToolCallFinished():
                self._count_tool_call(event)
            case ToolResultSpilled():
                self.instruments.tool_results_spilled.labels("true" if event.stored else "false").inc()
            case HistoryCompacted() | CompactionFailed() | ToolResultsMasked():
                self._count_compaction(event)
            case AttemptDiscarded() | ModelSwitched() | ContextOverflowed():
                self._count_model_failure(event)
            case ApprovalRequired() | CompactionStarted() | AnswerFinished() | HistoryReplaced() | RunFailed():
                pass
            case _:
                assert_never(event)

    def spend(self, stats: RequestStats, *, model: str, purpose: Purpose) -> None:
        name = self._models.of(model) if model else ""
        instruments = self.instruments
        instruments.llm_calls.labels(name, purpose).inc(max(0, stats.calls))
        instruments.llm_cost.labels(name, purpose).inc(max(0.0, stats.cost))
        for kind, field in _KINDS:
            count = getattr(stats, field)
            if count > 0:
                instruments.llm_tokens.labels(name, purpose, kind).inc(count)

    def call_took(self, seconds: float, *, model: str, outcome: Literal["answered", "failed"]) -> None:
        self.instruments.llm_call_duration.labels(self._models.of(model), outcome).observe(seconds)

    def investigation_finished(self, *, outcome: Outcome, source: str, answered_by: str | None) -> None:
        """Count a finished investigation. `answered_by` is the name of the model."""
        who = "nobody"
        if outcome == "answered" and answered_by:
            who = "triage" if answered_by in self._without_llm else "llm"
        self.instruments.investigations_finished.labels(outcome, self._sources.of(source), who).inc()

    def alerts_received(self, *, firing: int, resolved: int, duplicates: int) -> None:
        """Count the alerts of one notification after they were stored."""
        self.instruments.alerts_received.labels("firing").inc(firing)
        self.instruments.alerts_received.labels("resolved").inc(resolved)
        self.instruments.alerts_duplicates.inc(duplicates)

    def delivery(self, *, destination: str, outcome: DeliveryOutcome) -> None:
        self.instruments.deliveries.labels(self._destinations.of(destination), outcome).inc()

    def toolsets(self, states: Mapping[str, str]) -> None:
        """Set the state of each toolset: enabled, failed or disabled."""
        self.instruments.toolset_up.clear()
        for name, state in states.items():
            if state != "disabled":
                self.instruments.toolset_up.labels(name).set(state == "enabled")

    def families(self) -> tuple[Metric, ...]:
        return tuple(self.instruments.registry.collect())

    async def exposition(
        self, queue: QueueReading | None, accept: str = "", others: Sequence[Metric] = ()
    ) -> Exposition:
        """Format all metrics as text, including the metrics of other processes in `others`.

        `queue` is the current reading of the database, or None if the database did not respond. `accept` is the
        request's `Accept` header. Prometheus requests OpenMetrics. The default is the text format.
        """
        encode, content_type = choose_encoder(accept)

        def render() -> bytes:
            with self._queue.showing(queue):
                return encode(MergedFigures(self.instruments.registry.collect(), others))

        return Exposition(content=await asyncio.to_thread(render), content_type=content_type)

    def _count_tool_call(self, event: ToolCallFinished) -> None:
        # Labels contain only names of known tools, because a model can invent any number of names.
        names = (event.toolset, event.call.name) if event.toolset is not None else _UNKNOWN_TOOL
        self.instruments.tool_calls.labels(*names, event.message.status).inc()
        self.instruments.tool_call_duration.labels(*names).observe(event.elapsed_seconds)

    def _count_model_failure(self, event: AttemptDiscarded | ModelSwitched | ContextOverflowed) -> None:
        match event:
            case AttemptDiscarded():
                self.instruments.llm_attempts_discarded.labels(self._models.of(event.model)).inc()
            case ModelSwitched():
                self.instruments.llm_failovers.labels(self._models.of(event.from_model)).inc()
            case ContextOverflowed():
                self.instruments.llm_context_overflows.labels(self._models.of(event.model)).inc()

    def _spend_for_summaries(self, stats: RequestStats) -> None:
        """Count the cost of summaries for each model. If the models are unknown, the label `model` is empty."""
        for model, spent in [(each.model, each.stats) for each in stats.summaries] or [("", stats)]:
            self.spend(spent, model=model, purpose="compaction")

    def _count_compaction(self, event: HistoryCompacted | CompactionFailed | ToolResultsMasked) -> None:
        instruments = self.instruments
        match event:
            case HistoryCompacted():
                instruments.compactions.labels(event.strategy).inc()
                self._spend_for_summaries(event.stats)
            case CompactionFailed():
                instruments.compactions_failed.inc()
                self._spend_for_summaries(event.stats)
            case ToolResultsMasked():
                instruments.compactions.labels("mask").inc()
                instruments.tool_results_masked.inc(event.count)


_NANOSECONDS = 1_000_000_000


class RunMetrics:
    def __init__(
        self, metrics: Metrics, *, source: str | None, model: str | None = None, replays: ReplayNotes | None = None
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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for operation in self._timeline.close(CANCELLED):
            if isinstance(operation, ModelCall):
                self._took(operation)
        unsaid = _less(self._total, self._seen)
        if unsaid != NOTHING_SPENT:
            self._metrics.spend(unsaid, model=self._model, purpose="investigation")
        if self._source is not None:
            self._count_end(self._source, closed=kind is None or not issubclass(kind, Exception))

    def note(self, event: AgentEvent) -> None:
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
                pass  # not an investigation
            case RunFailed():
                self._metrics.investigation_finished(outcome="failed", source=source, answered_by=None)
            case None:
                outcome: Literal["cancelled", "failed"] = "cancelled" if closed else "failed"
                self._metrics.investigation_finished(outcome=outcome, source=source, answered_by=None)


def _less(total: RequestStats, counted: RequestStats) -> RequestStats:
    """Return `total` minus `counted` for each field. Negative differences become 0."""
    left = {
        field.name: max(0, getattr(total, field.name) - getattr(counted, field.name))
        for field in fields(RequestStats)
        if field.name not in {"estimated", "cost", "compaction_cost", "summaries"}
    }
    cost = total.cost - counted.cost
    return RequestStats(**left, cost=cost if cost > 1e-9 else 0.0)
