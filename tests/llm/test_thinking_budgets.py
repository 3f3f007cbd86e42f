"""No request has an output limit that its provider would refuse because of the thinking budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.values.errors import ModelError
from tests.llm.conftest import Recorder, provider, request
from tests.support.openai_server import ErrorReply

AWS = (("aws_access_key_id", "a"), ("aws_secret_access_key", "b"), ("aws_region_name", "us-east-1"))
Change: TypeAlias = Callable[[LitellmModelConfig], LitellmModelConfig]


def with_effort(config: LitellmModelConfig) -> LitellmModelConfig:
    return replace(config, reasoning_effort="high")


def with_budget(config: LitellmModelConfig) -> LitellmModelConfig:
    return replace(config, thinking={"type": "enabled", "budget_tokens": 4_096})


FAMILIES = {
    "anthropic/claude-sonnet-4-5": "",
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0": "",
    "bedrock/us.anthropic.claude-3-7-sonnet-20250219-v1:0": "",
    "databricks/databricks-claude-sonnet-4": "",
    "azure_ai/claude-sonnet-4-5": "",
    "gemini/gemini-2.5-flash": "",
    "openrouter/anthropic/claude-sonnet-4-5": "/v1",
    "openai/claude-sonnet-4-5": "/v1",  # a proxy that passes the effort on
}


async def sent_body(model: str, max_tokens: int, recorder: Recorder, thinking: Change) -> dict[str, Any]:
    """What the provider receives. It refuses, since only the request is looked at."""

    def change(config: LitellmModelConfig) -> LitellmModelConfig:
        base = str(config.api_base).removesuffix("/v1") + FAMILIES.get(model, "/v1")
        return thinking(replace(config, api_base=base, extra_arguments=AWS if "bedrock" in model else ()))

    with provider([ErrorReply(status=400, message="no")], model=model, change=change) as parts:
        with pytest.raises(ModelError):
            await parts.model.complete(replace(request(), max_output_tokens=max_tokens), recorder.emit)
        return dict(parts.server.requests[0].body)


def limit_and_budget(body: dict[str, Any]) -> tuple[int, int]:
    """The output limit and the budget of a request, whatever the provider calls them. An effort of a router counts."""
    generation = body.get("generationConfig") or body.get("inferenceConfig") or body
    names = ("max_tokens", "maxTokens", "max_output_tokens", "maxOutputTokens", "max_completion_tokens")
    limit = next(generation[name] for name in names if name in generation)
    fields = body.get("additionalModelRequestFields") or generation
    thinking = fields.get("thinking") or fields.get("thinkingConfig") or {}
    budget = thinking.get("budget_tokens") or thinking.get("thinkingBudget") or 0
    return limit, budget or (4_096 if body.get("reasoning_effort") else 0)


@pytest.mark.row("K5")
@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("thinking", [with_effort, with_budget])
async def test_a_short_reply_is_asked_for_without_thinking(model: str, thinking: Change, recorder: Recorder) -> None:
    limit, budget = limit_and_budget(await sent_body(model, 2_000, recorder, thinking))
    assert (limit, budget) == (2_000, 0)


@pytest.mark.parametrize("model", [name for name in FAMILIES if not name.startswith("openai")])
@pytest.mark.parametrize("thinking", [with_effort, with_budget])
async def test_a_long_reply_keeps_its_thinking(model: str, thinking: Change, recorder: Recorder) -> None:
    limit, budget = limit_and_budget(await sent_body(model, 8_000, recorder, thinking))
    assert (limit, budget) == (8_000, 4_096)


async def test_an_effort_without_a_budget_rule_stays(recorder: Recorder) -> None:
    body = await sent_body("openai/o3", 500, recorder, with_effort)
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (500, "high")


@pytest.mark.row("K5")
@pytest.mark.parametrize(("effort", "tokens"), [("low", 1_024), ("medium", 2_048), ("high", 4_096)])
async def test_an_effort_is_part_of_what_is_kept_free_for_the_reply(effort: str, tokens: int) -> None:
    with provider(
        [], model="anthropic/claude-sonnet-4-5", change=lambda config: replace(config, reasoning_effort=effort)
    ) as parts:
        await parts.model.check()
        assert parts.model.limits.thinking_tokens == tokens
