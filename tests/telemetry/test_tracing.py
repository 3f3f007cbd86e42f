"""The spans of investigations, as a collector gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from holmes.app.telemetry import open_tracer
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.telemetry.readers import traced
from holmes.telemetry.runs import RunAttributes
from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    ToolCallStarted,
    ToolResultsMasked,
    TurnStarted,
)
from holmes.values.messages import AssistantMessage
from holmes.values.model import EmitEvent, ModelReply, ModelRequest
from holmes.values.stats import RequestStats
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.investigations import QUESTION, build_loop
from tests.support.toolsets import FunctionToolset, tool
from tests.telemetry.otlp_collector import OtlpCollector, ReceivedSpan
from tests.telemetry.runs import (
    FALLBACK,
    MODEL,
    STATS,
    drain,
    scripted,
    settings_of,
    stream_of,
    two_calls_then_an_answer,
    two_tools,
)

INTERNAL, CLIENT = 1, 3
RUN = RunAttributes(source="api", conversation_id="conversation-1", model=MODEL)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with OtlpCollector() as running:
        yield running


def names(spans: list[ReceivedSpan]) -> list[str]:
    return [span.name for span in spans]


async def test_a_run_is_one_span_with_its_model_calls_and_tools_below(collector: OtlpCollector, tmp_path: Path) -> None:
    loop = build_loop([two_calls_then_an_answer()], [two_tools()])
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        events = await drain(traced(loop.call_stream(QUESTION), tracer, RUN))
    assert isinstance(events[-1], AnswerFinished)

    root = collector.root()
    assert (root.parent_id, root.kind, root.is_error) == ("", INTERNAL, False)
    assert root.resource["service.name"] == "holmes"
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "holmes",
        "gen_ai.agent.version": root.resource["service.version"],
        "gen_ai.conversation.id": "conversation-1",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.usage.input_tokens": 3_000,
        "gen_ai.usage.output_tokens": 150,
        "gen_ai.usage.cache_read.input_tokens": 2_400,
        "gen_ai.usage.cache_creation.input_tokens": 300,
        "gen_ai.usage.reasoning.output_tokens": 60,
        "holmes.cost_dollars": 0.75,
        "holmes.source": "api",
        "holmes.steps": 3,
    }
    chat = "chat claude-sonnet-4-5"
    children = collector.children()
    assert sorted(names(children)) == sorted(
        [chat, "execute_tool left", "execute_tool right", chat, "execute_tool unknown", chat]
    )
    assert all(root.started_ns <= span.started_ns <= span.ended_ns <= root.ended_ns for span in children)


async def test_model_calls_and_tools_say_what_the_conventions_ask_for(collector: OtlpCollector, tmp_path: Path) -> None:
    loop = build_loop([two_calls_then_an_answer()], [two_tools()])
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(loop.call_stream(QUESTION), tracer, RUN))

    calls = [span for span in collector.children() if span.name.startswith("chat")]
    assert [(span.kind, span.attributes["holmes.step"]) for span in calls] == [(CLIENT, 1), (CLIENT, 2), (CLIENT, 3)]
    assert calls[0].attributes.items() >= {
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "anthropic"),
        ("gen_ai.request.model", "claude-sonnet-4-5"),
        ("gen_ai.request.stream", True),
        ("gen_ai.conversation.id", "conversation-1"),
        ("gen_ai.usage.input_tokens", 1_000),
        ("gen_ai.usage.output_tokens", 50),
        ("gen_ai.usage.cache_read.input_tokens", 800),
        ("holmes.tool_calls", 2),
    }
    assert 0 <= float(calls[0].attributes["gen_ai.response.time_to_first_chunk"]) < 5
    left, right, unknown = (
        next(span for span in collector.children() if span.name == f"execute_tool {name}")
        for name in ("left", "right", "unknown")
    )
    assert left.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "conversation-1",
        "gen_ai.tool.name": "left",
        "gen_ai.tool.call.id": "scripted_1",
        "gen_ai.tool.type": "function",
        "holmes.step": 1,
        "holmes.toolset": "test/functions",
        "holmes.tool.status": "success",
        "holmes.tool.result_characters": len("found the-private-name"),
        "holmes.tool.spilled": False,
    }
    assert (right.attributes["error.type"], right.is_error) == ("tool_error", True)
    assert (unknown.attributes["error.type"], unknown.is_error) == ("unknown_tool", True)
    # They ran at the same time, and after the call that asked for them.
    assert left.started_ns < right.ended_ns
    assert right.started_ns < left.ended_ns
    assert calls[0].ended_ns <= min(left.started_ns, right.started_ns)
    assert max(left.ended_ns, right.ended_ns) <= calls[1].ended_ns


async def test_no_text_of_user_model_or_tool_leaves_with_a_span(collector: OtlpCollector, tmp_path: Path) -> None:
    loop = build_loop([two_calls_then_an_answer()], [two_tools()])
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(loop.call_stream(QUESTION), tracer, RUN))
    everything = repr(collector.spans())
    for text in ("the-private-name", "no such pod", "checkout", "invented_by_the_model", "You are Holmes"):
        assert text not in everything


async def test_a_model_that_fails_for_good_is_an_error_and_the_next_one_has_its_own_span(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    broken = ScriptedModel([ModelError("secret words", provider="p", model=MODEL, retryable=False)], name=MODEL)
    loop = build_loop([broken, scripted(ScriptedReply(text="done"), name=FALLBACK)])
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(loop.call_stream(QUESTION), tracer, RUN))
    failed, answered = collector.children()
    assert (failed.name, failed.attributes["error.type"], failed.is_error) == (
        "chat claude-sonnet-4-5", "no_reply", True,
    )  # fmt: skip
    assert (failed.description, "secret words" in repr(failed)) == ("", False)
    assert (answered.name, answered.is_error) == ("chat gpt-4.1", False)
    assert answered.attributes["gen_ai.provider.name"] == "openai"
    assert collector.root().attributes["gen_ai.request.model"] == "gpt-4.1"
    assert not collector.root().is_error


async def test_a_run_that_fails_is_an_error(collector: OtlpCollector, tmp_path: Path) -> None:
    broken = ScriptedModel([ModelError("secret words", provider="p", model=MODEL, retryable=False)], name=MODEL)
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(build_loop([broken]).call_stream(QUESTION), tracer, RUN))
    (call,) = collector.children()
    assert (call.name, call.attributes["error.type"]) == ("chat claude-sonnet-4-5", "no_reply")
    assert (collector.root().attributes["error.type"], collector.root().is_error) == ("run_failed", True)


async def test_a_run_that_is_closed_ends_all_its_spans_as_cancelled(collector: OtlpCollector, tmp_path: Path) -> None:
    async def hang(_: ToolInvocation) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    model = scripted(ScriptedReply(tool_calls=(scripted_call("hang"),), stats=STATS))
    loop = build_loop([model], [FunctionToolset(bodies=((tool("hang"), hang),))])
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        stream = traced(loop.call_stream(QUESTION), tracer, RUN)
        async for event in stream:
            if isinstance(event, ToolCallStarted):
                break
        await stream.aclose()
    assert [(span.name, span.is_error) for span in collector.children()] == [
        ("chat claude-sonnet-4-5", False),
        ("execute_tool hang", True),
    ]
    assert [span.attributes.get("error.type") for span in collector.spans()] == ["cancelled", None, "cancelled"]


async def test_a_run_that_is_cancelled_in_a_model_call_says_which_model_was_asked(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    class Hanging(ScriptedModel):
        async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
            asked.set()
            await asyncio.Event().wait()
            return await super().complete(request, emit)

    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        stream = traced(build_loop([Hanging([], name=MODEL)]).call_stream(QUESTION), tracer, RUN)
        task = asyncio.create_task(drain(stream))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (call,) = collector.children()
    assert (call.name, call.attributes["error.type"]) == ("chat claude-sonnet-4-5", "cancelled")


async def test_compactions_and_what_was_tried_again_are_seen(collector: OtlpCollector, tmp_path: Path) -> None:
    summary = RequestStats(prompt_tokens=500, completion_tokens=100, calls=1, cost=0.01, compactions=1)
    compacted = HistoryCompacted(
        strategy="summarize",
        tokens_before=9_000,
        tokens_after=2_000,
        messages_before=20,
        messages_after=5,
        summary="secret words",
        stats=summary,
    )
    emergency = HistoryCompacted(
        strategy="emergency",
        tokens_before=8_000,
        tokens_after=1_000,
        messages_before=20,
        messages_after=5,
        summary=None,
        stats=RequestStats(compactions=1),
    )
    stream = stream_of(
        [
            TurnStarted(step=1, max_steps=5),
            CompactionStarted(tokens=9_000, trigger_tokens=8_500),
            AttemptDiscarded(model=MODEL, reason="secret words", retry_in_seconds=0.1),
            CompactionFailed(reason="secret words", stats=RequestStats()),
            compacted,
            AttemptDiscarded(model=MODEL, reason="secret words", retry_in_seconds=1.5),
            ContextOverflowed(model=MODEL, reason="secret words"),
            emergency,
            AssistantReplied(message=AssistantMessage(text="x"), stats=STATS, model=MODEL),
            TurnStarted(step=2, max_steps=5),
            ToolResultsMasked(count=3, policy="path", tokens_before=900, tokens_after=100),
            AssistantReplied(message=AssistantMessage(text="x"), stats=STATS, model=MODEL),
            AnswerFinished(text="x", messages=(), stats=STATS, steps=2, model=MODEL),
        ]
    )
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(stream, tracer, RUN))
    spans = collector.children()
    chat = "chat claude-sonnet-4-5"
    # The attempt of the summary is the first discarded one; it belongs to the compaction, the second to the call.
    assert names(spans) == ["compact_history", chat, "compact_history", chat, "compact_history", chat]
    assert spans[0].attributes == {
        "holmes.step": 1,
        "holmes.compaction.strategy": "summarize",
        "holmes.compaction.tokens_before": 9_000,
        "holmes.compaction.tokens_after": 2_000,
        "holmes.compaction.masked": 0,
        "gen_ai.usage.input_tokens": 500,
        "gen_ai.usage.output_tokens": 100,
        "holmes.cost_dollars": 0.01,
    }
    assert spans[1].events == ("holmes.attempt_discarded",)
    assert (spans[1].attributes["error.type"], spans[1].is_error) == ("context_overflow", True)
    assert spans[2].attributes["holmes.compaction.strategy"] == "emergency"
    assert spans[3].attributes["gen_ai.conversation.compacted"] is True
    assert (spans[4].attributes["holmes.compaction.strategy"], spans[4].attributes["holmes.compaction.masked"]) == (
        "mask", 3,
    )  # fmt: skip
    assert all(before.ended_ns <= after.started_ns for before, after in pairwise(spans))
    assert "secret words" not in repr(collector.spans())


async def test_the_overflow_of_a_real_loop_leaves_the_calls_and_the_emergency(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    def reply(_: ModelRequest) -> ScriptedReply | ContextOverflow:
        if len(model.requests) == 2:
            return ContextOverflow("too long", provider="p", model=MODEL)
        if len(model.requests) == 1:
            return ScriptedReply(tool_calls=(scripted_call("left", text="word " * 3_000),), stats=STATS)
        return ScriptedReply(text="done", stats=STATS)

    model = ScriptedModel(reply, name=MODEL)
    async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
        await drain(traced(build_loop([model], [two_tools(together=1)]).call_stream(QUESTION), tracer, RUN))
    chat = "chat claude-sonnet-4-5"
    assert names(collector.children()) == [chat, "execute_tool left", chat, "compact_history", chat]
    assert [span.attributes.get("error.type") for span in collector.children()] == [
        None, None, "context_overflow", None, None,
    ]  # fmt: skip


async def test_without_a_tracer_the_stream_is_the_same_object() -> None:
    stream = build_loop([scripted(ScriptedReply(text="done"))]).call_stream(QUESTION)
    assert traced(stream, None, RUN) is stream
    await stream.aclose()
