"""Counts what happens, for `/metrics`. One object serves a process.

Reads typed events and is told a few things that no event says. Cheap enough for every event of every run. Label values
come from a closed set or are cut off at a limit, so that nobody can blow up the number of series. For a scrape the
figures of the processes of one server are added up.
"""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from holmes import __version__
from holmes.telemetry.instruments import Instruments
from holmes.telemetry.queue_gauges import QueueGauges
from holmes.telemetry.run_metrics import RunMetrics
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
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prometheus_client.samples import Sample

    from holmes.telemetry.queue_gauges import QueueReading
    from holmes.telemetry.replays import ReplayNotes
    from holmes.values.events import AgentEvent
    from holmes.values.stats import RequestStats

OTHER: Final = "other"


class KnownValues:
    """A closed set; everything else is `other`."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)

    def of(self, value: str) -> str:
        """The label for `value`."""
        return value if value in self._values else OTHER


class LimitedValues:
    """The first `limit` different values; everything after them is `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: set[str] = set()

    def of(self, value: str) -> str:
        """The label for `value`."""
        if value in self._values:
            return value
        if len(self._values) >= self._limit:
            return OTHER
        self._values.add(value)
        return value


_FIRST_ONE_COUNTS: Final = frozenset({"holmes_build_info", "process_start_time_seconds"})


class MergedFigures(Collector):
    """`own` figures plus `others`: samples of the same name and labels become their sum."""

    def __init__(self, own: Iterable[Metric], others: Iterable[Metric]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """The families in the order of `own`, then those that only `others` have."""
        families: dict[str, Metric] = {}
        for each in (*self._own, *self._others):
            known = families.get(each.name)
            if known is None:
                families[each.name] = each
            elif each.name not in _FIRST_ONE_COUNTS:
                families[each.name] = _sum(known, each)
        yield from families.values()


def _sum(one: Metric, other: Metric) -> Metric:
    """Both are made by `Instruments`, so that their histograms have the same buckets, which stay together."""
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for each in (*one.samples, *other.samples):
        key = (each.name, tuple(sorted(each.labels.items())))
        known = samples.get(key)
        samples[key] = each if known is None else known._replace(value=known.value + each.value)
    summed = Metric(one.name, one.documentation, one.type, one.unit)
    summed.samples = list(samples.values())
    return summed


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
    """What a scrape gets. `content_type` names the format, which depends on what the scraper accepts."""

    content: bytes
    content_type: str


class Metrics:
    """The figures of one process.

    `models` are the names in the configuration, `models_without_llm` those of them that answer by rules.
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
        """A reader of one run, which knows more than single events say. See `holmes.telemetry.readers.observed`."""
        return RunMetrics(self, source=source, model=model, replays=replays)

    def observe(self, event: AgentEvent) -> None:
        """Count one event, of whatever run. Not together with `run`, which does it too."""
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
        """Count tokens, calls and money."""
        name = self._models.of(model) if model else ""
        instruments = self.instruments
        instruments.llm_calls.labels(name, purpose).inc(max(0, stats.calls))
        instruments.llm_cost.labels(name, purpose).inc(max(0.0, stats.cost))
        for kind, field in _KINDS:
            count = getattr(stats, field)
            if count > 0:
                instruments.llm_tokens.labels(name, purpose, kind).inc(count)

    def call_took(self, seconds: float, *, model: str, outcome: Literal["answered", "failed"]) -> None:
        """Count the time of one model call."""
        self.instruments.llm_call_duration.labels(self._models.of(model), outcome).observe(seconds)

    def investigation_finished(self, *, outcome: Outcome, source: str, answered_by: str | None) -> None:
        """Count an investigation that ended for good; `answered_by` is the name of the model."""
        who = "nobody"
        if outcome == "answered" and answered_by:
            who = "triage" if answered_by in self._without_llm else "llm"
        self.instruments.investigations_finished.labels(outcome, self._sources.of(source), who).inc()

    def alerts_received(self, *, firing: int, resolved: int, duplicates: int) -> None:
        """Count the alerts of one notification, after they were stored."""
        self.instruments.alerts_received.labels("firing").inc(firing)
        self.instruments.alerts_received.labels("resolved").inc(resolved)
        self.instruments.alerts_duplicates.inc(duplicates)

    def delivery(self, *, destination: str, outcome: DeliveryOutcome) -> None:
        """Count an attempt to tell a destination."""
        self.instruments.deliveries.labels(self._destinations.of(destination), outcome).inc()

    def toolsets(self, states: Mapping[str, str]) -> None:
        """How each toolset stands: enabled, failed or disabled."""
        self.instruments.toolset_up.clear()
        for name, state in states.items():
            if state != "disabled":
                self.instruments.toolset_up.labels(name).set(state == "enabled")

    def families(self) -> tuple[Metric, ...]:
        """All figures, for the process that shows them."""
        return tuple(self.instruments.registry.collect())

    async def exposition(
        self, queue: QueueReading | None, accept: str = "", others: Sequence[Metric] = ()
    ) -> Exposition:
        """All figures as text, with what `others` counted. `queue` is what the database says now, None for nothing.

        `accept` is the header of the request: Prometheus asks for OpenMetrics, everybody else gets the text format.
        """
        encode, content_type = choose_encoder(accept)

        def render() -> bytes:
            with self._queue.showing(queue):
                return encode(MergedFigures(self.instruments.registry.collect(), others))

        return Exposition(content=await asyncio.to_thread(render), content_type=content_type)

    def _count_tool_call(self, event: ToolCallFinished) -> None:
        # Only a name that a toolset has: a model can make up any number of others.
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
        """Count each model's part; all of it without a model when nobody said which one it was."""
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
