"""How large a window is taken to be, from the best source that knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.core.model import ModelLimits
from holmes.llm.config import LitellmModelConfig
from holmes.llm.limits import resolve_limits
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.model_facts import ModelFacts, is_loopback, model_facts


def limits(model: str, api_base: str | None = None, **overrides: int) -> ModelLimits:
    config = LitellmModelConfig(name="m", model=model, api_base=api_base)
    config = replace(config, **overrides)  # type: ignore[arg-type]
    return resolve_limits(config, model_facts(load_litellm(), config))


def sizes(found: ModelLimits) -> tuple[int, int, bool]:
    return found.context_window_tokens, found.max_output_tokens, found.vision


def test_known_models_come_from_the_price_map() -> None:
    assert sizes(limits("gpt-4o")) == (128_000, 16_384, True)
    assert sizes(limits("anthropic/claude-sonnet-4-5")) == (200_000, 64_000, True)
    assert sizes(limits("gemini/gemini-2.5-pro"))[0] == 1_048_576


def test_overrides_win() -> None:
    found = limits("gpt-4o", context_window_tokens=50_000, max_output_tokens=1_000)
    assert sizes(found) == (50_000, 1_000, True)


@pytest.mark.parametrize(
    "model", ["ollama/qwen2.5", "ollama_chat/llama3", "hosted_vllm/qwen", "lm_studio/x", "llamafile/x"]
)
def test_local_providers_get_a_small_window(model: str) -> None:
    assert limits(model).context_window_tokens == 32_768


@pytest.mark.parametrize("api_base", ["http://127.0.0.1:8000/v1", "http://localhost:1234/v1", "http://[::1]/v1"])
def test_an_unknown_model_on_this_machine_gets_a_small_window(api_base: str) -> None:
    assert sizes(limits("openai/claude-like", api_base)) == (32_768, 4_096, False)


def test_an_unknown_model_elsewhere_gets_the_usual_window() -> None:
    assert sizes(limits("openai/house-model", "https://models.example.com/v1")) == (200_000, 4_096, False)


@pytest.mark.parametrize(
    ("model", "window", "vision"),
    [
        ("claude-opus-9", 200_000, True),
        ("gpt-4o-2030-01-01", 128_000, True),
        ("o3-next", 200_000, True),
        ("gemini-2.5-new", 1_048_576, True),
        ("llama-3.9-instruct", 131_072, False),
    ],
)
def test_models_newer_than_the_map_are_known_by_their_family(model: str, window: int, vision: bool) -> None:
    facts = ModelFacts(provider="openrouter", model=model, is_local=False)
    found = resolve_limits(LitellmModelConfig(name="m", model=model), facts)
    assert (found.context_window_tokens, found.vision) == (window, vision)


def test_encoding_follows_the_family() -> None:
    assert limits("gpt-4o").encoding == "o200k_base"
    assert limits("openai/gpt-4").encoding == "cl100k_base"
    assert limits("anthropic/claude-sonnet-4-5").encoding == "cl100k_base"


def test_loopback_is_told_from_the_address_not_from_a_resolver() -> None:
    assert not is_loopback(None)
    assert not is_loopback("http://10.0.0.1/v1")
    assert not is_loopback("https://localhost.example.com/v1")
