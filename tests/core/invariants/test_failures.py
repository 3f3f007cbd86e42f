"""When the summary fails, the provider overflows for ever, or a request costs and fails; and what a summary may ask."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policies import named_policy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.core.truncation.context import budget_of
from holmes.core.truncation.input_context_window_limiter import (
    compact_if_necessary,
    compact_on_request,
)
from holmes.values.errors import CompactionInsufficientError, ContextOverflow, ModelError
from holmes.values.events import AnswerFinished, RunFailed
from holmes.values.messages import AssistantMessage, Message
from holmes.values.stats import RequestStats
from tests.core.invariants.failures import FAILURES, NEVER_STORED, PAID
from tests.core.invariants.runs import PROMPTS, REFUSAL, Script, scripts
from tests.core.invariants.stages import (
    FEW,
    MANY,
    POLICIES,
    SUMMARY,
    WINDOWS,
    context_of,
    counter_of,
    history_of,
    requests_of,
)
from tests.core.invariants.test_stages import LINES, with_line
from tests.core.truncation.summaries import RecordingSteps
from tests.support.conversations import whole_histories
from tests.support.counting_model import CountingModel, EventLog, pairing_errors, tool_call
from tests.support.result_stores import FullDisk, MemoryStore
from tests.support.toolsets import FunctionToolset, echo, tool

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy
    from holmes.values.events import AgentEvent
    from holmes.values.model import ModelReply, ModelRequest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Generating overly large repr")]
MOST_SUMMARY_REQUESTS = 12


@pytest.mark.timeout(600)
@pytest.mark.row("I8", "I12")
@MANY
@given(
    whole_histories(12, 250),
    POLICIES,
    WINDOWS,
    st.sampled_from(sorted(FAILURES)),
    st.sampled_from([MemoryStore, FullDisk, lambda: None]),
)
async def test_a_summary_that_fails_leaves_a_valid_conversation(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, failure: str, store: type[MemoryStore]
) -> None:
    await check_failed_summary(messages, policy, window, failure, store())


@pytest.mark.row("I8", "I12")
@FEW
@given(whole_histories(8, 250), LINES, POLICIES, WINDOWS, st.sampled_from(sorted(FAILURES)))
async def test_a_summary_that_fails_leaves_a_valid_conversation_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], policy: ContextPolicy, window: int, failure: str
) -> None:
    await check_failed_summary(with_line(messages, *line), policy, window, failure, MemoryStore())


async def check_failed_summary(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, failure: str, store: MemoryStore | None
) -> None:
    model = CountingModel(
        FAILURES[failure],
        window_tokens=window,
        max_output_tokens=window // 8,
        counter=counter_of(policy),
        refusal_stats=REFUSAL,
    )
    log = EventLog()
    context = context_of(model, policy, store=store, log=log)
    history = history_of(messages, policy)
    try:
        outcome = await compact_if_necessary(history, context)
        if outcome.history is history and not model.raw_requests:
            outcome = await compact_on_request(history, replace(context, step_name="step-8/hook-compact"))
    except CompactionInsufficientError:
        assert model.charged == []  # nothing is paid for a history that cannot fit
        return
    after = outcome.history
    assert pairing_errors(after) == []
    assert after[0] is messages[0]
    assert requests_of(after.messages())[0] is requests_of(messages)[0]
    assert any(message is requests_of(messages)[-1] for message in after)
    assert after.tokens() <= max(budget_of(after, context).hard_limit_tokens, history.tokens() - 1)
    said = "\n".join(message.text for message in after)
    assert [text for text in NEVER_STORED if text in said] == []
    paid = sum((stats for _, stats in model.charged), RequestStats())
    assert (outcome.stats.calls, outcome.stats.total_tokens) == (paid.calls, paid.total_tokens)
    assert outcome.stats.cost == pytest.approx(paid.cost)


@pytest.mark.timeout(600)
@pytest.mark.row("I15")
@MANY
@given(
    whole_histories(14, 400),
    POLICIES,
    WINDOWS,
    st.sampled_from([None, 2_000, 4_000, 16_000]),
    st.sampled_from(["good", *sorted(FAILURES)]),
)
async def test_every_summary_request_fits_the_window_of_its_own_model(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, other: int | None, failure: str
) -> None:
    await check_summary_requests(messages, policy, (window, other), failure)


@pytest.mark.row("I15")
@FEW
@given(whole_histories(8, 400), LINES, POLICIES, WINDOWS, st.sampled_from([None, 2_000, 4_000, 16_000]))
async def test_every_summary_request_fits_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], policy: ContextPolicy, window: int, other: int | None
) -> None:
    await check_summary_requests(with_line(messages, *line), policy, (window, other), "good")


async def check_summary_requests(
    messages: tuple[Message, ...], policy: ContextPolicy, windows: tuple[int, int | None], failure: str
) -> None:
    answer = FAILURES.get(failure, lambda _: SUMMARY)
    counter = counter_of(policy).exact  # a provider does not estimate
    models = [
        CountingModel(answer, window_tokens=window, max_output_tokens=max(256, window // 8), counter=counter)
        for window in windows
        if window is not None
    ]
    context = context_of(models[0], policy, summary_model=models[1] if len(models) > 1 else None)
    history = history_of(messages, policy)
    for operation in (compact_if_necessary, compact_on_request):
        try:
            await operation(history, replace(context, step_name=operation.__name__))
        except CompactionInsufficientError:
            return
        if any(model.raw_requests for model in models):
            break
    for model in models:
        assert model.refused == 0
        assert len(model.raw_requests) <= MOST_SUMMARY_REQUESTS


@pytest.mark.timeout(600)
@pytest.mark.row("I10", "I12")
@MANY
@given(scripts(most_rounds=6), st.integers(0, 8), st.sampled_from([None, 1_500, 3_000, 200_000]), st.integers(1, 3))
async def test_a_provider_that_always_overflows_ends_soon_with_a_clear_error(
    script: Script, good_replies: int, says: int | None, chain: int
) -> None:
    left = good_replies

    def answer(request: ModelRequest) -> AssistantMessage | ModelError:
        nonlocal left
        if request.tool_choice == "none":
            return SUMMARY
        left -= 1
        if left < 0:
            return ContextOverflow("prompt is too long", provider="p", model="m", window_tokens=says, stats=PAID)
        return AssistantMessage(text="", tool_calls=(tool_call(f"n{left}", "echo", '{"text": "%s"}' % ("x " * 300)),))

    models = [
        CountingModel(
            answer, window_tokens=script.window_tokens * (1 + number), max_output_tokens=500, refusal_stats=PAID
        )
        for number in range(chain)
    ]
    last = await end_of(models, script)
    assert isinstance(last, RunFailed)
    assert "too long" in last.error or "does not fit" in last.error or "tokens exceed" in last.error
    assert pairing_errors(last.messages) == []
    requests = [request for model in models for request in model.raw_requests if request.tool_choice == "auto"]
    assert len(requests) <= good_replies * 2 + 2 * chain
    assert sum(len(model.raw_requests) for model in models) <= len(requests) + MOST_SUMMARY_REQUESTS * (
        good_replies + 2
    )
    assert_paid(models, last)


@pytest.mark.timeout(600)
@pytest.mark.row("I12")
@MANY
@given(scripts(most_rounds=6), st.lists(st.sampled_from(["call", "call", "call", "fail", "overflow"]), max_size=12))
async def test_a_chain_of_failing_models_costs_what_its_providers_billed(script: Script, plan: list[str]) -> None:
    moves = iter(plan)
    number = 0

    def answer(request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        nonlocal number
        if request.tool_choice == "none":
            return FAILURES["alternating"](request)
        number += 1
        match next(moves, "end"):
            case "fail":
                return ModelError("down", provider="p", model="m", retryable=False, stats=PAID)
            case "overflow":
                return ContextOverflow("prompt is too long", provider="p", model="m", stats=PAID)
            case "end":
                return AssistantMessage(text="The database is down.")
            case _:
                text = "word " * (50 * number)
                return AssistantMessage(text="", tool_calls=(tool_call(f"n{number}", "echo", f'{{"text": "{text}"}}'),))

    models = [
        CountingModel(answer, window_tokens=script.window_tokens * size, max_output_tokens=500, refusal_stats=REFUSAL)
        for size in (1, 2, 4)
    ]
    last = await end_of(models, script)
    assert pairing_errors(last.messages) == []
    assert_paid(models, last)


async def end_of(models: list[CountingModel], script: Script) -> AnswerFinished | RunFailed:
    """The last event of a run over `models`."""
    policy = named_policy(script.policy)
    parts = LoopParts(
        models=tuple(LoopModel(model=model, policy=policy) for model in models),
        executor=ToolExecutor([FunctionToolset(bodies=((tool("echo", "text"), echo),))]),
        store=MemoryStore(),
        prompts=PROMPTS,
        steps=RecordingSteps(),
    )
    last: AgentEvent | None = None
    async for event in ToolCallingLLM(parts, max_steps=40).call_stream(script.start):
        last = event
    assert isinstance(last, AnswerFinished | RunFailed)
    return last


def assert_paid(models: list[CountingModel], last: AnswerFinished | RunFailed) -> None:
    """What the run says it cost is what all providers billed, failed requests included."""
    paid = sum((stats for model in models for _, stats in model.charged), RequestStats())
    summaries = [stats for model in models for request, stats in model.charged if request.tool_choice == "none"]
    assert (last.stats.calls, last.stats.total_tokens) == (paid.calls, paid.total_tokens)
    assert last.stats.cost == pytest.approx(paid.cost)
    assert last.stats.compaction_tokens == sum(stats.total_tokens for stats in summaries)
    assert last.stats.compaction_cost == pytest.approx(sum(stats.cost for stats in summaries))
