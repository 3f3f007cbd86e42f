"""Calculates the tokens and the cost of one model request as `RequestStats`.

The price sources, in order of priority, are the configured prices, the charge that the provider reports and litellm's
bundled price map. A request without a price is counted as unpriced. If the provider reports no usage, the numbers are
estimates, and the stats are marked as estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from holmes.llm.config import Prices
    from holmes.llm.litellm_loader import LitellmModule
    from holmes.llm.model_facts import ModelFacts

# Measured with the encoding cl100k_base, logs have 2.6 characters per token, and prose has 4.0.
_CHARACTERS_PER_TOKEN = 3.3
_MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Token counts of one request. `prompt` includes `cached` and `cache_creation`.

    `completion` includes `reasoning`.
    """

    prompt: int
    completion: int
    cached: int = 0
    cache_creation: int = 0
    reasoning: int = 0


def counts_of(usage: Any) -> TokenCounts:  # noqa: ANN401  litellm's Usage, which has no usable types
    """Read the token counts of a litellm usage object. Missing counts are 0.

    If any count is negative or too large, all are 0.
    """
    prompt_details = getattr(usage, "prompt_tokens_details", None)
    completion_details = getattr(usage, "completion_tokens_details", None)
    counts = TokenCounts(
        prompt=_count(usage, "prompt_tokens"),
        completion=_count(usage, "completion_tokens"),
        cached=_count(prompt_details, "cached_tokens") or _count(usage, "cache_read_input_tokens"),
        cache_creation=_count(prompt_details, "cache_creation_tokens") or _count(usage, "cache_creation_input_tokens"),
        reasoning=_count(completion_details, "reasoning_tokens"),
    )
    numbers = (counts.prompt, counts.completion, counts.cached, counts.cache_creation, counts.reasoning)
    return counts if all(0 <= number <= _MAX_TOKENS for number in numbers) else TokenCounts(prompt=0, completion=0)


def estimated_counts(*, prompt_characters: int, completion_characters: int) -> TokenCounts:
    """Estimate the token counts from the character counts. The error is at most about a third."""
    return TokenCounts(
        prompt=round(prompt_characters / _CHARACTERS_PER_TOKEN),
        completion=round(completion_characters / _CHARACTERS_PER_TOKEN),
    )


class Billing:
    """Calculates the cost of requests to one model."""

    def __init__(self, litellm: LitellmModule, facts: ModelFacts, prices: Prices | None) -> None:
        self._litellm = litellm
        self._facts = facts
        self._prices = prices

    def stats(self, counts: TokenCounts, *, estimated: bool = False, billed_cost: float | None = None) -> RequestStats:
        """Create the stats of one request. `billed_cost` is the charge that the provider reports, in US dollars."""
        cost = self._cost(counts, billed_cost)
        return RequestStats(
            prompt_tokens=counts.prompt,
            completion_tokens=counts.completion,
            cached_tokens=counts.cached,
            cache_creation_tokens=counts.cache_creation,
            reasoning_tokens=counts.reasoning,
            cost=cost or 0.0,
            calls=1,
            unpriced_calls=int(cost is None),
            estimated=estimated,
        )

    def _cost(self, counts: TokenCounts, billed_cost: float | None) -> float | None:
        if self._prices is not None:
            return _custom_cost(counts, self._prices)
        if billed_cost is not None:
            return billed_cost
        if not self._facts.is_priced:
            return 0.0 if self._facts.is_local else None
        prompt_cost, completion_cost = self._litellm.cost_per_token(
            model=self._facts.model,
            custom_llm_provider=self._facts.provider,
            usage_object=self._litellm.Usage(
                prompt_tokens=counts.prompt,
                completion_tokens=counts.completion,
                total_tokens=counts.prompt + counts.completion,
                cache_read_input_tokens=counts.cached,
                cache_creation_input_tokens=counts.cache_creation,
            ),
        )
        return float(prompt_cost + completion_cost)


def _custom_cost(counts: TokenCounts, prices: Prices) -> float:
    fresh = max(0, counts.prompt - counts.cached - counts.cache_creation)
    read = prices.input_per_token if prices.cache_read_per_token is None else prices.cache_read_per_token
    creation = prices.input_per_token if prices.cache_creation_per_token is None else prices.cache_creation_per_token
    prompt = fresh * prices.input_per_token + counts.cached * read + counts.cache_creation * creation
    return prompt + counts.completion * prices.output_per_token


def _count(holder: Any, name: str) -> int:  # noqa: ANN401  one of litellm's usage objects
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0
