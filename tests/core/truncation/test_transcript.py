"""A transcript has at most four pieces of the wanted size; long messages are cut before whole ones are left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.summary_request import MAX_PIECES, transcript_pieces
from holmes.tokens import TokenCounter
from holmes.values.messages import (
    AssistantMessage,
    Message,
    ResultId,
    StoredResult,
    Text,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from tests.core.truncation.test_plan import round_of
from tests.support.conversations import histories, png
from tests.support.counting_model import tool_call

COUNTER = TokenCounter()


def pieces_of(messages: tuple[Message, ...], piece_tokens: int) -> tuple[str, ...]:
    return transcript_pieces(messages, [COUNTER.count_message(message) for message in messages], piece_tokens)


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(0, 4_000))
def test_no_piece_is_much_larger_than_asked_for(messages: tuple[Message, ...], piece_tokens: int) -> None:
    pieces = pieces_of(messages, piece_tokens)
    assert len(pieces) <= MAX_PIECES
    assert all(COUNTER.count_text(piece) <= 1.3 * piece_tokens for piece in pieces)


def test_a_transcript_that_fits_is_complete() -> None:
    call = AssistantMessage(text="I look.", tool_calls=(tool_call("a", "kubectl_get", '{"kind": "pod"}'),))
    (piece,) = pieces_of((user_text("why?"), call, *round_of("b", "Running")[1:]), 1_000)
    assert piece == (
        "## user (request)\nwhy?\n\n"
        '## assistant\nI look.\ncalls kubectl_get with {"kind": "pod"}\n\n'
        "## result of t (success)\nRunning"
    )


def test_long_messages_are_cut_in_the_middle_so_that_every_message_is_there() -> None:
    messages = tuple(user_text(f"start {number} " + "word " * 2_000 + f"end {number}") for number in range(20))
    pieces = pieces_of(messages, 3_000)
    text = "\n".join(pieces)
    assert all(f"start {number} " in text and f"end {number}" in text for number in range(20))
    assert text.count("characters left out") == 20


def test_only_when_that_is_not_enough_the_oldest_are_left_out() -> None:
    messages = tuple(user_text(f"message {number} " + "word " * 200) for number in range(500))
    text = "\n".join(pieces_of(messages, 1_000))
    assert "message 499 " in text
    assert "message 3 " not in text


@pytest.mark.row("K14", "K11")
def test_pictures_are_counted_and_the_ids_of_stored_results_are_named() -> None:
    stored = StoredResult(id=ResultId("abc123abc123"), path=None, size_bytes=9, media_type="text/plain")
    result = ToolMessage(
        call_id=ToolCallId("a"),
        tool_name="chart",
        status="success",
        parts=(Text(text="cpu"), png(900, 900), png(9, 9)),
        stored=(stored,),
    )
    asked = UserMessage(parts=(Text(text="see"), png(9, 9)))
    (piece,) = transcript_pieces((asked, result), (9, 9), 1_000)
    assert piece == (
        "## user (request, 1 image left out)\nsee\n\n"
        "## result of chart (success, result abc123abc123, 2 images left out)\ncpu"
    )


@pytest.mark.row("K12")
def test_more_pieces_may_be_asked_for() -> None:
    messages = tuple(user_text(f"message {number} " + "word " * 900) for number in range(40))
    weights = [COUNTER.count_message(message) for message in messages]
    few, many = transcript_pieces(messages, weights, 3_000), transcript_pieces(messages, weights, 3_000, 8)
    assert (len(few), len(many)) == (4, 8)
    assert sum(map(len, many)) > 1.5 * sum(map(len, few))
