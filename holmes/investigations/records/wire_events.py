"""Converts the events of an investigation to the wire format, which extends the wire format of HolmesGPT.

`messages` and `conversation_history` are empty here, because only the server can sign a conversation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from holmes.values.charts import alt_text
from holmes.values.events import (
    AnswerFinished,
    ApprovalRequired,
    AssistantReplied,
    AttemptDiscarded,
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
from holmes.values.messages import Image
from holmes.values.stats import spend_by_model, tokens_of
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from holmes.values.events import AgentEvent
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.messages import AssistantMessage, ToolCall
    from holmes.values.stats import RequestStats
    from holmes.values.verdicts import Verdict

NOTICE: Final = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEvent:
    """One event in the form that clients receive."""

    name: str
    data: JsonObject


def wire_events(event: AgentEvent) -> tuple[WireEvent, ...]:
    """Convert `event` to its wire form. Returns an empty tuple if clients do not receive the event."""
    match event:
        case TurnStarted() | TextDelta() | AttemptDiscarded() | ModelSwitched() | AssistantReplied():
            return _of_model(event)
        case ToolCallStarted() | ToolCallFinished() | ToolResultSpilled() | ApprovalRequired() | ToolResultsMasked():
            return (_of_tools(event),)
        case CompactionStarted() | HistoryCompacted() | CompactionFailed() | HistoryReplaced():
            return (_of_compaction(event),)
        case HookFired() | PromptShortened() | ContextOverflowed():
            return (_notice(event.kind, _notice_text(event)),)
        case TokensCounted() | AnswerFinished() | RunFailed():
            return (_of_run(event),)
        case _:
            assert_never(event)


def usage_metadata(stats: RequestStats) -> dict[str, JsonValue]:
    """Return the fields `usage` and `costs` for `metadata`."""
    usage: dict[str, JsonValue] = {**tokens_of(stats)}
    return {
        "usage": usage,
        "costs": {
            "total_cost": stats.cost,
            **usage,
            "calls": stats.calls,
            "unpriced_calls": stats.unpriced_calls,
            "num_compactions": stats.compactions,
            "compaction_cost": stats.compaction_cost,
            "compaction_tokens": stats.compaction_tokens,
            "compaction_by_model": [{**each} for each in spend_by_model(stats)],
            "estimated": stats.estimated,
        },
    }


def tool_result_data(event: ToolCallFinished) -> dict[str, JsonValue]:
    """Describe the result of a tool call, with the text that the model receives and the ids of the stored results.

    `chart` describes the picture of a result that has one.
    """
    message = event.message
    described: dict[str, JsonValue] = {} if event.chart is None else {"chart": alt_text(event.chart)}
    return {
        "status": message.status,
        "error": event.error,
        "data": output_text(message),
        "invocation": event.invocation,
        "params": arguments_of(event.call),
        "elapsed_seconds": round(event.elapsed_seconds, 3),
        "images": sum(isinstance(part, Image) for part in message.parts),
        "spilled": message.spilled,
        "stored": [
            {"id": stored.id, "size_bytes": stored.size_bytes, "media_type": stored.media_type}
            for stored in message.stored
        ],
        **described,
    }


def arguments_of(call: ToolCall) -> JsonValue:
    """Return the arguments of a tool call as JSON, or as a string if they are not valid JSON."""
    try:
        value: JsonValue = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.malformed or call.arguments
    return value


def _of_model(
    event: TurnStarted | TextDelta | AttemptDiscarded | ModelSwitched | AssistantReplied,
) -> tuple[WireEvent, ...]:
    match event:
        case TurnStarted():
            return (WireEvent(name="turn_started", data={"step": event.step, "max_steps": event.max_steps}),)
        case TextDelta():
            return (WireEvent(name="text_delta", data={"content": event.text, "checked": event.checked}),)
        case AttemptDiscarded():
            discarded: JsonObject = {
                "model": event.model,
                "reason": event.reason,
                "retry_in_seconds": event.retry_in_seconds,
            }
            return (WireEvent(name="attempt_discarded", data=discarded),)
        case ModelSwitched():
            switched = {"from_model": event.from_model, "to_model": event.to_model, "reason": event.reason}
            return (WireEvent(name="model_switched", data=switched),)
        case AssistantReplied():
            return _reply(event)
        case _:
            assert_never(event)


def _reply(event: AssistantReplied) -> tuple[WireEvent, ...]:
    """Convert a reply with tool calls. The last reply is the answer, which has its own event."""
    content, reasoning = event.message.text, _reasoning_text(event.message)
    if not event.message.tool_calls or not (content.strip() or reasoning):
        return ()
    metadata = {"model": event.model, "checked": event.checked, **usage_metadata(event.stats)}
    data: JsonObject = {"content": content, "reasoning": reasoning, "metadata": metadata}
    return (WireEvent(name="ai_message", data=data),)


def _of_tools(
    event: ToolCallStarted | ToolCallFinished | ToolResultSpilled | ApprovalRequired | ToolResultsMasked,
) -> WireEvent:
    match event:
        case ToolCallStarted():
            started: JsonObject = {
                "tool_name": event.call.name,
                "id": event.call.id,
                "toolset": event.toolset,
                "description": event.description,
                "params": arguments_of(event.call),
            }
            return WireEvent(name="start_tool_calling", data=started)
        case ToolCallFinished():
            finished: JsonObject = {
                "tool_call_id": event.call.id,
                "name": event.call.name,
                "description": event.description,
                "role": "tool",
                "toolset": event.toolset,
                "result": tool_result_data(event),
            }
            return WireEvent(name="tool_calling_result", data=finished)
        case ToolResultSpilled():
            stored = "is stored, and the model sees a preview"
            end = stored if event.stored else "cannot be stored, so the model must send a narrower query"
            text = f"The result of {event.call.name} ({event.tokens:,} tokens) {end}."
            return _notice(event.kind, text, tool_call_id=event.call.id)
        case ApprovalRequired():
            # Sent as a notice, because the wire event `approval_required` ends the stream.
            return _notice(event.kind, f"Approval required: {event.description}", tool_call_id=event.call.id)
        case ToolResultsMasked():
            sizes = f"{event.tokens_before:,} to {event.tokens_after:,} tokens"
            results = "tool result" if event.count == 1 else "tool results"
            return _notice(event.kind, f"Masked {event.count} old {results} (from {sizes}).")
        case _:
            assert_never(event)


def _of_compaction(event: CompactionStarted | HistoryCompacted | CompactionFailed | HistoryReplaced) -> WireEvent:
    match event:
        case CompactionStarted():
            text = f"Compacting the conversation ({event.tokens:,} tokens)."
            metadata: JsonObject = {"tokens": event.tokens, "trigger_tokens": event.trigger_tokens}
            return WireEvent(name="conversation_history_compaction_start", data={"content": text, "metadata": metadata})
        case HistoryCompacted():
            return WireEvent(name="conversation_history_compacted", data=_compacted(event))
        case CompactionFailed():
            return _notice(event.kind, f"Compaction failed: {event.reason}")
        case HistoryReplaced():
            return _notice(event.kind, "Compacted the conversation.")
        case _:
            assert_never(event)


def _compacted(event: HistoryCompacted) -> JsonObject:
    sizes = f"from {event.tokens_before:,} to {event.tokens_after:,} tokens"
    return {
        "content": f"Compacted the conversation {sizes}.",
        "compaction_summary": event.summary,
        "messages": [],
        "metadata": {
            "strategy": event.strategy,
            "tokens_before": event.tokens_before,
            "tokens_after": event.tokens_after,
            "messages_before": event.messages_before,
            "messages_after": event.messages_after,
            "flagged": list(event.flagged),
            "removed": event.removed.id if event.removed else None,
            **usage_metadata(event.stats),
        },
    }


def _notice_text(event: HookFired | PromptShortened | ContextOverflowed) -> str:
    match event:
        case HookFired():
            return event.text
        case PromptShortened():
            counted = f"{event.reported_tokens:,} of about {event.estimated_tokens:,} tokens"
            return f"The model {event.model!r} reports that it read only {counted} of the prompt."
        case ContextOverflowed():
            return f"The model {event.model!r} rejected the request as too long: {event.reason}"
        case _:
            assert_never(event)


def _of_run(event: TokensCounted | AnswerFinished | RunFailed) -> WireEvent:
    match event:
        case TokensCounted():
            counted: JsonObject = {
                **usage_metadata(event.stats),
                "tokens": {"total_tokens": event.prompt_tokens},
                "max_tokens": event.context_window_tokens,
                "max_output_tokens": event.max_output_tokens,
            }
            return WireEvent(name="token_count", data={"metadata": counted})
        case AnswerFinished():
            return WireEvent(name="ai_answer_end", data=_answer(event))
        case RunFailed():
            failed: JsonObject = {
                "description": event.error,
                "error_code": event.exit_code,
                "msg": event.error,
                "success": False,
                "metadata": usage_metadata(event.stats),
            }
            return WireEvent(name="error", data=failed)
        case _:
            assert_never(event)


def _verdict(verdict: Verdict | None) -> JsonValue:
    if verdict is None:
        return None
    return {"kind": verdict.kind, "by": verdict.by, "summary": verdict.summary, "root_cause": verdict.root_cause}


def _answer(event: AnswerFinished) -> JsonObject:
    citations: JsonValue = [
        {
            "result_id": each.result_id,
            "first_line": each.first_line,
            "last_line": each.last_line,
            "claim": each.claim,
            "outcome": each.outcome,
            "missing": list(each.missing),
        }
        for each in event.citations
    ]
    return {
        "analysis": event.text,
        "verdict": _verdict(event.verdict),
        "conversation_history": [],
        "follow_up_actions": [],
        "metadata": {
            "model": event.model,
            "steps": event.steps,
            "citations": citations,
            **usage_metadata(event.stats),
        },
    }


def _notice(kind: str, text: str, **more: JsonValue) -> WireEvent:
    return WireEvent(name=NOTICE, data={"kind": kind, "text": text, **more})


def _reasoning_text(message: AssistantMessage) -> str | None:
    """Return the readable text of the model's reasoning, or None if the reply has no readable reasoning."""
    texts: list[str] = []
    for block in message.reasoning:
        try:
            payload = json.loads(block.payload)
        except (ValueError, RecursionError):
            continue
        text = payload.get("reasoning_content") if isinstance(payload, dict) else None
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts) or None
