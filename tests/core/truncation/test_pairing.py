"""Invariant 1: whatever a run left behind, every call has exactly one result, right after it."""

from __future__ import annotations

from hypothesis import given, settings

from holmes.core.truncation.plan import repair_pairing
from holmes.values.messages import AssistantMessage, Message, Text, ToolCallId, ToolMessage, user_text
from tests.support.conversations import broken_histories, histories
from tests.support.counting_model import pairing_errors, tool_call


def result(call_id: str, text: str = "out") -> ToolMessage:
    return ToolMessage(call_id=ToolCallId(call_id), tool_name="t", status="success", parts=(Text(text=text),))


@settings(max_examples=200)
@given(broken_histories())
def test_any_conversation_is_valid_after_the_repair_and_repairing_again_changes_nothing(
    messages: tuple[Message, ...],
) -> None:
    repaired = repair_pairing(messages)
    assert pairing_errors(repaired) == []
    again = repair_pairing(repaired)
    assert len(again) == len(repaired)
    assert all(one is other for one, other in zip(repaired, again, strict=True))
    spoken = [message for message in messages if not isinstance(message, ToolMessage | AssistantMessage)]
    assert [message for message in repaired if not isinstance(message, ToolMessage | AssistantMessage)] == spoken


@given(histories(max_rounds=4, max_words=5))
def test_a_valid_conversation_stays_as_it_is(messages: tuple[Message, ...]) -> None:
    assert all(one is other for one, other in zip(messages, repair_pairing(messages), strict=True))


def test_a_missing_result_becomes_an_error_in_call_order() -> None:
    reply = AssistantMessage(text="", tool_calls=(tool_call("a"), tool_call("b"), tool_call("c")))
    repaired = repair_pairing([reply, result("c"), result("a"), user_text("go on")])
    answers = [message for message in repaired if isinstance(message, ToolMessage)]
    assert [(answer.call_id, answer.status) for answer in answers] == [
        ("a", "success"),
        ("b", "error"),
        ("c", "success"),
    ]
    assert answers[1].text == "the call was interrupted and returned no result"
    assert repaired[-1] == user_text("go on")


def test_equal_ids_are_told_apart_and_results_follow_their_call() -> None:
    first = AssistantMessage(text="", tool_calls=(tool_call("a"), tool_call("a")))
    second = AssistantMessage(text="", tool_calls=(tool_call("a"), tool_call("a-2")))
    repaired = repair_pairing([first, result("a", "1"), result("a", "2"), second, result("a", "3"), result("a-2", "4")])
    answers = [(message.call_id, message.text) for message in repaired if isinstance(message, ToolMessage)]
    assert answers == [("a", "1"), ("a-3", "2"), ("a-4", "3"), ("a-2", "4")]


def test_results_that_nobody_asked_for_are_dropped() -> None:
    reply = AssistantMessage(text="", tool_calls=(tool_call("a"),))
    repaired = repair_pairing([result("x"), reply, result("a", "1"), result("a", "2"), result("y"), user_text("?")])
    assert repaired == (reply, result("a", "1"), user_text("?"))
