"""What stays: system prompt, task, last question, whole rounds at the end; the newest round in any case."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.plan import Room, cut_tool_message, plan_removal, shrink_round
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import (
    AssistantMessage,
    Message,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from tests.support.conversations import histories, png, rounds
from tests.support.counting_model import pairing_errors, tool_call

COUNTER = TokenCounter()
LOG = "".join(f"line {number}: checkout failed\n" for number in range(600))


def round_of(call_id: str, text: str) -> tuple[Message, ...]:
    result = ToolMessage(call_id=ToolCallId(call_id), tool_name="t", status="success", parts=(Text(text=text),))
    return (AssistantMessage(text="next", tool_calls=(tool_call(call_id),)), result)


@settings(max_examples=200)
@given(histories(), st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 5_000))
def test_a_plan_keeps_pairing_order_and_everything_that_was_said_first_and_last(
    messages: tuple[Message, ...], tail: int, newest: int, whole: int
) -> None:
    history = History(messages, COUNTER)
    plan = plan_removal(history, Room(tail_tokens=tail, newest_round_tokens=newest, history_tokens=whole), COUNTER)
    kept = plan.assemble()
    assert pairing_errors(kept) == []
    assert pairing_errors(plan.removed) == []
    requests = [message for message in messages if isinstance(message, UserMessage) and message.kind == "request"]
    assert [message for message in kept if isinstance(message, UserMessage) and message.kind == "request"][:1] == (
        requests[:1]
    )
    assert any(message is requests[-1] for message in kept)
    assert kept[0] is messages[0]
    assert len(kept) + len(plan.removed) == len(messages)
    assert sum(COUNTER.count_message(message) for message in plan.removed) == plan.removed_tokens


def test_the_tail_is_whole_rounds_that_fit() -> None:
    messages: list[Message] = [SystemMessage(text="s"), user_text("task")]
    for number in range(6):
        messages.extend(round_of(f"c{number}", "word " * 100))
    room = Room(tail_tokens=420, newest_round_tokens=420, history_tokens=10_000)
    plan = plan_removal(History(messages, COUNTER), room, COUNTER)
    assert plan.tail == tuple(messages[-6:])
    assert plan.removed == tuple(messages[2:-6])
    assert plan.last_request == ()


def test_a_newest_round_that_is_too_large_is_cut_and_not_dropped() -> None:
    messages: list[Message] = [SystemMessage(text="s"), user_text("task"), *round_of("a", LOG), *round_of("b", LOG)]
    history = History([*messages, user_text("Answer now.", kind="note")], COUNTER)
    room = Room(tail_tokens=100, newest_round_tokens=500, history_tokens=10_000)
    plan = plan_removal(history, room, COUNTER)
    assert plan.removed == tuple(messages[2:4])
    reply, result, note = plan.tail
    assert (reply, note) == (messages[4], user_text("Answer now.", kind="note"))
    assert isinstance(result, ToolMessage)
    assert result.text.startswith("line 0: checkout failed\n")
    assert "call again with a narrower query" in result.text
    assert COUNTER.count_message(reply) + COUNTER.count_message(result) <= 500


def test_an_old_summary_never_joins_the_tail() -> None:
    summary = user_text("Summary of before.", kind="summary")
    messages: list[Message] = [
        SystemMessage(text="s"),
        user_text("task"),
        summary,
        *round_of("a", "x"),
        *round_of("b", "y"),
    ]
    room = Room(tail_tokens=10_000, newest_round_tokens=10_000, history_tokens=20_000)
    plan = plan_removal(History(messages, COUNTER), room, COUNTER)
    assert plan.removed == (summary,)


@settings(max_examples=200)
@given(rounds(1, max_words=3_000), st.integers(0, 2_000))
def test_a_shrunk_round_keeps_its_pairing_and_fits_or_came_down_to_its_least(
    messages: tuple[Message, ...], cap: int
) -> None:
    shrunk = shrink_round(messages, cap, COUNTER)
    assert pairing_errors(shrunk) == []
    assert shrunk[0] is messages[0]
    before, after = (sum(map(COUNTER.count_message, one)) for one in (messages, shrunk))
    least = COUNTER.count_message(messages[0]) + 16 * (len(messages) - 1)
    assert after <= max(cap, least)
    assert after < before or shrunk == messages


@given(st.integers(16, 400))
def test_what_is_stored_keeps_its_pointer_when_it_is_cut(cap: int) -> None:
    stored = StoredResult(id=ResultId("abc123abc123"), path=None, size_bytes=9, media_type="text/plain")
    result = ToolMessage(
        call_id=ToolCallId("a"),
        tool_name="t",
        status="success",
        parts=(Text(text=LOG), png(900, 900)),
        stored=(stored,),
        spilled=True,
    )
    cut = cut_tool_message(result, cap, COUNTER)
    assert COUNTER.count_message(cut) <= cap
    assert cut.stored == (stored,)
    if cap >= 48:
        assert "1 image was removed. The full result is stored: abc123abc123" in cut.text
    assert cut_tool_message(cut, cap, COUNTER) is cut


def test_small_results_of_a_round_stay_whole_when_a_large_one_is_cut() -> None:
    calls = (tool_call("a"), tool_call("b"))
    small = round_of("a", "Running")[1]
    large = (
        replace(small, call_id=ToolCallId("b"), parts=(Text(text=LOG),)) if isinstance(small, ToolMessage) else small
    )
    shrunk = shrink_round((AssistantMessage(text="", tool_calls=calls), small, large), 300, COUNTER)
    assert shrunk[1] is small
    assert COUNTER.count_message(shrunk[2]) > 150
