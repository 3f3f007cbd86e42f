"""Compacts a conversation or measures its size between two questions.

During a question, `holmes.core.loop_run` compacts it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from holmes.core.hooks import CompactContext, ContextPressure, MessageCount
from holmes.core.loop_run import LoopRun
from holmes.core.truncation.context import budget_of, is_cooling_down
from holmes.core.truncation.input_context_window_limiter import compact_on_request
from holmes.values.errors import HolmesError
from holmes.values.events import HistoryReplaced
from holmes.values.messages import AssistantMessage, SystemMessage, ToolMessage
from holmes.values.steps import stream_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holmes.core.loop_run import LoopParts
    from holmes.core.policy import ContextPolicy
    from holmes.core.truncation.context import HistoryBudget
    from holmes.tokens.history import History
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import EmitEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    """How much of the context window is used, in tokens as the provider counts them.

    `by_role` is the size of the messages of each role, `schema_tokens` is the size of the tool schemas, and
    `reserve_tokens` is reserved for the reply. `policy` is the name of the policy.

    `compaction` states when the loop compacts next. If it is `off`, the loop compacts only after an overflow. If it is
    `due`, the loop compacts before the next request. If it is `resting`, a trigger fired, but the last compaction is
    too recent. If it is `later`, the loop compacts above `trigger_tokens` tokens or after `messages_left` more
    messages. If the number of messages is not limited, `messages_left` is None.
    """

    model: str
    policy: str
    window_tokens: int
    reserve_tokens: int
    trigger_tokens: int
    schema_tokens: int
    by_role: tuple[tuple[str, int], ...]
    messages: int
    compaction: Literal["off", "due", "resting", "later"] = "later"
    messages_left: int | None = None

    @property
    def used_tokens(self) -> int:
        """The tokens that messages and tools use."""
        return self.schema_tokens + sum(tokens for _, tokens in self.by_role)

    @property
    def used_share(self) -> float:
        """How much of the context window is used: from 0 to 1, or above 1 after an overflow."""
        return self.used_tokens / max(1, self.window_tokens)


def compact_conversation(parts: LoopParts, messages: Sequence[Message]) -> AsyncGenerator[AgentEvent, None]:
    """Compact `messages` now. The last event is `HistoryReplaced` or `RunFailed`."""

    async def produce(emit: EmitEvent) -> None:
        run = await LoopRun.begin(messages, parts, emit)
        try:
            context = run.compaction_context("compact")
            run.adopt(await compact_on_request(run.history, context, summarise=True))
        except HolmesError as error:
            await emit(run.failed(error))
        else:
            await emit(HistoryReplaced(messages=run.history.messages(), stats=run.stats))

    return stream_events(produce)


async def context_usage(parts: LoopParts, messages: Sequence[Message]) -> ContextUsage:
    """Return how much of the first model's context window `messages` use, and when the loop compacts them."""

    async def ignore(_: AgentEvent) -> None:
        return None

    run = await LoopRun.begin(messages, parts, ignore)
    return await asyncio.to_thread(_usage, run)


def _usage(run: LoopRun) -> ContextUsage:
    history, current = run.history, run.models.current
    context = run.compaction_context("usage")
    limits = _Limits.of(context.policy, budget_of(history, context))
    budget = limits.budget
    by_role: dict[str, int] = {}
    for message, tokens in zip(history, history.token_counts(), strict=True):
        by_role[_role(message)] = by_role.get(_role(message), 0) + tokens
    calibrated = current.calibration.provider_tokens
    counted = sum(not isinstance(message, SystemMessage) for message in history)
    return ContextUsage(
        model=current.model.name,
        policy=current.policy.name,
        window_tokens=calibrated(budget.window_tokens),
        reserve_tokens=run.models.output_tokens,
        trigger_tokens=calibrated(limits.trigger_tokens),
        schema_tokens=calibrated(budget.schema_tokens),
        by_role=tuple((role, calibrated(tokens)) for role, tokens in by_role.items()),
        messages=len(history),
        compaction=_next_compaction(history, limits),
        messages_left=None if limits.messages is None else limits.messages - counted,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The sizes above which triggers and hooks compact a conversation.

    `budget` contains the triggers that no automatic hook replaces. Hooks with a condition on the number of turns or
    tool calls are ignored, because these numbers belong to a run, not to a conversation.
    """

    enabled: bool
    trigger_tokens: int
    messages: int | None
    budget: HistoryBudget

    @classmethod
    def of(cls, policy: ContextPolicy, budget: HistoryBudget) -> _Limits:
        own = replace(budget, policy=policy.without_automatic_triggers())
        hooks = tuple(hook for hook in policy.hooks if isinstance(hook.action, CompactContext))
        tokens, messages = [own.history_limit_tokens + own.schema_tokens], [own.policy.trigger.messages]
        for hook in hooks:
            match hook.condition:
                case ContextPressure(threshold=None):
                    tokens.append(budget.history_limit_tokens + budget.schema_tokens)
                    messages.append(policy.trigger.messages)
                case ContextPressure(threshold=threshold):
                    tokens.append(int((budget.window_tokens - budget.reserve_tokens) * (threshold or 1.0)))
                case MessageCount(threshold=count):
                    messages.append(count)
                case _:
                    pass
        return cls(
            enabled=own.policy.trigger.enabled or bool(hooks),
            trigger_tokens=min(tokens),
            messages=min((count for count in messages if count is not None), default=None),
            budget=own,
        )


def _next_compaction(history: History, limits: _Limits) -> Literal["off", "due", "resting", "later"]:
    """Return when the loop compacts next."""
    if not limits.enabled:
        return "off"
    budget = limits.budget
    over_tokens = history.tokens() + budget.schema_tokens > limits.trigger_tokens
    counted = sum(not isinstance(message, SystemMessage) for message in history)
    if not over_tokens and (limits.messages is None or counted <= limits.messages):
        return "later"
    fits = not history.exceeds(budget.hard_limit_tokens)
    return "resting" if fits and is_cooling_down(history, budget) else "due"


def _role(message: Message) -> str:
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, AssistantMessage):
        return "assistant"
    return "tool" if isinstance(message, ToolMessage) else "user"
