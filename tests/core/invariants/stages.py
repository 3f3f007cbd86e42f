"""What the property tests of single stages share: settings, policies, contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from holmes.core.policies import POLICY_NAMES, named_policy
from holmes.core.truncation.context import CompactionContext, HistoryBudget
from holmes.tokens import make_counter
from holmes.tokens.history import History
from holmes.values.messages import AssistantMessage, Message, UserMessage
from holmes.values.tools import Tool
from tests.core.truncation.summaries import RecordingSteps
from tests.support.counting_model import CountingModel, EventLog
from tests.support.long_form import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from holmes.core.policy import ContextPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.model import ChatModel
    from holmes.values.tools import ResultStore

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
EXAMPLES = count(long=1_000, short=100)
MANY = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW)
FEW = settings(MANY, max_examples=count(long=20, short=5))

TOOLS = (
    Tool(name="kubectl_get", description="Get a resource of the cluster."),
    Tool(name="kubectl_logs", description="Read the logs of a pod."),
)
MEGABYTES = st.sampled_from([1_000_000, 1_200_000, 1_500_000, 2_000_000, 5_000_000])
WINDOWS = st.sampled_from([3_000, 4_000, 6_000, 8_000])
POLICIES: SearchStrategy[ContextPolicy] = st.sampled_from(POLICY_NAMES).map(named_policy)
SUMMARY = AssistantMessage(text="The checkout pods of shop were looked at; the database refuses connections so far.")

# One tokenizer memo for all examples of a process: what is tested here is not how often something is counted.
_COUNTERS = {counting: make_counter("o200k_base", counting) for counting in ("exact", "estimate")}


def counter_of(policy: ContextPolicy) -> TokenCounter:
    """What counts under `policy`."""
    return _COUNTERS[policy.counting]


def context_of(
    model: ChatModel,
    policy: ContextPolicy,
    *,
    store: ResultStore | None = None,
    summary_model: ChatModel | None = None,
    log: EventLog | None = None,
) -> CompactionContext:
    """A context around `model`, whose runner refuses a step name that is used twice, as a durable one would."""
    return CompactionContext(
        model=model,
        budget=HistoryBudget(
            window_tokens=model.limits.context_window_tokens,
            reserve_tokens=model.limits.output_reserve_tokens,
            max_output_tokens=model.limits.max_output_tokens,
            policy=policy,
        ),
        tools=TOOLS,
        store=store,
        emit=log or EventLog(),
        steps=RecordingSteps(),
        counter=counter_of(policy),
        prompt="Write down where this investigation stands.",
        step_name="step-7/compaction-0",
        summary_model=summary_model,
    )


def summarising(window_tokens: int, policy: ContextPolicy) -> CountingModel:
    """A model that writes a good summary, and counts as `policy` does."""
    return CountingModel(
        lambda _: SUMMARY,
        window_tokens=window_tokens,
        max_output_tokens=window_tokens // 8,
        counter=counter_of(policy),
    )


def history_of(messages: Sequence[Message], policy: ContextPolicy) -> History:
    """`messages` counted as `policy` says."""
    return History(messages, counter_of(policy))


def requests_of(messages: Sequence[Message]) -> list[UserMessage]:
    """What the user said."""
    return [message for message in messages if isinstance(message, UserMessage) and message.kind == "request"]
