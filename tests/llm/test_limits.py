"""How large a window is taken to be, from the best source that knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.llm.limits import resolve_limits
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.model_facts import ModelFacts, is_loopback, model_facts
from holmes.values.model import ModelLimits

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue


def limits(model: str, api_base: str | None = None, **overrides: int) -> ModelLimits:
    config = LitellmModelConfig(name="m", model=model, api_base=api_base)
    config = replace(config, **overrides)  # type: ignore[arg-type]
    return resolve_limits(config, model_facts(load_litellm(), config))


def sizes(found: ModelLimits) -> tuple[int, int, bool]:
    return found.context_window_tokens, found.max_output_tokens, found.vision


@pytest.mark.row("C6")
def test_known_models_come_from_the_price_map() -> None:
    assert sizes(limits("gpt-4o")) == (128_000, 16_384, True)
    assert sizes(limits("anthropic/claude-sonnet-4-5")) == (200_000, 64_000, True)
    assert sizes(limits("gemini/gemini-2.5-pro"))[0] == 1_048_576


@pytest.mark.row("C6")
def test_overrides_win_and_zero_overrides_nothing() -> None:
    found = limits("gpt-4o", context_window_tokens=50_000, max_output_tokens=1_000)
    assert sizes(found) == (50_000, 1_000, True)
    assert sizes(limits("gpt-4o", context_window_tokens=0)) == (128_000, 16_384, True)


@pytest.mark.row("C3")
def test_what_the_server_says_is_between_the_override_and_the_map() -> None:
    facts = ModelFacts(provider="openai", model="gpt-4o", is_local=True, context_window_tokens=128_000)
    for window, expected in ((None, 32_000), (0, 32_000), (50_000, 50_000)):
        config = LitellmModelConfig(name="m", model="openai/gpt-4o", context_window_tokens=window)
        assert resolve_limits(config, facts, served_window_tokens=32_000).context_window_tokens == expected


@pytest.mark.row("C6")
@pytest.mark.parametrize(
    "model", ["ollama/qwen2.5", "ollama_chat/llama3", "hosted_vllm/qwen", "lm_studio/x", "llamafile/x"]
)
def test_local_providers_get_a_small_window(model: str) -> None:
    assert limits(model).context_window_tokens == 32_768


@pytest.mark.parametrize("api_base", ["http://127.0.0.1:8000/v1", "http://localhost:1234/v1", "http://[::1]/v1"])
def test_an_unknown_model_on_this_machine_gets_a_small_window(api_base: str) -> None:
    assert sizes(limits("openai/claude-like", api_base)) == (32_768, 4_096, False)


@pytest.mark.row("C6")
def test_an_unknown_model_elsewhere_gets_the_usual_window() -> None:
    assert sizes(limits("openai/house-model", "https://models.example.com/v1")) == (200_000, 4_096, False)


@pytest.mark.parametrize(
    ("model", "window", "vision"),
    [
        ("claude-3-nova", 200_000, True),
        ("gpt-4o", 128_000, True),
        ("gpt-4o-mini", 128_000, True),
        ("o1-next", 200_000, True),
        ("o3", 200_000, True),
        ("o3-mini", 200_000, True),
        ("o4-next", 200_000, True),
        ("gemini-2.5-next", 1_000_000, True),
        ("deepseek-chat", 131_072, False),
        ("llama-3.3-70b-versatile", 128_000, False),
        ("mistral-large-latest", 128_000, False),
    ],
)
@pytest.mark.row("C6")
def test_the_tables_of_octo_and_digitorn_are_the_fallback(model: str, window: int, vision: bool) -> None:
    facts = ModelFacts(provider="unheard-of", model=model, is_local=False)
    found = resolve_limits(LitellmModelConfig(name="m", model=model), facts)
    assert (found.context_window_tokens, found.vision) == (window, vision)


@pytest.mark.parametrize(
    ("model", "window", "vision"),
    [
        ("demo3-model4", 200_000, False),
        ("claude-opus-9", 200_000, True),
        ("gpt-4o-2030-01-01", 128_000, True),
        ("o3-next", 200_000, True),
        ("gemini-3-new", 1_048_576, True),
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


@pytest.mark.parametrize(
    ("model", "formula"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic"),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic"),
        ("gpt-4o", "openai"),
        ("openai/o3", "openai"),
        ("gemini/gemini-2.5-pro", "gemini"),
        ("openrouter/google/gemini-2.5-pro", "gemini"),
        ("xai/grok-4", "largest"),
        ("hosted_vllm/qwen-vl", "note"),
        ("openai/house-model", "note"),
    ],
)
def test_pictures_are_counted_as_the_maker_of_the_model_does(model: str, formula: str) -> None:
    assert limits(model).image_formula == formula


def test_loopback_is_told_from_the_address_not_from_a_resolver() -> None:
    assert not is_loopback(None)
    assert not is_loopback("http://10.0.0.1/v1")
    assert not is_loopback("https://localhost.example.com/v1")


@pytest.mark.row("C2")
@pytest.mark.parametrize(
    ("thinking", "tokens"),
    [
        (None, 0),
        ({"type": "enabled", "budget_tokens": 10_000}, 10_000),
        ({"type": "disabled", "budget_tokens": 10_000}, 0),
        ({"type": "adaptive"}, 0),
        ({"type": "enabled", "budget_tokens": "many"}, 0),
        ({"type": "enabled", "budget_tokens": -1}, 0),
    ],
)
def test_the_reserve_knows_the_thinking_budget(thinking: JsonValue, tokens: int) -> None:
    config = LitellmModelConfig(name="m", model="gpt-4o", thinking=thinking)
    facts = ModelFacts(provider="openai", model="gpt-4o", is_local=False)
    assert resolve_limits(config, facts).thinking_tokens == tokens
