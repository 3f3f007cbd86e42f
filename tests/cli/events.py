"""A scripted investigation as events, for the tests of everything that reads the stream."""

from __future__ import annotations

from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    ModelSwitched,
    RunFailed,
    TextDelta,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultSpilled,
    TurnStarted,
)
from holmes.values.messages import (
    AssistantMessage,
    Message,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    ToolStatus,
    user_text,
)
from holmes.values.stats import RequestStats

STATS = RequestStats(prompt_tokens=22_000, completion_tokens=1_400, cached_tokens=18_000, cost=0.0123, calls=2)
PODS = ToolCall(id=ToolCallId("call-1"), name="kubectl_get", arguments='{"kind": "pods", "namespace": "shop"}')
LOGS = ToolCall(id=ToolCallId("call-2"), name="kubernetes_logs", arguments='{"pod": "checkout"}')
QUESTION = user_text("why is checkout failing?")
ANSWER = "# Cause\n\nThe ConfigMap **checkout** is missing.\n\n- create it\n- restart the pod\n"


def tool_message(call: ToolCall, text: str, status: ToolStatus = "success") -> ToolMessage:
    stored = StoredResult(id=ResultId("res-1"), path="/results/res-1.txt", size_bytes=9, media_type="text/plain")
    spilled = call is LOGS
    return ToolMessage(
        call_id=call.id,
        tool_name=call.name,
        status=status,
        parts=(Text(text=text),),
        stored=(stored,) if spilled else (),
        spilled=spilled,
    )


def finished(call: ToolCall, message: ToolMessage, error: str | None = None, elapsed: float = 1.25) -> ToolCallFinished:
    return ToolCallFinished(
        call=call,
        toolset="kubernetes/core",
        description=f"{call.name} {call.id}",
        message=message,
        invocation=f"kubectl {call.id}",
        error=error,
        elapsed_seconds=elapsed,
    )


def started(call: ToolCall) -> ToolCallStarted:
    return ToolCallStarted(call=call, toolset="kubernetes/core", description=f"{call.name} {call.id}")


ASSISTANT_CALLS = AssistantMessage(text="I look at the pods.", tool_calls=(PODS, LOGS))
PODS_RESULT = tool_message(PODS, "NAME READY\ncheckout 0/1\n")
LOGS_RESULT = tool_message(LOGS, "no such pod", "error")
CONVERSATION: tuple[Message, ...] = (
    SystemMessage(text="be thorough"),
    QUESTION,
    ASSISTANT_CALLS,
    PODS_RESULT,
    LOGS_RESULT,
    AssistantMessage(text=ANSWER),
)

FIRST_REPLY = RequestStats(prompt_tokens=900, calls=1, cost=0.002)

EVENTS: tuple[AgentEvent, ...] = (
    TurnStarted(step=1, max_steps=100),
    TextDelta(text="I look\n\nat\n"),
    AttemptDiscarded(model="gpt-4.1", reason="429 slow down", retry_in_seconds=2),
    TextDelta(text="I look at the pods."),
    AssistantReplied(message=ASSISTANT_CALLS, stats=FIRST_REPLY, model="gpt-4.1", total=FIRST_REPLY),
    TokensCounted(prompt_tokens=900, context_window_tokens=128_000, stats=STATS),
    started(PODS),
    started(LOGS),
    finished(PODS, PODS_RESULT),
    ToolResultSpilled(call=LOGS, tokens=120_000, cap_tokens=25_000, stored=True, limit="the limit is 25,000 tokens"),
    ApprovalRequired(call=LOGS, description="read logs"),
    finished(LOGS, LOGS_RESULT, error="pod 'checkout' not found"),
    ContextOverflowed(model="gpt-4.1", reason="maximum context length", total=FIRST_REPLY),
    CompactionStarted(tokens=130_000, trigger_tokens=121_600),
    CompactionFailed(reason="the summary was empty", stats=RequestStats(), total=FIRST_REPLY),
    HistoryCompacted(
        strategy="truncate",
        tokens_before=130_000,
        tokens_after=9_000,
        messages_before=40,
        messages_after=5,
        summary=None,
        stats=RequestStats(),
        total=FIRST_REPLY,
    ),
    ModelSwitched(from_model="gpt-4.1", to_model="claude", reason="503 overloaded", total=FIRST_REPLY),
    TurnStarted(step=2, max_steps=100),
    *(TextDelta(text=piece) for piece in ANSWER.split(" ") for piece in (piece + " ",)),
    AssistantReplied(message=AssistantMessage(text=ANSWER), stats=STATS, model="claude", total=FIRST_REPLY + STATS),
    AnswerFinished(text=ANSWER, messages=CONVERSATION, stats=STATS, steps=2, model="claude"),
)

FAILURE = RunFailed(
    error="The provider failed.", exit_code=1, messages=CONVERSATION[:2], stats=RequestStats(calls=1, unpriced_calls=1)
)
