"""What a call costs, by each of the three sources of a price."""

from __future__ import annotations

import pytest

from holmes.llm.config import LitellmModelConfig, Prices
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.model_facts import model_facts
from holmes.llm.usage import Billing, TokenCounts, estimated_counts
from holmes.tokens import load_encoding

COUNTS = TokenCounts(prompt=1000, completion=100, cached=300, cache_creation=200, reasoning=50)


def billing(model: str, prices: Prices | None = None) -> Billing:
    litellm = load_litellm()
    return Billing(litellm, model_facts(litellm, LitellmModelConfig(name="m", model=model)), prices)


def test_every_kind_of_token_has_its_own_price() -> None:
    stats = billing("anthropic/claude-sonnet-4-5").stats(COUNTS)
    assert stats.cost == pytest.approx(500 * 3e-6 + 300 * 0.3e-6 + 200 * 3.75e-6 + 100 * 15e-6)


def test_an_unknown_price_is_said_and_not_guessed() -> None:
    stats = billing("openai/house-model").stats(COUNTS)
    assert (stats.cost, stats.unpriced_calls, stats.calls) == (0.0, 1, 1)


def test_the_providers_own_bill_wins_over_the_map_and_custom_prices_over_both() -> None:
    assert billing("gpt-4o").stats(COUNTS, billed_cost=0.5).cost == 0.5
    prices = Prices(input_per_token=1.0, output_per_token=2.0)
    assert billing("gpt-4o", prices).stats(COUNTS, billed_cost=0.5).cost == 1200.0


def test_custom_prices_know_cached_and_created_tokens() -> None:
    prices = Prices(input_per_token=1.0, output_per_token=2.0, cache_read_per_token=0.1, cache_creation_per_token=1.25)
    assert billing("openai/house-model", prices).stats(COUNTS).cost == pytest.approx(500 + 30 + 250 + 200)


def test_all_counts_are_kept() -> None:
    stats = billing("gpt-4o").stats(COUNTS, estimated=True)
    assert (stats.prompt_tokens, stats.completion_tokens, stats.cached_tokens) == (1000, 100, 300)
    assert (stats.cache_creation_tokens, stats.reasoning_tokens, stats.estimated) == (200, 50, True)


def test_the_estimate_is_near_the_real_count_of_log_lines() -> None:
    text = "2026-01-01T10:00:00Z ERROR checkout connection to postgres:5432 refused\n" * 50
    real = len(load_encoding("cl100k_base").encode(text))
    assert estimated_counts(prompt_characters=len(text), completion_characters=0).prompt == pytest.approx(real, rel=0.4)
