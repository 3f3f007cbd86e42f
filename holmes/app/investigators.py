"""Investigators for the server: one for each model that is asked for, opened when it is first needed and then kept.

What one run needs of its own (recorded steps, a budget, an approver) comes with the run. The tools of a run are tasks
that its first event starts, so a context variable that is set before reaches all of them, and those of no other run.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from holmes.app.cluster import require_cluster
from holmes.app.investigator import Guards, open_assembly, result_store
from holmes.app.requests import AskRequest, RunParts
from holmes.app.toolsets import watch_toolsets
from holmes.investigations.queue.budget import Budget, Budgeted
from holmes.investigations.queue.queue import repeat, running
from holmes.settings.model import BUILTIN_MODEL
from holmes.telemetry.readers import observed, traced
from holmes.telemetry.runs import ReplayNotes, RunAttributes
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from types import TracebackType

    from holmes.app.investigator import Assembly, Investigator
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
    """Asks the approver of the run that it is called in; nobody is here when that run has none."""

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        """What the run's approver decides."""
        approver = _APPROVER.get()
        return None if approver is None else await approver.decide(invocation, description)


async def with_approver(
    events: AsyncGenerator[AgentEvent, None], approver: Approver
) -> AsyncGenerator[AgentEvent, None]:
    """`events` of a run whose calls `approver` answers for. Nothing of the run may have been read yet."""
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


CHAT: Final = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigatorsParts:
    """What all runs share. `results` is None for files; `spent_today` gives US dollars.

    `toolsets` runs as long as the investigators; None for one of their own.
    """

    redactor: Redactor | None
    results: ResultStore | None
    spent_today: Callable[[], Awaitable[float]]
    telemetry: Telemetry
    toolsets: ToolsetWatch[OpenToolsets] | None = None


class Investigators:
    """Answers questions with any model of the configuration; what they do is counted and traced."""

    def __init__(self, settings: Settings, parts: InvestigatorsParts) -> None:
        self.settings = settings
        self.results = parts.results
        if parts.results is None and settings.storage.results_enabled:
            self.results = result_store(settings)
        self._parts = parts
        self.toolsets = parts.toolsets or watch_toolsets(settings, redactor=parts.redactor)
        self._opened: dict[str, Assembly] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Begin to check the toolsets; nothing else is opened yet."""
        await self._stack.__aenter__()
        await self._stack.enter_async_context(running(repeat(self.toolsets.step, 0), "holmes-toolsets"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened."""
        await self._stack.__aexit__(kind, error, trace)

    def model_names(self) -> tuple[str, ...]:
        """What can be asked for: the chosen model first, then those of the model list and `builtin/triage`."""
        chain = (entry.name for entry in self.settings.model_chain())
        return tuple(dict.fromkeys((self.settings.model.model, *self.settings.model_names(), *chain, BUILTIN_MODEL)))

    async def ask(
        self, request: AskRequest, *, model: str | None = None, parts: RunParts | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Chat with `model` (None: the general one), see `Investigator.ask`.

        Raises `ConfigError` for a model that is not configured, `ClusterUnreachable` when no cluster answers.
        """
        events = (await self._investigator(model)).ask(request, parts)
        if parts and parts.approver:
            events = with_approver(events, parts.approver)
        name, telemetry = self.require_model(model), self._parts.telemetry
        events = traced(events, telemetry.tracer, RunAttributes(source=CHAT, model=name))
        return observed(events, telemetry.metrics, source=CHAT, model=name)

    async def investigate(
        self, record: InvestigationRecord, steps: StepRunner, spent: float
    ) -> AsyncGenerator[AgentEvent, None]:
        """Start or go on with an investigation of the queue. Raises as `ask` does, and when the cluster is away now."""
        await require_cluster(self.settings)
        budget = self.budget(cost_limit(record, self.settings.server.max_cost), spent)
        model = self.require_model(BUILTIN_MODEL if record.without_llm else record.model)
        replays = ReplayNotes(steps)
        parts = RunParts(steps=replays, wrap_model=lambda inner: budgeted(inner, budget))
        events = (await self._investigator(model)).ask(AskRequest(question=record.question), parts)
        attributes = RunAttributes(source=record.source, conversation_id=record.id, model=model)
        events = traced(events, self._parts.telemetry.tracer, attributes, replays=replays)
        return observed(events, self._parts.telemetry.metrics, source=None, model=model, replays=replays)

    def count_finished(self, record: InvestigationRecord) -> None:
        """Count an investigation that has ended for good."""
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
        """What one run may cost: `max_cost`, or what is configured, and what is left of today. See `Budget`."""
        server = self.settings.server
        return Budget(
            max_cost=server.max_cost if max_cost is None else max_cost,
            max_cost_per_day=server.max_cost_per_day,
            spent_today=self._parts.spent_today,
            spent=spent,
            keep=keep,
        )

    def require_model(self, model: str | None) -> str:
        """The name of the model that `model` stands for (None: the general one). Raises `ConfigError`."""
        name = model or self.settings.model.model
        if why := self.settings.left_out_models.get(name):
            raise ConfigError(why)
        if name not in self.model_names():
            raise ConfigError(f"unknown model {name!r}; there are: {', '.join(self.model_names())}")
        return name

    async def _investigator(self, model: str | None) -> Investigator:
        name = self.require_model(model)
        toolsets = await self.toolsets.current()
        async with self._opening:
            if name not in self._opened:
                settings = replace(self.settings, model=self.settings.model.model_copy(update={"model": name}))
                guards = Guards(approver=RunApprover(), redactor=self._parts.redactor, store=self.results)
                opened = open_assembly(settings, guards, self.toolsets.current)
                self._opened[name] = await self._stack.enter_async_context(opened)
            return self._opened[name].with_toolsets(toolsets)


def cost_limit(record: InvestigationRecord, general: float | None) -> float | None:
    """What an investigation may cost; None for no limit.

    A route is part of the configuration, so that it may set more than the general limit. Clients may only ask for less.
    """
    if record.max_cost is None or general is None:
        return general if record.max_cost is None else record.max_cost
    return record.max_cost if record.route else min(record.max_cost, general)


def budgeted(model: ChatModel, budget: Budget) -> ChatModel:
    """`model` under `budget`; the one that costs nothing as it is."""
    return model if model.name == BUILTIN_MODEL else Budgeted(model, budget)
