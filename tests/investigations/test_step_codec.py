"""What steps return survives the journal, also a journal of another version."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, ToolOutcome
from holmes.investigations.records.journal import UnreadableStep, cost_of, step_from_bytes, step_to_bytes
from holmes.values.messages import (
    AssistantMessage,
    Image,
    Reasoning,
    ResultId,
    StoredResult,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
)
from holmes.values.model import ModelReply
from holmes.values.stats import RequestStats

TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)  # surrogates included: tools print anything
STORED = st.builds(
    StoredResult,
    id=TEXTS.map(ResultId),
    path=st.none() | TEXTS,
    size_bytes=st.integers(0, 2**50),
    media_type=st.sampled_from(["text/plain", "image/png"]),
)
PARTS = st.builds(Text, text=TEXTS) | st.builds(Image, data=st.binary(max_size=20), media_type=st.just("image/png"))
STATS = st.builds(RequestStats, prompt_tokens=st.integers(0, 10**9), cost=st.floats(0, 100), estimated=st.booleans())
REPLIES = st.builds(
    ModelReply,
    message=st.builds(
        AssistantMessage,
        text=TEXTS,
        tool_calls=st.lists(
            st.builds(ToolCall, id=TEXTS.map(ToolCallId), name=TEXTS, arguments=TEXTS, malformed=st.none() | TEXTS),
            max_size=2,
        ).map(tuple),
        reasoning=st.lists(st.builds(Reasoning, provider=TEXTS, payload=TEXTS), max_size=2).map(tuple),
    ),
    finish_reason=st.sampled_from(["stop", "tool_calls"]),
    stats=STATS,
    model=TEXTS,
    reported_prompt_tokens=st.none() | st.integers(0, 10**6),
)
OUTCOMES = st.builds(
    ToolOutcome,
    spill=st.builds(
        SpillOutcome,
        message=st.builds(
            ToolMessage,
            call_id=TEXTS.map(ToolCallId),
            tool_name=TEXTS,
            status=st.sampled_from(["success", "error"]),
            parts=st.lists(PARTS, max_size=3).map(tuple),
            stored=st.lists(STORED, max_size=2).map(tuple),
        ),
        tokens=st.integers(0, 10**6),
        spilled=st.booleans(),
        stored=st.booleans(),
    ),
    cap_tokens=st.integers(0, 10**6),
    invocation=st.none() | TEXTS,
    error=st.none() | TEXTS,
    elapsed_seconds=st.floats(0, 1000),
)


@given(REPLIES | OUTCOMES | STORED | st.none() | TEXTS | st.lists(STORED, max_size=3).map(tuple))
def test_every_result_of_a_step_comes_back_equal(result: object) -> None:
    assert step_from_bytes(step_to_bytes(result)) == result


def test_a_field_of_a_newer_version_is_left_out_and_a_missing_one_takes_its_default() -> None:
    document = json.loads(step_to_bytes(RequestStats(prompt_tokens=7)))
    document["invented_later"] = 1
    del document["compactions"]
    assert step_from_bytes(json.dumps(document).encode()) == RequestStats(prompt_tokens=7)


@pytest.mark.parametrize("content", [b"", b"{", b'{"$type": "os.system"}', b'{"a": 1}', b'{"$type": "Text"}', b"\xff"])
def test_what_cannot_be_read_is_said_so_and_builds_nothing(content: bytes) -> None:
    with pytest.raises(UnreadableStep):
        step_from_bytes(content)


def test_what_no_journal_can_keep_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="'set'"):
        step_to_bytes({1, 2})


def test_only_replies_of_models_cost_something() -> None:
    reply = ModelReply(
        message=AssistantMessage(text=""), finish_reason="stop", stats=RequestStats(cost=0.25), model="m"
    )
    assert cost_of(reply) == 0.25
    assert cost_of("text") == 0.0
