"""The figures after real runs, read as Prometheus reads them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from typing import TypeAlias

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.telemetry.instruments import QueueReading
from holmes.telemetry.metrics import Metrics
from holmes.telemetry.readers import observed
from holmes.values.errors import ModelError
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    ContextOverflowed,
    HistoryCompacted,
    HistoryReplaced,
    RunFailed,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultsMasked,
    ToolResultSpilled,
    TurnStarted,
)
from holmes.values.messages import AssistantMessage, Text, ToolCall, ToolCallId, ToolMessage
from holmes.values.stats import RequestStats
from tests.services import programs
from tests.services.fixtures import needed_programs
from tests.support.investigations import QUESTION, build_loop
from tests.telemetry.runs import (
    FALLBACK,
    MODEL,
    STATS,
    drain,
    scripted,
    stream_of,
    two_calls_then_an_answer,
    two_tools,
)

Samples: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], float]
TRIAGE = "builtin/triage"
CALL = ToolCall(id=ToolCallId("1"), name="left", arguments="{}")


def fresh() -> Metrics:
    return Metrics(models=[MODEL, FALLBACK, TRIAGE], models_without_llm=[TRIAGE])


async def text_of(metrics: Metrics, queue: QueueReading | None = None) -> str:
    return (await metrics.exposition(queue)).content.decode()


async def samples_of(metrics: Metrics, queue: QueueReading | None = None) -> Samples:
    """Every sample by its name and sorted labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(await text_of(metrics, queue))
        for sample in family.samples
    }


def value(samples: Samples, name: str, /, **labels: str) -> float | None:
    return samples.get((name, tuple(sorted(labels.items()))))


def finished(samples: Samples, outcome: str, source: str, answered_by: str) -> float | None:
    labels = {"outcome": outcome, "source": source, "answered_by": answered_by}
    return value(samples, "holmes_investigations_finished_total", **labels)


def spent(samples: Samples, purpose: str, model: str = MODEL) -> Mapping[str, float | None]:
    kinds = ("prompt", "completion", "cached", "cache_creation", "reasoning")
    return {kind: value(samples, "holmes_llm_tokens_total", model=model, purpose=purpose, kind=kind) for kind in kinds}


def finished_call(name: str = "left", toolset: str | None = "test/functions") -> ToolCallFinished:
    call = ToolCall(id=ToolCallId("1"), name=name, arguments="{}")
    return ToolCallFinished(
        call=call,
        toolset=toolset,
        description="",
        message=ToolMessage(call_id=call.id, tool_name=name, status="success", parts=(Text(text="x"),)),
        invocation=None,
        error=None,
        elapsed_seconds=0.2,
    )


async def test_a_real_run_is_counted_once_and_to_the_last_token() -> None:
    metrics = fresh()
    loop = build_loop([two_calls_then_an_answer()], [two_tools()])
    events = await drain(observed(loop.call_stream(QUESTION), metrics, source="api"))
    assert isinstance(events[-1], AnswerFinished)
    samples = await samples_of(metrics)

    assert spent(samples, "investigation") == {
        "prompt": 3_000, "completion": 150, "cached": 2_400, "cache_creation": 300, "reasoning": 60,
    }  # fmt: skip
    assert value(samples, "holmes_llm_cost_dollars_total", model=MODEL, purpose="investigation") == 0.75
    assert value(samples, "holmes_llm_calls_total", model=MODEL, purpose="investigation") == 3
    assert value(samples, "holmes_llm_call_duration_seconds_count", model=MODEL, outcome="answered") == 3
    assert value(samples, "holmes_llm_cache_hits_total", model=MODEL) == 3
    tools = {labels: count for (name, labels), count in samples.items() if name == "holmes_tool_calls_total"}
    assert tools == {
        (("status", "success"), ("tool", "left"), ("toolset", "test/functions")): 1,
        (("status", "error"), ("tool", "right"), ("toolset", "test/functions")): 1,
        (("status", "error"), ("tool", "unknown"), ("toolset", "unknown")): 1,
    }
    assert value(samples, "holmes_tool_call_duration_seconds_count", tool="left", toolset="test/functions") == 1
    assert finished(samples, "answered", "api", "llm") == 1


def promtool_says(text: str) -> tuple[int, str]:
    with needed_programs():
        promtool = programs.prometheus().with_name("promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


async def test_every_name_and_text_is_what_promtool_wants() -> None:
    metrics = fresh()
    await drain(
        observed(build_loop([two_calls_then_an_answer()], [two_tools()]).call_stream(QUESTION), metrics, source="api")
    )
    metrics.alerts_received(firing=2, resolved=1, duplicates=1)
    metrics.delivery(destination="slack", outcome="delivered")
    text = await text_of(metrics, QueueReading(by_state={"queued": 2}, waiting=2, oldest_wait_seconds=3.5))
    names = [family.name for family in text_string_to_metric_families(text)]
    assert all(name.startswith(("holmes_", "process_")) for name in names)
    assert not [name for name in names if name.endswith("_created")]
    assert await asyncio.to_thread(promtool_says, text) == (0, "")


async def test_a_scraper_that_asks_for_openmetrics_gets_it() -> None:
    shown = await fresh().exposition(None, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert shown.content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert shown.content.endswith(b"# EOF\n")
    assert (await fresh().exposition(None, "*/*")).content_type == "text/plain; version=0.0.4; charset=utf-8"


async def test_attempts_of_a_call_that_failed_for_good_are_counted_when_the_run_ends() -> None:
    metrics = fresh()
    lost = RequestStats(prompt_tokens=70, calls=2, cost=0.5)
    broken = ScriptedModel([ModelError("x", provider="p", model=MODEL, retryable=False, stats=lost)], name=MODEL)
    await drain(observed(build_loop([broken]).call_stream(QUESTION), metrics, source="api", model=MODEL))
    samples = await samples_of(metrics)
    assert value(samples, "holmes_llm_cost_dollars_total", model=MODEL, purpose="investigation") == 0.5
    assert value(samples, "holmes_llm_call_duration_seconds_count", model=MODEL, outcome="failed") == 1
    assert finished(samples, "failed", "api", "nobody") == 1


async def test_failed_attempts_before_a_reply_are_not_counted_twice() -> None:
    metrics = fresh()
    lost = RequestStats(prompt_tokens=100, calls=1, cost=0.1)
    with_both = STATS + lost
    stream = stream_of(
        [
            TurnStarted(step=1, max_steps=2),
            AttemptDiscarded(model=MODEL, reason="", retry_in_seconds=0, stats=lost),
            AssistantReplied(message=AssistantMessage(text="x"), stats=with_both, model=MODEL),
            AnswerFinished(text="x", messages=(), stats=with_both, steps=1, model=MODEL),
        ]
    )
    await drain(observed(stream, metrics, source=None))
    samples = await samples_of(metrics)
    assert spent(samples, "investigation")["prompt"] == 1_100
    assert value(samples, "holmes_llm_calls_total", model=MODEL, purpose="investigation") == 2
    assert value(samples, "holmes_llm_attempts_discarded_total", model=MODEL) == 1
    assert not [name for name, _ in samples if name == "holmes_investigations_finished_total"]


async def test_a_run_that_is_closed_counts_what_was_paid_and_as_cancelled() -> None:
    metrics = fresh()
    loop = build_loop([two_calls_then_an_answer()], [two_tools()])
    stream = observed(loop.call_stream(QUESTION), metrics, source="alertmanager")
    async for event in stream:
        if isinstance(event, ToolCallStarted):
            break
    await stream.aclose()
    samples = await samples_of(metrics)
    assert spent(samples, "investigation")["prompt"] == 1_000
    assert finished(samples, "cancelled", "alertmanager", "nobody") == 1


async def test_an_answer_by_rules_is_told_from_one_by_a_model_and_a_failover_is_seen() -> None:
    metrics = fresh()
    broken = ScriptedModel([ModelError("x", provider="p", model=MODEL, retryable=False)], name=MODEL)
    loop = build_loop([broken, scripted(ScriptedReply(text="done"), name=TRIAGE)])
    await drain(observed(loop.call_stream(QUESTION), metrics, source="api"))
    samples = await samples_of(metrics)
    assert value(samples, "holmes_llm_failovers_total", model=MODEL) == 1
    assert finished(samples, "answered", "api", "triage") == 1


async def test_single_events_can_be_counted_without_their_run() -> None:
    metrics = fresh()
    summary = RequestStats(prompt_tokens=500, calls=1, cost=0.01)
    for event in (
        TextDelta(text="x"),
        AssistantReplied(message=AssistantMessage(text="x"), stats=STATS, model=MODEL),
        finished_call(),
        ToolResultSpilled(call=CALL, tokens=9, cap_tokens=5, stored=True),
        ToolResultSpilled(call=CALL, tokens=9, cap_tokens=5, stored=False),
        HistoryCompacted(
            strategy="summarize", tokens_before=9, tokens_after=1, messages_before=2, messages_after=1, summary="",
            stats=summary,
        ),
        CompactionFailed(reason="", stats=summary),
        ToolResultsMasked(count=4, policy="path", tokens_before=9, tokens_after=1),
        ContextOverflowed(model=MODEL, reason=""),
        RunFailed(error="", exit_code=1, messages=(), stats=STATS),
        HistoryReplaced(messages=(), stats=STATS),
    ):  # fmt: skip
        metrics.observe(event)
    samples = await samples_of(metrics)
    assert spent(samples, "investigation")["prompt"] == 1_000
    assert spent(samples, "compaction", model="")["prompt"] == 1_000
    assert value(samples, "holmes_compactions_total", strategy="summarize") == 1
    assert value(samples, "holmes_compactions_total", strategy="mask") == 1
    assert value(samples, "holmes_compactions_failed_total") == 1
    assert value(samples, "holmes_tool_results_masked_total") == 4
    assert value(samples, "holmes_tool_results_spilled_total", stored="true") == 1
    assert value(samples, "holmes_tool_results_spilled_total", stored="false") == 1
    assert value(samples, "holmes_llm_context_overflows_total", model=MODEL) == 1


async def test_nobody_can_blow_up_the_number_of_series() -> None:
    metrics = fresh()
    for number in range(500):
        metrics.observe(finished_call(f"invented_{number}", toolset=None))
        metrics.observe(AssistantReplied(message=AssistantMessage(text=""), stats=STATS, model=f"model-{number}"))
        metrics.investigation_finished(outcome="failed", source=f"source-{number}", answered_by=None)
        metrics.delivery(destination=f"destination-{number}", outcome="gave_up")
    assert len(await samples_of(metrics)) < 300
    samples = await samples_of(metrics)
    assert value(samples, "holmes_tool_calls_total", toolset="unknown", tool="unknown", status="success") == 500
    assert value(samples, "holmes_llm_calls_total", model="other", purpose="investigation") == 500


async def test_an_error_of_the_stream_is_a_failed_investigation() -> None:
    metrics = fresh()
    calls = ScriptedReply(tool_calls=(scripted_call("left", text="a"),), stats=STATS)

    def bug(_: object) -> ScriptedReply:
        raise ZeroDivisionError

    loop = build_loop([ScriptedModel([calls, bug], name=MODEL)], [two_tools(together=1)])
    with pytest.raises(ZeroDivisionError):
        await drain(observed(loop.call_stream(QUESTION), metrics, source="api"))
    samples = await samples_of(metrics)
    assert finished(samples, "failed", "api", "nobody") == 1
