"""Histories with planted facts, scripted writers of summaries, and contexts, for the tests of the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.policy import ContextPolicy
from holmes.core.truncation.context import CompactionContext, HistoryBudget, measured
from holmes.core.truncation.plan import Room, plan_removal
from holmes.core.truncation.summary_message import largest_message_tokens
from holmes.core.truncation.summary_request import SummaryJob
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import (
    AssistantMessage,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCallId,
    ToolMessage,
    user_text,
)
from holmes.values.steps import DirectStepRunner
from holmes.values.tools import Tool
from tests.support.counting_model import CountingModel, EventLog, tool_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeVar

    from holmes.values.messages import Message
    from holmes.values.tools import ResultStore

    T = TypeVar("T")

COUNTER = TokenCounter()
TOOLS = (Tool(name="kubectl_get", description="Get a resource."), Tool(name="kubectl_logs", description="Read logs."))
TASK = "Why does checkout fail in namespace `shop`?"

# What the planted rounds say, and the assistant repeats in its own words for the first half.
PLANTED = (
    "checkout-7f9c8d6b5-x2k4q",
    "OOMKilled",
    "registry.example.com/shop/checkout:1.14.2",
    "ECONNREFUSED",
    "10.0.3.7:5432",
    "DATABASE_URL",
    "checkout-config",
    "CrashLoopBackOff",
)
FACTS = (
    "shop   checkout-7f9c8d6b5-x2k4q   0/1   CrashLoopBackOff   12   3h",
    "Last state: Terminated, reason OOMKilled, exit code 137, error",
    "Failed to start: image registry.example.com/shop/checkout:1.14.2",
    "ERROR dial 10.0.3.7:5432: ECONNREFUSED",
    'Error: configmap "checkout-config" not found, DATABASE_URL is missing',
)


class RecordingSteps(DirectStepRunner):
    """Keeps the names of steps and refuses one that is used twice, as a durable runner would."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        assert name not in self.names
        self.names.append(name)
        return await step()


def context_for(
    model: CountingModel,
    *,
    policy: ContextPolicy | None = None,
    store: ResultStore | None = None,
    summary_model: CountingModel | None = None,
    window_tokens: int | None = None,
    tools: tuple[Tool, ...] = TOOLS,
) -> CompactionContext:
    """A context around `model`. `window_tokens` is what Holmes believes, the model's own by default."""
    return CompactionContext(
        model=model,
        budget=HistoryBudget(
            window_tokens=window_tokens or model.limits.context_window_tokens,
            reserve_tokens=model.limits.output_reserve_tokens,
            max_output_tokens=model.limits.max_output_tokens,
            policy=policy or ContextPolicy(),
        ),
        tools=tools,
        store=store,
        emit=EventLog(),
        steps=RecordingSteps(),
        counter=COUNTER,
        prompt="Write down where this investigation stands.",
        step_name="step-7/compaction-0",
        summary_model=summary_model,
    )


def round_of(call_id: str, text: str, said: str = "next", stored: str | None = None) -> tuple[Message, ...]:
    """One reply with one call, and its result."""
    where = (StoredResult(id=ResultId(stored), path=None, size_bytes=1, media_type="text/plain"),) if stored else ()
    result = ToolMessage(
        call_id=ToolCallId(call_id),
        tool_name="kubectl_get",
        status="success",
        parts=(Text(text=text),),
        stored=where,
    )
    return (AssistantMessage(text=said, tool_calls=(tool_call(call_id),)), result)


def noise(number: int, lines: int) -> str:
    """Healthy pods."""
    return "\n".join(f"shop   web-{number}-{line}   1/1   Running   0   {line}h" for line in range(lines))


def history_of(rounds: int = 20, lines: int = 60, facts: Sequence[str] = FACTS, task: str = TASK) -> History:
    """A question, rounds with the facts, the first of which the assistant repeats, then healthy rounds."""
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text(task)]
    for number, fact in enumerate(facts):
        said = f"I see: {fact}" if number < len(facts) // 2 else "next"
        messages.extend(round_of(f"f{number}", f"{noise(number, 10)}\n{fact}", said))
    for number in range(rounds):
        messages.extend(round_of(f"c{number}", noise(number, lines)))
    return History(messages, COUNTER)


def job_for(history: History, context: CompactionContext, cap_tokens: int | None = None) -> SummaryJob:
    """What `compaction` asks `summary` for, without the comparison of entities."""
    context = measured(history, context)
    budget = context.budget
    plan = plan_removal(history, Room.of(budget, largest_message_tokens(budget.summary_tokens)), COUNTER)
    return SummaryJob(
        history=history,
        removed=plan.removed,
        context=context,
        cap_tokens=cap_tokens or budget.summary_tokens,
    )
