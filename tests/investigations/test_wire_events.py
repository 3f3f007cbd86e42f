"""What clients read of each event: names and fields of the compatible interface, and nothing of the server's disk."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from holmes.investigations.records.wire_events import wire_events
from holmes.values.charts import alt_text
from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
    Citation,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    HistoryReplaced,
    HookFired,
    ModelSwitched,
    PromptShortened,
    RunFailed,
    TextDelta,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultsMasked,
    ToolResultSpilled,
    TurnStarted,
)
from holmes.values.messages import (
    AssistantMessage,
    Reasoning,
    ResultId,
    StoredResult,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    user_text,
)
from holmes.values.stats import RequestStats
from holmes.values.verdicts import Verdict
from tests.support.charts import MEMORY

STATS = RequestStats(prompt_tokens=22_000, completion_tokens=1_400, cached_tokens=18_000, cost=0.0123, calls=2)
CALL = ToolCall(id=ToolCallId("call-1"), name="kubectl_get", arguments='{"kind": "pods"}')
STORED = StoredResult(id=ResultId("abc123"), path="/var/lib/holmes/abc", size_bytes=9, media_type="text/plain")
RESULT = ToolMessage(
    call_id=CALL.id,
    tool_name=CALL.name,
    status="error",
    parts=(Text(text="no such pod"), Text(text="[result abc123]")),
    stored=(STORED,),
)
REASONED = AssistantMessage(
    text="I look.", tool_calls=(CALL,), reasoning=(Reasoning(provider="p", payload='{"reasoning_content": "Hm."}'),)
)
MESSAGES = (user_text("why?"), REASONED, RESULT)

EVENTS: dict[str, tuple[AgentEvent, str | None, set[str]]] = {
    "turn": (TurnStarted(step=1, max_steps=9), "turn_started", {"step", "max_steps"}),
    "delta": (TextDelta(text="a"), "text_delta", {"content", "checked"}),
    "discarded": (
        AttemptDiscarded(model="m", reason="cut", retry_in_seconds=1),
        "attempt_discarded",
        {"model", "reason", "retry_in_seconds"},
    ),
    "switched": (
        ModelSwitched(from_model="a", to_model="b", reason="r"),
        "model_switched",
        {"from_model", "to_model", "reason"},
    ),
    "replied": (
        AssistantReplied(message=REASONED, stats=STATS, model="m"),
        "ai_message",
        {"content", "reasoning", "metadata"},
    ),
    "last reply": (AssistantReplied(message=AssistantMessage(text="x"), stats=STATS, model="m"), None, set()),
    "silent reply": (
        AssistantReplied(message=AssistantMessage(text=" ", tool_calls=(CALL,)), stats=STATS, model="m"),
        None,
        set(),
    ),
    "started": (
        ToolCallStarted(call=CALL, toolset="t", description="d"),
        "start_tool_calling",
        {"tool_name", "id", "toolset", "description", "params"},
    ),
    "finished": (
        ToolCallFinished(
            call=CALL, toolset="t", description="d", message=RESULT, invocation="kubectl", error="e", elapsed_seconds=1
        ),
        "tool_calling_result",
        {"tool_call_id", "name", "description", "role", "toolset", "result"},
    ),
    "spilled": (
        ToolResultSpilled(call=CALL, tokens=9, cap_tokens=1, stored=True),
        "notice",
        {"kind", "text", "tool_call_id"},
    ),
    "approval": (ApprovalRequired(call=CALL, description="d"), "notice", {"kind", "text", "tool_call_id"}),
    "compacting": (
        CompactionStarted(tokens=9, trigger_tokens=8),
        "conversation_history_compaction_start",
        {"content", "metadata"},
    ),
    "compacted": (
        HistoryCompacted(
            strategy="summarize",
            tokens_before=9,
            tokens_after=2,
            messages_before=3,
            messages_after=1,
            summary="s",
            stats=STATS,
            removed=STORED,
            messages=MESSAGES,
        ),
        "conversation_history_compacted",
        {"content", "compaction_summary", "messages", "metadata"},
    ),
    "not compacted": (CompactionFailed(reason="r", stats=STATS), "notice", {"kind", "text"}),
    "masked": (
        ToolResultsMasked(count=2, policy="preview", tokens_before=9, tokens_after=2),
        "notice",
        {"kind", "text"},
    ),
    "hook": (HookFired(hook_id="h", action="log", text="t"), "notice", {"kind", "text"}),
    "shortened": (
        PromptShortened(model="m", estimated_tokens=9, reported_tokens=2),
        "notice",
        {"kind", "text"},
    ),
    "overflow": (ContextOverflowed(model="m", reason="r"), "notice", {"kind", "text"}),
    "tokens": (TokensCounted(prompt_tokens=9, context_window_tokens=99, stats=STATS), "token_count", {"metadata"}),
    "answer": (
        AnswerFinished(
            text="It is the key.",
            messages=MESSAGES,
            stats=STATS,
            steps=2,
            model="m",
            citations=(Citation(result_id=ResultId("abc123"), first_line=1, last_line=2, claim="c"),),
            verdict=Verdict(kind="cause_found", by="model", summary="It is the key."),
        ),
        "ai_answer_end",
        {"analysis", "conversation_history", "follow_up_actions", "metadata", "verdict"},
    ),
    "replaced": (HistoryReplaced(messages=MESSAGES, stats=STATS), "notice", {"kind", "text"}),
    "failed": (
        RunFailed(error="e", exit_code=3, messages=MESSAGES, stats=STATS),
        "error",
        {"description", "error_code", "msg", "success", "metadata"},
    ),
}


def test_there_is_an_example_of_every_event() -> None:
    assert {type(event) for event, _, _ in EVENTS.values()} == set(get_args(AgentEvent))


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_its_name_and_fields_and_is_json(name: str) -> None:
    event, wanted, fields = EVENTS[name]

    found = wire_events(event)

    assert [each.name for each in found] == ([wanted] if wanted else [])
    for each in found:
        assert set(each.data) == fields
        assert "/var/lib" not in json.dumps(each.data)


def data_of(name: str) -> dict[str, object]:
    (found,) = wire_events(EVENTS[name][0])
    return dict(found.data)


def test_a_result_has_what_the_model_sees_and_where_all_of_it_lies() -> None:
    assert data_of("finished")["result"] == {
        "status": "error",
        "error": "e",
        "data": "no such pod",
        "invocation": "kubectl",
        "params": {"kind": "pods"},
        "elapsed_seconds": 1,
        "images": 0,
        "spilled": False,
        "stored": [{"id": "abc123", "size_bytes": 9, "media_type": "text/plain"}],
    }


def test_a_result_with_a_picture_has_its_description() -> None:
    finished = EVENTS["finished"][0]
    assert isinstance(finished, ToolCallFinished)
    (found,) = wire_events(replace(finished, chart=MEMORY))
    result = found.data["result"]
    assert isinstance(result, dict)
    assert result["chart"] == alt_text(MEMORY)


def test_counts_are_in_the_places_where_clients_look_for_them() -> None:
    metadata = data_of("tokens")["metadata"]

    assert isinstance(metadata, dict)
    assert set(metadata) == {"usage", "tokens", "max_tokens", "max_output_tokens", "costs"}
    assert metadata["tokens"] == {"total_tokens": 9}
    assert metadata["max_tokens"] == 99
    assert metadata["costs"]["total_cost"] == 0.0123
    assert metadata["usage"]["total_tokens"] == 23_400


def test_reasoning_is_shown_as_far_as_people_can_read_it() -> None:
    assert data_of("replied")["reasoning"] == "Hm."


def test_a_call_that_was_malformed_shows_what_the_model_wrote() -> None:
    call = ToolCall(id=ToolCallId("x"), name="t", arguments="{", malformed="{broken")
    (found,) = wire_events(ToolCallStarted(call=call, toolset=None, description="d"))
    assert found.data["params"] == "{broken"
