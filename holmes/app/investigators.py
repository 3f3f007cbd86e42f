"""Manages the investigators of the server. Each requested model has one in each cluster, which is opened on first use.

Each run has its own recorded steps, budget and approver. A context variable contains the approver, but only while the
first event of a run is produced. The tool tasks of the run inherit the variable at this time, so the tools of other
runs cannot read it.
"""

from __future__ import annotations

from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from holmes.app.cluster_desks import ClusterDesks
from holmes.app.investigator import Guards, result_store
from holmes.app.requests import AskRequest, RunParts
from holmes.app.toolsets import watch_toolsets
from holmes.investigations.queue.budget import Budget, Budgeted
from holmes.settings.model import BUILTIN_MODEL
from holmes.telemetry.readers import observed, traced
from holmes.telemetry.runs import ReplayNotes, RunAttributes
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from types import TracebackType

    from holmes.app.investigator import Investigator
    from holmes.app.telemetry import Telemetry
    from holmes.app.toolsets import OpenToolsets
    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.investigations.records.values import InvestigationRecord
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.toolsets.watch import ToolsetWatch
    from holmes.values.events import AgentEvent
    from holmes.values.model import ChatModel
    from holmes.values.steps import StepRunner
    from holmes.values.tools import ResultStore, ToolInvocation

_APPROVER: ContextVar[Approver | None] = ContextVar("holmes_approver", default=None)


class RunApprover:
    """Delegates decisions to the approver of the current run."""

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        """Return the approver's decision, or None if the run has no approver."""
        approver = _APPROVER.get()
        return None if approver is None else await approver.decide(invocation, description)


async def _with_approver(
    events: AsyncGenerator[AgentEvent, None], approver: Approver
) -> AsyncGenerator[AgentEvent, None]:
    """Let `approver` decide on the tool calls of a run. The run must not have started."""
    async with aclosing(events):
        token = _APPROVER.set(approver)
        try:
            first = await anext(events, None)
        finally:
            _APPROVER.reset(token)
        if first is None:
            return
        yield first
        async for event in events:
            yield event


_CHAT: Final = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigatorsParts:
    """The parts that all runs share.

    If `results` is None, tool results are stored in files. `spent_today` returns today's cost in US dollars. `watch`
    creates the toolset watch of a cluster from its settings. By default, the watch checks the toolsets itself.
    """

    redactor: Redactor | None
    results: ResultStore | None
    spent_today: Callable[[], Awaitable[float]]
    telemetry: Telemetry
    watch: Callable[[Settings], ToolsetWatch[OpenToolsets]] | None = None


class Investigators:
    """Answers questions with any configured model, and records metrics and traces of the runs."""

    def __init__(self, settings: Settings, parts: InvestigatorsParts) -> None:
        self.settings = settings
        self.results = parts.results
        if parts.results is None and settings.storage.results_enabled:
            self.results = result_store(settings)
        self._parts = parts
        guards = Guards(approver=RunApprover(), redactor=parts.redactor, store=self.results)
        watch = parts.watch or (lambda own: watch_toolsets(own, redactor=parts.redactor))
        self.clusters = ClusterDesks(settings, guards, watch)

    async def __aenter__(self) -> Self:
        """Start the toolset checks. Each model and each further cluster is opened on first use."""
        await self.clusters.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the toolset checks, and close all models."""
        await self.clusters.__aexit__(kind, error, trace)

    def model_names(self) -> tuple[str, ...]:
        """Return the names of the chosen model, its fallbacks, the models of the model list and `builtin/triage`."""
        chain = (entry.name for entry in self.settings.model_chain())
        return tuple(dict.fromkeys((self.settings.model.model, *self.settings.model_names(), *chain, BUILTIN_MODEL)))

    async def ask(
        self,
        request: AskRequest,
        *,
        model: str | None = None,
        cluster: str | None = None,
        parts: RunParts | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a chat request with `model`, by default the configured model. See `Investigator.ask`.

        Raises `ConfigError` for an unknown model or cluster, and `ClusterUnreachable`.
        """
        events = (await self.investigator(model, cluster)).ask(request, parts)
        if parts and parts.approver:
            events = _with_approver(events, parts.approver)
        name, telemetry = self.require_model(model), self._parts.telemetry
        events = traced(events, telemetry.tracer, RunAttributes(source=_CHAT, model=name))
        return observed(events, telemetry.metrics, source=_CHAT, model=name)

    async def investigate(
        self, record: InvestigationRecord, steps: StepRunner, spent: float
    ) -> AsyncGenerator[AgentEvent, None]:
        """Start or resume a queued investigation.

        Raises `ConfigError` for an unknown model or cluster, and `ClusterUnreachable`.
        """
        await (await self.clusters.desk(record.cluster)).require_reachable()
        budget = self.budget(cost_limit(record, self.settings.server.max_cost), spent)
        model = self.require_model(BUILTIN_MODEL if record.without_llm else record.model)
        replays = ReplayNotes(steps)
        parts = RunParts(steps=replays, wrap_model=lambda inner: budgeted(inner, budget))
        investigator = await self.investigator(model, record.cluster)
        events = investigator.ask(AskRequest(question=record.question), parts)
        attributes = RunAttributes(source=record.source, conversation_id=record.id, model=model)
        events = traced(events, self._parts.telemetry.tracer, attributes, replays=replays)
        return observed(events, self._parts.telemetry.metrics, source=None, model=model, replays=replays)

    def count_finished(self, record: InvestigationRecord) -> None:
        """Count an investigation in the metrics if it has ended."""
        if record.state in {"answered", "failed", "cancelled"}:
            self._parts.telemetry.metrics.investigation_finished(
                outcome=record.state, source=record.source, answered_by=record.answered_by
            )

    def budget(
        self,
        max_cost: float | None = None,
        spent: float = 0.0,
        *,
        keep: Callable[[float], Awaitable[None]] | None = None,
    ) -> Budget:
        """Create the budget of one run. `max_cost` is by default the configured limit. The daily limit also applies."""
        server = self.settings.server
        return Budget(
            max_cost=server.max_cost if max_cost is None else max_cost,
            max_cost_per_day=server.max_cost_per_day,
            spent_today=self._parts.spent_today,
            spent=spent,
            keep=keep,
        )

    def require_model(self, model: str | None) -> str:
        """Return the name of an available model, by default the configured model. Raises `ConfigError`."""
        name = model or self.settings.model.model
        if why := self.settings.left_out_models.get(name):
            raise ConfigError(why)
        if name not in self.model_names():
            raise ConfigError(f"unknown model {name!r}; available models: {', '.join(self.model_names())}")
        return name

    async def investigator(self, model: str | None, cluster: str | None = None) -> Investigator:
        """Return the investigator of a model and a cluster, by default the configured ones, with the current toolsets.

        Raises `ConfigError` for an unknown model or cluster, and `ClusterUnreachable`.
        """
        name = self.require_model(model)
        return await (await self.clusters.desk(cluster)).investigator(name)


def cost_limit(record: InvestigationRecord, general: float | None) -> float | None:
    """Return the maximum cost of an investigation, or None if its cost is not limited.

    The limit of a route may be higher than the general limit, because the operator configures both. A client may
    request only a lower limit.
    """
    if record.max_cost is None or general is None:
        return general if record.max_cost is None else record.max_cost
    return record.max_cost if record.route else min(record.max_cost, general)


def budgeted(model: ChatModel, budget: Budget) -> ChatModel:
    """Limit the cost of `model` to `budget`. `builtin/triage` is free and needs no limit."""
    return model if model.name == BUILTIN_MODEL else Budgeted(model, budget)
