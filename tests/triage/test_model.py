"""The model as the loop sees it: name, limits, events, cost, and construction."""

from __future__ import annotations

import subprocess
import sys

from holmes.app.models import build_model
from holmes.llm.config import LitellmModelConfig
from holmes.triage import TRIAGE_MODEL, TriageModel
from holmes.triage.report import NO_LLM
from holmes.values.events import AgentEvent, TextDelta
from holmes.values.messages import SystemMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.stats import RequestStats


async def complete(model: TriageModel) -> tuple[list[AgentEvent], str, RequestStats]:
    events: list[AgentEvent] = []

    async def emit(event: AgentEvent) -> None:
        events.append(event)

    messages = (SystemMessage(text="You are Holmes."), user_text("why is checkout failing?"))
    request = ModelRequest(messages=messages, tools=(), tool_choice="auto", max_output_tokens=1_000)
    reply = await model.complete(request, emit)
    assert reply.model == model.name
    assert reply.finish_reason == "stop"
    return events, reply.message.text, reply.stats


async def test_the_streamed_text_is_the_answer_and_costs_nothing() -> None:
    events, text, stats = await complete(TriageModel())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert text.endswith(f"\n\n{NO_LLM}")
    assert stats == RequestStats(calls=1)
    assert stats.cost == 0.0


async def test_the_registry_builds_it_by_its_name_and_keeps_the_name_of_the_user() -> None:
    model = build_model(LitellmModelConfig(name="rules", model=TRIAGE_MODEL))
    assert isinstance(model, TriageModel)
    assert model.name == "rules"
    assert TriageModel().name == "builtin/triage" == TRIAGE_MODEL
    assert model.limits.context_window_tokens == 1_000_000
    assert not model.limits.vision
    await model.check()
    await model.aclose()


def test_it_imports_no_library_of_a_provider() -> None:
    code = (
        "import sys, asyncio; from holmes.app.models import build_model; import holmes.triage.answers; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'litellm', 'tiktoken', 'pydantic', 'httpx', 'yaml'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
