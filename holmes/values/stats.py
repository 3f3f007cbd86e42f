"""The cost of model calls, in tokens and money."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Final

_NOT_NUMBERS: Final = frozenset({"estimated", "summaries"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStats:
    """The cost of model calls, in tokens and money. `a + b` is the cost of both.

    `prompt_tokens` includes `cached_tokens` and `cache_creation_tokens`. `completion_tokens` includes
    `reasoning_tokens`. `cost` is in US dollars. `estimated` is true if the provider reported no usage for at least one
    call. `unpriced_calls` is the number of calls to models without a known price. If this number is not 0, `cost` is a
    lower bound. `compactions` is the number of applied compactions. `compaction_cost` and `compaction_tokens` are the
    parts of `cost` and `total_tokens` that summaries used. `summaries` splits these parts by model, in the order of
    each model's first request.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced_calls: int = 0
    compactions: int = 0
    compaction_cost: float = 0.0
    compaction_tokens: int = 0
    estimated: bool = False
    summaries: tuple[ModelSpend, ...] = ()

    def __add__(self, other: RequestStats) -> RequestStats:
        """Add the fields. The sum is estimated if one of the two values is estimated."""
        total = {name: getattr(self, name) + getattr(other, name) for name in _numbers()}
        summaries = _by_model((*self.summaries, *other.summaries)) if self.summaries or other.summaries else ()
        return RequestStats(**total, estimated=self.estimated or other.estimated, summaries=summaries)

    @property
    def investigation_cost(self) -> float:
        """The cost without compaction, in US dollars."""
        return self.cost - self.compaction_cost

    @property
    def investigation_tokens(self) -> int:
        """The number of tokens without compaction."""
        return self.total_tokens - self.compaction_tokens

    @property
    def total_tokens(self) -> int:
        """The sum of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend:
    """The cost of all calls of one model."""

    model: str
    stats: RequestStats


def _by_model(spends: tuple[ModelSpend, ...]) -> tuple[ModelSpend, ...]:
    summed: dict[str, RequestStats] = {}
    for spend in spends:
        summed[spend.model] = summed[spend.model] + spend.stats if spend.model in summed else spend.stats
    return tuple(ModelSpend(model=model, stats=stats) for model, stats in summed.items())


def tokens_of(stats: RequestStats) -> dict[str, int]:
    """Return the numbers of tokens by kind and in total, with the keys of JSON documents."""
    kinds = ("prompt", "completion", "total", "cached", "cache_creation", "reasoning")
    return {f"{kind}_tokens": getattr(stats, f"{kind}_tokens") for kind in kinds}


def spend_by_model(stats: RequestStats) -> list[dict[str, str | int | float]]:
    """Return the cost of summaries for each model, with the keys of JSON documents."""
    return [
        {
            "model": each.model,
            "calls": each.stats.calls,
            "unpriced_calls": each.stats.unpriced_calls,
            "cost": each.stats.cost,
            **tokens_of(each.stats),
        }
        for each in stats.summaries
    ]


NOTHING_SPENT = RequestStats()


@cache
def _numbers() -> tuple[str, ...]:
    """Return the names of the fields that `a + b` adds."""
    return tuple(field.name for field in fields(RequestStats) if field.name not in _NOT_NUMBERS)
