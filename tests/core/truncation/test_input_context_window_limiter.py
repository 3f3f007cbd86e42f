"""Compaction at the top of an iteration: when, what comes out, what it costs, and what happens when it fails."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import ContextPolicy, MaskingPolicy, SummaryPolicy, TriggerPolicy
from holmes.core.truncation.compaction import SUMMARY_HEADING
from holmes.core.truncation.context import CompactionContext, HistoryBudget, budget_of
from holmes.core.truncation.input_context_window_limiter import compact_after_overflow, compact_if_necessary
from holmes.core.truncation.plan import repair_pairing
from holmes.core.truncation.truncate import TRUNCATION_LINE
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.errors import CompactionInsufficientError, ContextOverflow, ModelError
from holmes.values.events import CompactionFailed, HistoryCompacted
from holmes.values.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelReply, ModelRequest
from holmes.values.stats import RequestStats
from holmes.values.steps import DirectStepRunner
from holmes.values.tools import Tool
from tests.core.truncation.test_plan import round_of
from tests.support.conversations import histories
from tests.support.counting_model import (
    CountingModel,
    EventLog,
    is_summary_request,
    model_reply,
    pairing_errors,
    tool_call,
)

TOOLS = (Tool(name="kubectl_get", description="Get a resource of the cluster."),)
SUMMARY = AssistantMessage(text="The checkout pod lacks its ConfigMap.")
COUNTER = TokenCounter()


# Only the summary and the truncation, so that a test sees which of them acted.
PLAIN = ContextPolicy(
    masking=MaskingPolicy(enabled=False), summary=SummaryPolicy(reminder=False, verify_entities=False)
)
AT_80 = replace(PLAIN, trigger=TriggerPolicy(threshold_pct=80))


def context_of(model: CountingModel, log: EventLog, policy: ContextPolicy = PLAIN) -> CompactionContext:
    return CompactionContext(
        model=model,
        tools=TOOLS,
        budget=HistoryBudget(
            window_tokens=model.limits.context_window_tokens,
            reserve_tokens=model.limits.output_reserve_tokens,
            max_output_tokens=model.limits.max_output_tokens,
            policy=policy,
        ),
        store=None,
        emit=log,
        steps=DirectStepRunner(),
        counter=COUNTER,
        prompt="Write down where this investigation stands.",
        step_name="step-1/compaction",
    )


def long_history(rounds: int = 30, words: int = 900, task: str = "Why does checkout fail?") -> History:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text(task)]
    for number in range(rounds):
        messages.extend(round_of(f"c{number}", f"round {number} " + "word " * words))
    return History(messages, COUNTER)


def answering(answer: AssistantMessage | ModelReply | ModelError) -> CountingModel:
    return CountingModel(lambda _: answer)


async def test_below_the_trigger_the_very_same_history_comes_back_and_nobody_is_asked() -> None:
    model, log, history = answering(SUMMARY), EventLog(), long_history(rounds=5)
    outcome = await compact_if_necessary(history, context_of(model, log))
    assert outcome.history is history
    assert (outcome.stats, model.requests, log.events) == (RequestStats(), [], [])


@pytest.mark.row("C1", "C2")
async def test_the_trigger_counts_reserve_system_prompt_and_schemas() -> None:
    history = long_history(rounds=10)
    total = history.tokens() + COUNTER.count_tools(TOOLS)
    for window, compacted in (((total + 2_000) * 20 // 19 + 1, False), ((total + 2_000) * 20 // 19 - 20, True)):
        model = CountingModel(lambda _: SUMMARY, window_tokens=window, max_output_tokens=2_000)
        outcome = await compact_if_necessary(history, context_of(model, EventLog()))
        assert (outcome.history is not history) == compacted


@pytest.mark.row("K1", "K2", "I2")
async def test_a_compacted_history_is_system_prompt_task_summary_last_question_tail() -> None:
    model, log = answering(SUMMARY), EventLog()
    messages = list(long_history(rounds=10).messages())
    messages.append(user_text("And the payment service?"))
    messages.extend(long_history(rounds=20).messages()[2:])
    history = History(repair_pairing(messages), COUNTER)
    outcome = await compact_if_necessary(history, context_of(model, log))
    after = outcome.history.messages()
    assert after[:2] == history.messages()[:2]
    assert after[0] is history[0]
    assert isinstance(after[2], UserMessage)
    assert (after[2].text, after[2].kind) == (f"{SUMMARY_HEADING}\n\n{SUMMARY.text}", "summary")
    assert after[3] == user_text("And the payment service?")
    assert after[4:] == history.messages()[-len(after[4:]) :]
    assert pairing_errors(after) == []
    budget = budget_of(history, context_of(model, log))
    tail_tokens = sum(map(COUNTER.count_message, after[4:]))
    assert 0.5 * budget.tail_tokens < tail_tokens <= budget.tail_tokens
    assert log.kinds == ["compaction_started", "history_compacted"]


@pytest.mark.row("S9")
async def test_the_summary_request_is_the_agents_own_request_plus_one_note() -> None:
    model, history = answering(SUMMARY), long_history()
    # Cut down so that history, prompt and a full reply fit the window: 95% is the trigger, the rest is the note's.
    history = History(history.messages()[:50], COUNTER)
    await compact_if_necessary(history, context_of(model, EventLog(), AT_80))
    (request,) = model.raw_requests
    assert request.tools == TOOLS
    assert request.tool_choice == "none"
    assert request.messages[:-1] == history.messages()
    note = request.messages[-1]
    assert isinstance(note, UserMessage)
    assert note.kind == "note"
    assert note.text.startswith("Write down where this investigation stands.")
    assert "Write at most 2," in note.text


@pytest.mark.row("S7", "S12")
async def test_what_it_cost_is_in_the_stats_and_the_events_add_up() -> None:
    model, log = answering(SUMMARY), EventLog()
    outcome = await compact_if_necessary(long_history(), context_of(model, log))
    assert outcome.stats.calls == len(model.requests)
    assert outcome.stats.cost == pytest.approx(0.01 * len(model.requests))
    assert outcome.stats.compaction_cost == outcome.stats.cost
    assert outcome.stats.compactions == 1
    assert sum_of_events(log) == outcome.stats


def sum_of_events(log: EventLog) -> RequestStats:
    total = RequestStats()
    for event in log.events:
        if isinstance(event, CompactionFailed | HistoryCompacted):
            total += event.stats
    return total


FAILURES: dict[str, AssistantMessage | ModelReply | ModelError] = {
    "exception": ModelError("503 overloaded", provider="p", model="m", retryable=True, stats=RequestStats(cost=0.5)),
    "overflow": ContextOverflow("too long", provider="p", model="m", window_tokens=16_000),
    "empty": AssistantMessage(text="  \n"),
    "tool call": AssistantMessage(text="Let me look.", tool_calls=(tool_call("z"),)),
    "cut off": replace(model_reply(SUMMARY), finish_reason="length"),
    "filter": replace(model_reply(SUMMARY), finish_reason="content_filter"),
    "refusal": AssistantMessage(text="I'm sorry, but I can't help with that."),
}


@pytest.mark.row("K7", "I8")
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_a_failed_summary_ends_in_a_truncated_valid_history_and_is_never_stored(
    failure: AssistantMessage | ModelReply | ModelError,
) -> None:
    model, log, history = answering(failure), EventLog(), long_history()
    outcome = await compact_if_necessary(history, context_of(model, log))
    after = outcome.history.messages()
    assert isinstance(after[2], UserMessage)
    assert (after[2].text, after[2].kind) == (TRUNCATION_LINE, "summary")
    assert pairing_errors(after) == []
    assert outcome.history.tokens() < history.tokens()
    assert after[-2:] == history.messages()[-2:]
    assert log.kinds == ["compaction_started", "compaction_failed", "history_compacted"]
    assert sum_of_events(log) == outcome.stats
    assert outcome.stats.compactions == 1
    paid = 0.5 if isinstance(failure, ModelError) and failure.stats else 0.0
    assert outcome.stats.cost == pytest.approx(
        len(model.requests) * (paid if isinstance(failure, ModelError) else 0.01)
    )


async def test_a_summary_that_fails_in_place_is_asked_for_again_as_plain_text() -> None:
    def answer(request: ModelRequest) -> AssistantMessage | ModelError:
        return AssistantMessage(text="") if request.tools else SUMMARY

    model, log = CountingModel(answer), EventLog()
    history = History(long_history().messages()[:50], COUNTER)
    outcome = await compact_if_necessary(history, context_of(model, log, AT_80))
    assert log.kinds == ["compaction_started", "history_compacted"]
    stand_in = outcome.history[2]
    assert isinstance(stand_in, UserMessage)
    assert (stand_in.text, stand_in.kind) == (f"{SUMMARY_HEADING}\n\n{SUMMARY.text}", "summary")
    flattened = model.raw_requests[1]
    assert flattened.tools == ()
    system, transcript = flattened.messages
    assert isinstance(system, SystemMessage)
    assert isinstance(transcript, UserMessage)
    assert "## result of t (success)\nround 0 word" in transcript.text
    assert outcome.stats.calls == len(model.requests) >= 2


async def test_a_history_of_many_windows_is_summarised_in_at_most_four_pieces_that_each_fit() -> None:
    model, log = answering(SUMMARY), EventLog()
    outcome = await compact_if_necessary(long_history(rounds=300), context_of(model, log))
    assert 1 < len(model.requests) <= 4
    assert log.kinds[-1] == "history_compacted"
    later = model.requests[1][1]
    assert isinstance(later, UserMessage)
    assert later.text.startswith(f"Summary of the earlier parts:\n{SUMMARY.text}\n\nTranscript, part 2 of")
    assert outcome.history.tokens() < 10_000


@pytest.mark.row("K16")
async def test_a_summary_that_does_not_shrink_is_not_adopted() -> None:
    model, log = answering(AssistantMessage(text="blah " * 40_000)), EventLog()
    history = History(long_history().messages()[:50], COUNTER)
    outcome = await compact_if_necessary(history, context_of(model, log, AT_80))
    assert "far too long to shorten the conversation" in next(
        event.reason for event in log.events if isinstance(event, CompactionFailed)
    )
    assert outcome.history.tokens() < history.tokens()
    assert TRUNCATION_LINE in [message.text for message in outcome.history if isinstance(message, UserMessage)]


async def test_a_later_truncation_keeps_the_earlier_summary() -> None:
    summary = user_text("Summary of before.", kind="summary")
    messages = long_history().messages()
    history = History((*messages[:2], summary, *messages[2:]), COUNTER)
    outcome = await compact_if_necessary(history, context_of(answering(FAILURES["empty"]), EventLog()))
    kept = outcome.history[2]
    assert isinstance(kept, UserMessage)
    assert kept.text == f"Summary of before.\n{TRUNCATION_LINE}"
    again = await compact_after_overflow(outcome.history, context_of(answering(SUMMARY), EventLog()))
    later = again.history[2]
    assert isinstance(later, UserMessage)
    assert (later.parts, later.kind) == (kept.parts, "summary")


async def test_a_giant_newest_round_is_cut_without_asking_the_model() -> None:
    messages = [*long_history(rounds=0).messages(), *round_of("a", "word " * 40_000)]
    model, log = answering(SUMMARY), EventLog()
    outcome = await compact_if_necessary(History(messages, COUNTER), context_of(model, log))
    assert model.requests == []
    result = outcome.history[-1]
    assert isinstance(result, ToolMessage)
    assert "Cut to fit the context window" in result.text
    assert TRUNCATION_LINE not in [message.text for message in outcome.history if isinstance(message, UserMessage)]


@pytest.mark.row("C4")
async def test_switched_off_it_never_compacts_but_overflow_recovery_still_does() -> None:
    limits = replace(PLAIN, trigger=TriggerPolicy(enabled=False))
    history, model, log = long_history(), answering(SUMMARY), EventLog()
    assert (await compact_if_necessary(history, context_of(model, log, limits))).history is history
    outcome = await compact_after_overflow(history, context_of(model, log, limits))
    assert model.requests == []
    assert outcome.history.tokens() < 16_000
    assert outcome.stats == RequestStats(compactions=1)


@pytest.mark.row("S3")
@pytest.mark.parametrize("window", [None, 9_000])
async def test_after_an_overflow_about_half_of_the_real_window_is_used(window: int | None) -> None:
    history, log = long_history(), EventLog()
    context = context_of(answering(SUMMARY), log)
    context = replace(context, budget=replace(context.budget, window_tokens=window or 32_000))
    outcome = await compact_after_overflow(history, context)
    assert outcome.history.tokens() <= (window or 32_000) // 2
    assert outcome.history.messages()[:2] == history.messages()[:2]
    assert pairing_errors(outcome.history) == []
    (event,) = log.events
    assert isinstance(event, HistoryCompacted)
    assert event.strategy == "emergency"


async def test_an_overflow_below_half_of_the_window_still_shrinks_the_history() -> None:
    history = long_history(rounds=8)
    assert history.tokens() < 16_000
    outcome = await compact_after_overflow(history, context_of(answering(SUMMARY), EventLog()))
    assert outcome.history.tokens() <= 0.6 * history.tokens()


async def test_an_overflow_of_a_single_small_round_cuts_its_result() -> None:
    history = History([*long_history(rounds=0), *round_of("a", "word " * 2_000)], COUNTER)
    outcome = await compact_after_overflow(history, context_of(answering(SUMMARY), EventLog()))
    assert outcome.history.tokens() <= 0.6 * history.tokens()


@pytest.mark.row("I9")
async def test_when_nothing_is_left_to_cut_the_error_names_what_is_too_large() -> None:
    history = long_history(rounds=40, task="why " * 30_000)
    for compact in (
        compact_if_necessary(history, context_of(answering(SUMMARY), EventLog())),
        compact_after_overflow(history, context_of(answering(SUMMARY), EventLog())),
    ):
        with pytest.raises(CompactionInsufficientError, match=r"window of 32,000 tokens.*first question 30,\d+"):
            await compact


async def test_what_must_stay_is_checked_before_anything_is_paid() -> None:
    model = answering(SUMMARY)
    with pytest.raises(CompactionInsufficientError):
        await compact_if_necessary(long_history(rounds=40, task="why " * 30_000), context_of(model, EventLog()))
    assert model.requests == []


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(500, 6_000), st.sampled_from([*FAILURES.values(), SUMMARY]), st.booleans())
async def test_tokens_go_down_or_the_same_object_comes_back(
    messages: tuple[Message, ...],
    window: int,
    answer: AssistantMessage | ModelReply | ModelError,
    overflow: bool,
) -> None:
    model = CountingModel(lambda _: answer, window_tokens=window, max_output_tokens=window // 8)
    history = History(messages, COUNTER)
    context = context_of(model, EventLog())
    try:
        outcome = await (
            compact_after_overflow(history, context) if overflow else compact_if_necessary(history, context)
        )
    except CompactionInsufficientError:
        return
    after = outcome.history
    assert after is history or after.tokens() < history.tokens()
    assert pairing_errors(after) == []
    assert after[0] is messages[0]
    assert after[1] is messages[1]
    requests = [message for message in messages if isinstance(message, UserMessage) and message.kind == "request"]
    assert any(message is requests[-1] for message in after)
    if not overflow:
        assert (await compact_if_necessary(after, context)).history.tokens() <= (after.tokens())
        budget = budget_of(after, context)
        assert after.tokens() <= budget.hard_limit_tokens


@pytest.mark.parametrize("result_words", [150, 1_200])
async def test_300_rounds_on_a_small_window_never_exceed_it_and_end_with_an_answer(result_words: int) -> None:
    def respond(request: ModelRequest) -> AssistantMessage:
        if is_summary_request(request):
            return AssistantMessage(text="So far nothing was found. " * 20)
        number = len(model.requests)
        if number > 600 or rounds >= 300:
            return AssistantMessage(text="The ConfigMap is missing.")
        calls = tuple(tool_call(f"c{number}-{index}") for index in range(1 + number % 3))
        return AssistantMessage(text="", tool_calls=calls)

    rounds = 0
    model, log, counter = CountingModel(respond), EventLog(), TokenCounter()
    context = replace(context_of(model, log), counter=counter)
    history = History([SystemMessage(text="You find faults."), user_text("Why does checkout fail?")], counter)
    system, offered = history[0], 0
    agent_requests: list[tuple[tuple[Message, ...], bool]] = []
    while True:
        outcome = await compact_if_necessary(history, context)
        reset, history = outcome.history is not history, outcome.history
        agent_requests.append((history.messages(), reset))
        request = ModelRequest(messages=history, tools=TOOLS, tool_choice="auto", max_output_tokens=8_000)
        reply = (await model.complete(request, log)).message
        context.guard.step_succeeded()
        history.append(reply)
        if not reply.tool_calls:
            break
        rounds += 1
        for call in reply.tool_calls:
            text = f"{call.id} " + "checkout failed\n" * (result_words // len(reply.tool_calls))
            offered += len(text)
            history.append(round_of(call.id, text)[1])
    assert rounds == 300
    assert isinstance(history[-1], AssistantMessage)
    assert all(messages[0] is system for messages, _ in agent_requests)
    for (before, _), (after, reset) in pairwise(agent_requests):
        assert reset or after[: len(before)] == before
    compactions = sum(reset for _, reset in agent_requests)
    assert 0 < compactions < 150
    generated = sum(
        len(message.text) for request in model.requests for message in request[-1:] if hasattr(message, "text")
    )
    assert counter.bytes_tokenized <= 1.05 * offered + 2 * generated + 20_000
