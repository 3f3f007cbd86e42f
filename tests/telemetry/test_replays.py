"""A durable investigation that is taken over counts and traces only what is done anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

from holmes.app.telemetry import open_tracer
from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.telemetry.metrics import Metrics
from holmes.telemetry.readers import observed, traced
from holmes.telemetry.runs import ReplayNotes, RunAttributes
from holmes.values.steps import DirectStepRunner
from tests.support.investigations import PROMPTS, QUESTION
from tests.telemetry.otlp_collector import OtlpCollector
from tests.telemetry.runs import MODEL, STATS, drain, scripted, settings_of, two_tools
from tests.telemetry.test_metrics import samples_of, spent, value

T = TypeVar("T")


class Journal(DirectStepRunner):
    """Keeps what steps returned; what `forgotten` names was never recorded."""

    def __init__(self) -> None:
        self.results: dict[str, object] = {}

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        if name not in self.results:
            self.results[name] = await step()
        return cast("T", self.results[name])


def loop_with(model: ScriptedModel, steps: ReplayNotes) -> ToolCallingLLM:
    parts = LoopParts(
        models=(LoopModel(model=model, policy=ContextPolicy()),),
        executor=ToolExecutor([two_tools(together=1)]),
        store=None,
        prompts=PROMPTS,
        steps=steps,
    )
    return ToolCallingLLM(parts)


async def test_what_an_earlier_attempt_did_is_neither_counted_nor_traced(tmp_path: Path) -> None:
    calls = ScriptedReply(tool_calls=(scripted_call("left", text="a"), scripted_call("left", text="b")), stats=STATS)
    answer = ScriptedReply(text="done", stats=STATS)
    journal = Journal()
    await drain(loop_with(scripted(calls, answer), ReplayNotes(journal)).call_stream(QUESTION))
    assert sorted(journal.results) == ["step-1/complete-0-0", "step-1/tool-0", "step-1/tool-1", "step-2/complete-0-0"]
    del journal.results["step-1/tool-1"], journal.results["step-2/complete-0-0"]  # it died before

    metrics, notes = Metrics(models=[MODEL]), ReplayNotes(journal)
    with OtlpCollector() as collector:
        async with open_tracer(settings_of(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as tracer:
            stream = observed(
                loop_with(scripted(answer), notes).call_stream(QUESTION), metrics, source=None, replays=notes
            )
            await drain(traced(stream, tracer, RunAttributes(source="alertmanager"), replays=notes))
        names = [span.name for span in collector.children()]
    samples = await samples_of(metrics)
    assert spent(samples, "investigation")["prompt"] == 1_000
    assert value(samples, "holmes_llm_call_duration_seconds_count", model=MODEL, outcome="answered") == 1
    labels = {"tool": "left", "toolset": "test/functions", "status": "success"}
    assert value(samples, "holmes_tool_calls_total", **labels) == 1
    assert names == ["execute_tool left", "chat claude-sonnet-4-5"]
