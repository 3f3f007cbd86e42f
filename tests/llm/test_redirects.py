"""A provider's redirect never takes the prompt to another origin, whichever client litellm uses for the provider."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.values.errors import ConfigError, ModelError
from tests.llm.conftest import Recorder, provider, request
from tests.support.openai_server import Body, ErrorReply, OpenAIServer, Reply

AWS = (("aws_access_key_id", "a"), ("aws_secret_access_key", "b"), ("aws_region_name", "us-east-1"))
# One for each way in which litellm makes a client.
FAMILIES = (
    "openai/gpt-4o",
    "azure/gpt-4o",
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-flash",
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "hosted_vllm/qwen",
    "openrouter/qwen",
    "deepseek/deepseek-chat",
    "mistral/mistral-large-latest",
    "databricks/dbrx",
    "groq/llama-3.3-70b-versatile",
    "xai/grok-4",
    "together_ai/qwen",
    "text-completion-openai/qwen",
)


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_no_redirect_to_another_origin_is_followed(model: str, status: int, recorder: Recorder) -> None:
    def change(config: LitellmModelConfig) -> LitellmModelConfig:
        base = str(config.api_base)
        without = ("anthropic", "gemini", "bedrock", "azure")
        return replace(
            config,
            api_base=base.removesuffix("/v1") if model.startswith(without) else base,
            api_version="2024-06-01" if model.startswith("azure") else None,
            extra_arguments=AWS if model.startswith("bedrock") else (),
        )

    with OpenAIServer([Reply(text="gotcha")]) as elsewhere:
        target = f"{elsewhere.base_url}/chat/completions"
        moved = ErrorReply(status=status, headers={"location": f"{target}?key=x#y"})
        # The text family takes no tools: it can write summaries.
        asked = replace(request(), tools=()) if model.startswith("text") else request()
        with provider([moved], model=model, change=change) as parts, pytest.raises(ModelError) as caught:
            await parts.model.complete(asked, recorder.emit)
        assert len(parts.server.requests) == 1, "it was not asked again"
        assert elsewhere.requests == ()
    assert f"redirects to another origin, {target}; the prompt was not sent there" in str(caught.value)
    assert "if this origin is correct, set it as the base URL" in str(caught.value)


async def test_a_redirect_within_the_origin_is_followed(recorder: Recorder) -> None:
    moved = ErrorReply(status=307, headers={"location": "/v1/moved/chat/completions"})
    with provider([moved, Reply(text="here")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
        assert [asked.path for asked in parts.server.requests][-1] == "/v1/moved/chat/completions"
    assert reply.message.text == "here"


@pytest.mark.parametrize(
    "location", ["http:///moved", "https:/moved", "//127.0.0.1:9/moved", "HTTP://127.0.0.1:9/moved"]
)
async def test_another_origin_is_seen_however_it_is_written(location: str, recorder: Recorder) -> None:
    moved = ErrorReply(status=307, headers={"location": location})
    with provider([moved]) as parts, pytest.raises(ModelError, match=r"redirects to another origin, https?://127"):
        await parts.model.complete(request(), recorder.emit)


async def test_another_scheme_is_another_origin(recorder: Recorder) -> None:
    def moved(body: Body) -> ErrorReply:  # noqa: ARG001  whatever was asked
        place = parts.server.base_url.replace("http:", "https:")
        return ErrorReply(status=307, headers={"location": f"{place}/chat/completions"})

    with provider(moved) as parts, pytest.raises(ModelError, match="redirects to another origin, https://127"):
        await parts.model.complete(request(), recorder.emit)


async def test_the_provider_whose_client_follows_redirects_unseen_is_refused(recorder: Recorder) -> None:
    """It cannot stream either, so nobody loses anything."""
    with provider([Reply(text="x")], model="aiohttp_openai/gpt-4o") as parts:
        with pytest.raises(ConfigError, match="use 'openai/gpt-4o'"):
            await parts.model.complete(request(), recorder.emit)
        assert parts.server.requests == ()
