"""The loop, with a scripted model and real toolsets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.llm.scripted import ScriptedEntry, ScriptedModel, ScriptedReply, scripted_call
from holmes.values.errors import ContextOverflow, ModelError, ResultStoreError
from holmes.values.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    ContextOverflowed,
    HistoryCompacted,
    ModelSwitched,
    RunFailed,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from holmes.values.messages import AssistantMessage, Message, Reasoning, ToolCall, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelLimits, ModelRequest
from holmes.values.stats import RequestStats
from holmes.values.steps import DirectStepRunner
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.investigations import PROMPTS, QUESTION, build_loop, events_of
from tests.support.toolsets import FunctionToolset, echo, echo_toolset, tool

T = TypeVar("T")
ANSWER = ScriptedReply(text="The database refuses connections.")


def provider_down(*, stats: RequestStats | None = None) -> ModelError:
    return ModelError("the provider is down", provider="first", model="first", retryable=False, stats=stats)


async def test_an_investigation_runs_tools_until_the_model_answers() -> None:
    model = ScriptedModel([ScriptedReply(text="Looking.", tool_calls=(scripted_call("echo", text="hello"),)), ANSWER])
    events = await events_of(build_loop([model], [echo_toolset()]))
    kinds = [event.kind for event in events if not isinstance(event, TextDelta)]
    assert kinds == [
        "turn_started", "assistant_replied", "tokens_counted", "tool_call_started", "tool_call_finished",
        "turn_started", "assistant_replied", "tokens_counted", "answer_finished",
    ]  # fmt: skip
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.text == ANSWER.text
    assert finished.steps == 2
    assert finished.stats == ANSWER.stats + ANSWER.stats
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Looking." + ANSWER.text


async def test_the_second_request_holds_the_first_one_and_the_result() -> None:
    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("echo", text="hello"),)), ANSWER])
    await events_of(build_loop([model], [echo_toolset()]))
    first, second = model.requests
    assert tuple(second.messages[: len(first.messages)]) == tuple(first.messages) == QUESTION
    call, result = second.messages[-2:]
    assert isinstance(call, AssistantMessage)
    assert isinstance(result, ToolMessage)
    assert (result.call_id, result.text) == (call.tool_calls[0].id, "hello")
    assert (second.tools, second.tool_choice) == (first.tools, "auto")


async def test_parallel_calls_overlap_and_join_in_call_order() -> None:
    both_running = asyncio.Barrier(3)

    async def meet(invocation: ToolInvocation) -> ToolResult:
        async with asyncio.timeout(5):
            await both_running.wait()
        delay = {"first": 0.03, "second": 0.02, "third": 0.0}[str(invocation.arguments["text"])]
        await asyncio.sleep(delay)
        return ToolResult(status="success", data=str(invocation.arguments["text"]))

    names = ("first", "second", "third")
    model = ScriptedModel([ScriptedReply(tool_calls=tuple(scripted_call("meet", text=name) for name in names)), ANSWER])
    events = await events_of(build_loop([model], [FunctionToolset(bodies=((tool("meet", "text"), meet),))]))
    finished = [event.message.text for event in events if isinstance(event, ToolCallFinished)]
    assert finished == ["third", "second", "first"]
    assert [message.text for message in model.requests[1].messages[-3:] if isinstance(message, ToolMessage)] == [*names]


async def test_the_last_step_keeps_the_tools_forbids_their_use_and_takes_the_text_as_the_answer() -> None:
    looping = ScriptedReply(tool_calls=(scripted_call("echo", text="again"),))
    stubborn = ScriptedReply(text="Probably the database.", tool_calls=(scripted_call("echo", text="once more"),))
    model = ScriptedModel([looping, looping, stubborn])
    events = await events_of(build_loop([model], [echo_toolset()], max_steps=3))
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.text == "Probably the database."
    assert [request.tool_choice for request in model.requests] == ["auto", "auto", "none"]
    assert model.requests[2].tools == model.requests[0].tools
    assert model.requests[2].messages[-1] == user_text("Answer now.", kind="note")
    last = finished.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.tool_calls == (), "a call without a result would break the conversation when it is continued"


async def test_a_last_step_without_text_fails_and_carries_what_was_found() -> None:
    first = ScriptedReply(text="The pod crashes.", tool_calls=(scripted_call("echo", text="x"),))
    silent = ScriptedReply(tool_calls=(scripted_call("echo", text="y"),))
    events = await events_of(build_loop([ScriptedModel([first, silent])], [echo_toolset()], max_steps=2))
    failed = events[-1]
    assert isinstance(failed, RunFailed)
    assert failed.error == (
        "No answer within 2 steps: increase --max-steps or ask a narrower question. "
        "Last reply of the model: The pod crashes."
    )
    assert len(failed.messages) == 6


async def test_a_hundred_steps_end_with_an_answer() -> None:
    def reply(request: ModelRequest) -> ScriptedReply:
        if request.tool_choice == "none":
            return ScriptedReply(text="This is what I know.")
        return ScriptedReply(tool_calls=(scripted_call("echo", text="more"),))

    model = ScriptedModel(reply)
    events = await events_of(build_loop([model], [echo_toolset()]))
    assert isinstance(events[-1], AnswerFinished)
    assert sum(isinstance(event, TurnStarted) for event in events) == len(model.requests) == 100


async def test_an_empty_reply_is_nudged_and_repeated_silence_ends_the_run() -> None:
    model = ScriptedModel([ScriptedReply(), ANSWER])
    assert isinstance((await events_of(build_loop([model])))[-1], AnswerFinished)
    assert model.requests[1].messages[-1] == user_text("Your reply was empty.", kind="note")
    failed = (await events_of(build_loop([ScriptedModel([ScriptedReply()] * 5)])))[-1]
    assert isinstance(failed, RunFailed)
    assert "sent 3 empty replies" in failed.error


async def test_a_failing_model_hands_over_to_the_next_without_the_reasoning_of_the_first() -> None:
    thinking = (Reasoning(provider="first", payload='{"signature": "abc"}'),)
    paid = RequestStats(prompt_tokens=7, calls=1, cost=0.5)
    script: list[ScriptedEntry] = [
        ScriptedReply(tool_calls=(scripted_call("echo", text="x"),), reasoning=thinking),
        provider_down(stats=paid),
    ]
    first, second = ScriptedModel(script, name="first"), ScriptedModel([ANSWER], name="second")
    events = await events_of(build_loop([first, second], [echo_toolset()]))
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.model == "second"
    assert finished.stats.cost == 0.5, "what the failed attempt cost is counted"
    assert ModelSwitched(from_model="first", to_model="second", reason="the provider is down") in events
    assert first.requests[1].messages[2] == AssistantMessage(
        text="", tool_calls=_calls(first.requests[1]), reasoning=thinking
    )
    assert second.requests[0].messages[2] == AssistantMessage(text="", tool_calls=_calls(first.requests[1]))


def _calls(request: ModelRequest) -> tuple[ToolCall, ...]:
    message = request.messages[2]
    assert isinstance(message, AssistantMessage)
    return message.tool_calls


async def test_the_last_model_of_the_chain_ends_the_run_with_its_error() -> None:
    events = await events_of(build_loop([ScriptedModel([provider_down()]), ScriptedModel([provider_down()])]))
    failed = events[-1]
    assert isinstance(failed, RunFailed)
    assert (failed.error, failed.exit_code, failed.messages) == ("the provider is down", 1, QUESTION)


@pytest.mark.row("S3")
async def test_an_overflow_shrinks_the_history_and_asks_once_more() -> None:
    overflow = ContextOverflow("too long", provider="scripted", model="scripted", window_tokens=8_000)
    calls: list[ScriptedEntry] = [ScriptedReply(tool_calls=(scripted_call("echo", text="word " * 1500),))] * 4
    model = ScriptedModel([*calls, overflow, ANSWER])
    events = await events_of(build_loop([model], [echo_toolset()]))
    assert isinstance(events[-1], AnswerFinished)
    compacted = [event for event in events if isinstance(event, HistoryCompacted)]
    assert [event.strategy for event in compacted] == ["emergency"]
    assert any(isinstance(event, ContextOverflowed) for event in events)
    assert len(model.requests[-1].messages) < len(model.requests[-2].messages)
    assert events[-1].stats.compactions == 1


async def test_a_provider_that_always_overflows_ends_with_its_error() -> None:
    def refuse(_: ModelRequest) -> ContextOverflow:
        return ContextOverflow("too long", provider="scripted", model="scripted")

    model = ScriptedModel(refuse)
    history: list[Message] = [*QUESTION]
    for number in range(6):
        history += [AssistantMessage(text=f"thought {number} " * 300), user_text(f"and then? {number}")]
    failed = (await events_of(build_loop([model]), history))[-1]
    assert isinstance(failed, RunFailed)
    assert len(model.requests) <= 2


async def test_a_second_overflow_goes_on_with_a_model_that_has_a_larger_window() -> None:
    def refuse(_: ModelRequest) -> ContextOverflow:
        return ContextOverflow("too long", provider="scripted", model="scripted")

    limits = ModelLimits(context_window_tokens=8_000, max_output_tokens=1_000)
    small, same = ScriptedModel(refuse, name="small", limits=limits), ScriptedModel([], name="same", limits=limits)
    large = ScriptedModel([ANSWER], name="large")
    events = await events_of(build_loop([small, same, large]))
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.model == "large"
    assert same.requests == []


async def test_attempts_to_compact_for_one_model_do_not_count_for_the_next() -> None:
    def refuse(_: ModelRequest) -> ContextOverflow:
        return ContextOverflow("too long", provider="scripted", model="small")

    policy = replace(ContextPolicy(), safety=replace(ContextPolicy().safety, max_attempts=1))
    small = ScriptedModel(
        refuse, name="small", limits=ModelLimits(context_window_tokens=8_000, max_output_tokens=1_000)
    )
    overflow = ContextOverflow("too long", provider="scripted", model="large")
    large = ScriptedModel([overflow, ANSWER], name="large")
    history: list[Message] = [*QUESTION]
    for number in range(12):
        history += [AssistantMessage(text=f"thought {number} " * 100), user_text(f"and then? {number}")]
    events = await events_of(build_loop([small, large], policy=policy), history)
    finished = events[-1]
    assert isinstance(finished, AnswerFinished), finished
    assert finished.model == "large"
    assert [event.strategy for event in events if isinstance(event, HistoryCompacted)] == ["emergency", "emergency"]


async def test_a_broken_store_ends_the_run_with_its_error_and_not_with_a_hang() -> None:
    class Broken(FunctionToolset):
        def describe(self, invocation: ToolInvocation) -> str:
            raise TypeError(invocation.tool.name)

    class BrokenSteps(DirectStepRunner):
        async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
            if "/tool-" in name:
                raise ResultStoreError("the journal is gone")
            return await step()

    parts = LoopParts(
        models=(
            LoopModel(
                model=ScriptedModel([ScriptedReply(tool_calls=(scripted_call("echo", text="x"),) * 3)]),
                policy=ContextPolicy(),
            ),
        ),
        executor=ToolExecutor([Broken(bodies=echo_toolset().bodies)]),
        store=None,
        prompts=PROMPTS,
        steps=BrokenSteps(),
    )
    async with asyncio.timeout(5):
        failed = (await events_of(ToolCallingLLM(parts)))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.error == "the journal is gone"


async def test_pictures_of_a_result_stay_in_its_message() -> None:
    from holmes.values.messages import Image

    picture = Image(data=b"\x89PNG", media_type="image/png")

    async def show(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="success", data="a chart", images=(picture,))

    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("show"),)), ANSWER])
    await events_of(build_loop([model], [FunctionToolset(bodies=((tool("show"), show),))]))
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.parts[1] == picture


async def test_a_call_without_approval_is_announced() -> None:
    async def needs_approval(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="approval_required", error="nobody is here")

    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("risky"),)), ANSWER])
    events = await events_of(build_loop([model], [FunctionToolset(bodies=((tool("risky"), needs_approval),))]))
    assert [event.description for event in events if isinstance(event, ApprovalRequired)] == ["risky()"]


async def test_closing_the_stream_cancels_model_and_tools_within_a_second() -> None:
    cancelled: list[str] = []

    async def endless(invocation: ToolInvocation) -> ToolResult:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(str(invocation.arguments["text"]))
            raise
        return await echo(invocation)

    calls = tuple(scripted_call("endless", text=name) for name in ("a", "b"))
    toolset = FunctionToolset(bodies=((tool("endless", "text"), endless),))
    stream = build_loop([ScriptedModel([ScriptedReply(tool_calls=calls)])], [toolset]).call_stream(QUESTION)
    started = 0
    async for event in stream:
        started += isinstance(event, ToolCallStarted)
        if started == 2:
            break
    async with asyncio.timeout(1):
        await stream.aclose()
    assert sorted(cancelled) == ["a", "b"]


async def test_a_reply_that_was_cut_off_says_so() -> None:
    model = ScriptedModel([ScriptedReply(text="It is the", finish_reason="length")])
    finished = (await events_of(build_loop([model])))[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.text.endswith("*(The answer was cut off at the model's output limit of 4096 tokens.)*")


async def test_a_conversation_that_was_interrupted_is_repaired_before_it_goes_on() -> None:
    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("echo", text="x"),)), ANSWER, ANSWER])
    loop = build_loop([model], [echo_toolset()])
    replied = [event.message async for event in loop.call_stream(QUESTION) if isinstance(event, AssistantReplied)]
    interrupted = [*QUESTION, replied[0], user_text("go on")]
    await events_of(loop, interrupted)
    repaired = model.requests[-1].messages
    assert [type(message) for message in repaired[2:]] == [AssistantMessage, ToolMessage, UserMessage]
    assert isinstance(repaired[3], ToolMessage)
    assert repaired[3].status == "error"


@pytest.mark.row("C1", "K13")
@pytest.mark.parametrize("window_tokens", [8_000, 32_000])
async def test_a_long_conversation_never_exceeds_the_window_and_ends_with_an_answer(
    window_tokens: int, count_request: Callable[[ModelRequest], int]
) -> None:
    limits = ModelLimits(context_window_tokens=window_tokens, max_output_tokens=1_000)
    largest = 0

    def reply(request: ModelRequest) -> ScriptedReply:
        nonlocal largest
        largest = max(largest, count_request(request) + request.max_output_tokens)
        last = request.messages[-1]
        if isinstance(last, UserMessage) and last.text == "Summarise the investigation.":
            return ScriptedReply(text="Summary: the checkout pod fails, the database was healthy at first.")
        if request.tool_choice == "none":
            return ScriptedReply(text="Done.")
        return ScriptedReply(tool_calls=(scripted_call("echo", text=f"{len(request.messages)} line of a log\n" * 40),))

    events = await events_of(build_loop([ScriptedModel(reply, limits=limits)], [echo_toolset()], max_steps=300))
    assert isinstance(events[-1], AnswerFinished)
    assert any(isinstance(event, HistoryCompacted) for event in events)
    assert 0 < largest <= window_tokens


@pytest.fixture
def count_request() -> Callable[[ModelRequest], int]:
    """Counts a request from its text alone, as a provider would, each message once."""
    from functools import cache

    from holmes.tokens import TokenCounter

    counter = TokenCounter("o200k_base")
    count = cache(counter.count_message)
    return lambda request: sum(count(message) for message in request.messages) + counter.count_tools(request.tools)
