"""Replies that would cost without end: floods of calls, identical calls, and rounds that are of no use."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holmes.core.tools_utils.tool_executor import MAX_ANSWERED_CALLS, MAX_RUNNING_CALLS
from holmes.llm.scripted import ScriptedCall, ScriptedEntry, ScriptedModel, ScriptedReply, scripted_call
from holmes.tokens import TokenCounter
from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    AssistantReplied,
    ModelSwitched,
    RunFailed,
    ToolCallFinished,
)
from holmes.values.messages import AssistantMessage, Message, ToolMessage
from holmes.values.model import ModelRequest
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.counting_model import pairing_errors
from tests.support.investigations import build_loop, events_of
from tests.support.toolsets import FunctionToolset, echo_toolset, tool

ANSWER = ScriptedReply(text="Done.")
GARBAGE = ScriptedReply(text="I look.", tool_calls=(ScriptedCall(name="echo", malformed="text: hello"),))
UNKNOWN = ScriptedReply(tool_calls=(scripted_call("no_such_tool", text="x"),))
UNFIT = ScriptedReply(tool_calls=(scripted_call("echo", txet="x"),))
EMPTY = ScriptedReply(text=" \n")
USEFUL = ScriptedReply(tool_calls=(scripted_call("echo", text="x"),))


def flood(count: int, *, distinct: int) -> ScriptedReply:
    return ScriptedReply(tool_calls=tuple(scripted_call("echo", text=f"pod {n % distinct}") for n in range(count)))


async def flooded(reply: ScriptedReply) -> tuple[FunctionToolset, tuple[Message, ...], list[AgentEvent]]:
    """What ran, the messages that the model read next after its question, and the events."""
    toolset, model = echo_toolset(), ScriptedModel([reply, ANSWER])
    events = await events_of(build_loop([model], [toolset]))
    end = events[-1]
    assert isinstance(end, AnswerFinished)
    assert pairing_errors(end.messages) == []
    return toolset, tuple(model.requests[1].messages)[2:], events


def results(messages: tuple[Message, ...]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


async def test_of_many_calls_a_bounded_number_runs_and_the_rest_is_told_why() -> None:
    toolset, messages, _ = await flooded(flood(40, distinct=40))
    assert [each.arguments["text"] for each in toolset.seen] == [f"pod {n}" for n in range(MAX_RUNNING_CALLS)]
    texts = [message.text for message in results(messages)]
    assert texts[:MAX_RUNNING_CALLS] == [f"pod {n}" for n in range(MAX_RUNNING_CALLS)]
    assert len(texts) == 40
    assert all(text.startswith("Not run: the limit is 32 calls for each reply.") for text in texts[MAX_RUNNING_CALLS:])
    assert not any("removed" in text for text in texts)


async def test_identical_calls_run_once_and_the_others_name_the_call_that_ran() -> None:
    same = (
        ScriptedCall(name="echo", arguments='{"text": "x"}', id="first"),
        ScriptedCall(name="echo", arguments='{ "text":"x" }', id="second"),
        ScriptedCall(name="echo", arguments='{"text": "y"}', id="third"),
        ScriptedCall(name="echo", arguments='{"text": "x"}', id="fourth"),
    )
    toolset, messages, _ = await flooded(ScriptedReply(tool_calls=same))
    assert [each.arguments["text"] for each in toolset.seen] == ["x", "y"]
    first, second, third, fourth = results(messages)
    assert (first.text, third.text) == ("x", "y")
    assert second.text == fourth.text
    assert "Identical to the call 'first' of this reply" in second.text
    assert (second.status, fourth.call_id) == ("success", "fourth")


@pytest.mark.parametrize("distinct", [3_000, 40, 32, 1])
async def test_three_thousand_calls_leave_neither_their_calls_nor_their_results_in_the_history(distinct: int) -> None:
    toolset, messages, events = await flooded(flood(3_000, distinct=distinct))
    assert len(toolset.seen) == min(distinct, MAX_RUNNING_CALLS)
    (reply,) = [message for message in messages if isinstance(message, AssistantMessage)]
    kept = len(reply.tool_calls)
    assert kept == len(results(messages)) == min(distinct, MAX_RUNNING_CALLS) + MAX_ANSWERED_CALLS
    assert f"{3_000 - kept:,} more calls of this reply" in results(messages)[-1].text
    assert sum(map(TokenCounter().count_message, messages)) < 8_000
    told = next(event for event in events if isinstance(event, AssistantReplied))
    assert told.message == reply, "who reads the events sees what the model sees"
    finished = [event.call.id for event in events if isinstance(event, ToolCallFinished)]
    assert sorted(finished) == sorted(call.id for call in reply.tool_calls)


async def test_a_later_repetition_is_compared_with_the_result_and_not_with_the_reference_to_it() -> None:
    long = "a line of a log that says nothing\n" * 60
    twice = ScriptedReply(tool_calls=(scripted_call("echo", text=long),) * 2)
    model = ScriptedModel([twice, ScriptedReply(tool_calls=(scripted_call("echo", text=long),)), ANSWER])
    await events_of(build_loop([model], [echo_toolset()]))
    again = model.requests[-1].messages[-1]
    assert isinstance(again, ToolMessage)
    assert again.text.startswith("Unchanged since step 1")


@pytest.mark.parametrize(
    "replies",
    [
        (GARBAGE,) * 100,
        (UNKNOWN,) * 100,
        (UNFIT,) * 100,
        (GARBAGE, UNKNOWN, EMPTY, UNFIT, EMPTY, *(GARBAGE,) * 95),
        (*(USEFUL, GARBAGE) * 4, *(UNKNOWN, UNFIT) * 40),
    ],
)
async def test_five_rounds_without_use_end_the_run_with_one_line(replies: tuple[ScriptedReply, ...]) -> None:
    model = ScriptedModel(list(replies))
    failed = (await events_of(build_loop([model], [echo_toolset()])))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.exit_code == 1
    assert "\n" not in failed.error
    assert "replied 5 times in a row with neither an answer nor a call that can run" in failed.error
    useful = max((number for number, reply in enumerate(replies) if reply is USEFUL), default=-1)
    assert len(model.requests) - useful - 1 == 5
    assert pairing_errors(failed.messages) == []


async def test_the_line_names_the_last_problem_shortly() -> None:
    garbage = ScriptedReply(tool_calls=(ScriptedCall(name="echo", malformed="{" * 100_000),))
    failed = (await events_of(build_loop([ScriptedModel([garbage] * 9)], [echo_toolset()])))[-1]
    assert isinstance(failed, RunFailed)
    assert "The arguments of 'echo' are not a JSON object" in failed.error
    assert len(failed.error) < 600


async def test_tools_that_fail_again_and_again_are_of_use() -> None:
    async def refuse(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="error", error="connection refused")

    toolset = FunctionToolset(bodies=((tool("echo", "text"), refuse),))
    replies: list[ScriptedEntry] = [USEFUL] * 20
    events = await events_of(build_loop([ScriptedModel([*replies, ANSWER])], [toolset]))
    assert isinstance(events[-1], AnswerFinished)


async def test_one_call_that_can_run_beside_garbage_is_of_use() -> None:
    mixed = ScriptedReply(tool_calls=(*GARBAGE.tool_calls, *USEFUL.tool_calls, *UNKNOWN.tool_calls))
    replies: list[ScriptedEntry] = [mixed] * 9
    assert isinstance(
        (await events_of(build_loop([ScriptedModel([*replies, ANSWER])], [echo_toolset()])))[-1], AnswerFinished
    )


async def test_empty_replies_far_apart_do_not_end_the_run() -> None:
    replies: list[ScriptedEntry] = [EMPTY, EMPTY, USEFUL] * 6
    model = ScriptedModel([*replies, ANSWER])
    assert isinstance((await events_of(build_loop([model], [echo_toolset()])))[-1], AnswerFinished)


@pytest.mark.parametrize(("useless", "rounds"), [(GARBAGE, 5), (UNKNOWN, 5), (EMPTY, 3)])
async def test_a_model_of_no_use_gives_way_to_the_next_of_the_chain_which_counts_from_zero(
    useless: ScriptedReply, rounds: int
) -> None:
    first = ScriptedModel([useless] * 50, name="first")
    second = ScriptedModel([UNKNOWN, UNKNOWN, USEFUL, UNKNOWN, UNKNOWN, ANSWER], name="second")
    events = await events_of(build_loop([first, second], [echo_toolset()]))
    end = events[-1]
    assert isinstance(end, AnswerFinished)
    assert (end.model, len(first.requests)) == ("second", rounds)
    assert [event.to_model for event in events if isinstance(event, ModelSwitched)] == ["second"]
    assert _roles_alternate(second.requests[0])


def _roles_alternate(request: ModelRequest) -> bool:
    """Whether no reply follows another one, which providers refuse."""
    kinds = [type(message) for message in request.messages]
    return (AssistantMessage, AssistantMessage) not in pairwise(kinds) and kinds[-1] is not AssistantMessage


async def test_when_every_model_of_the_chain_is_of_no_use_the_last_one_ends_the_run() -> None:
    chain = [ScriptedModel([GARBAGE] * 50, name=name) for name in ("first", "second")]
    failed = (await events_of(build_loop(chain, [echo_toolset()])))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.error.startswith("The model 'second' replied 5 times in a row")
    assert [len(model.requests) for model in chain] == [5, 5]


async def test_a_call_that_was_not_begun_makes_no_reply_useful() -> None:
    garbage = tuple(ScriptedCall(name="echo", malformed=f"text {n}") for n in range(40))
    model = ScriptedModel(lambda _: ScriptedReply(tool_calls=(*garbage, scripted_call("echo", text="x"))))
    end = (await events_of(build_loop([model], [echo_toolset()])))[-1]
    assert isinstance(end, RunFailed)
    assert len(model.requests) == 5
