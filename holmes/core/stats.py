"""What a request cost. Filled in `holmes.llm` only; the loop adds compactions and sums."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStats:
    """Tokens and money of any number of model calls; `a + b` is the cost of both.

    `prompt_tokens` includes `cached_tokens` and `cache_creation_tokens`; `completion_tokens` includes
    `reasoning_tokens`. `cost` is in US dollars. `estimated` is true as soon as one summand was estimated because the
    provider reported no usage. `unpriced_calls` counts calls of models whose price is not known (cost 0 is then a
    lower bound). `compactions` counts compactions that were adopted; `compaction_cost` and `compaction_tokens` are the
    part of `cost` and of `total_tokens` that writing summaries took; the rest is the investigation's.
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

    def __add__(self, other: RequestStats) -> RequestStats:
        """The sum, field by field; `estimated` spreads."""
        total = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name != "estimated"
        }
        return RequestStats(**total, estimated=self.estimated or other.estimated)

    @property
    def investigation_cost(self) -> float:
        """What everything but compaction cost, in US dollars."""
        return self.cost - self.compaction_cost

    @property
    def investigation_tokens(self) -> int:
        """Tokens of everything but compaction."""
        return self.total_tokens - self.compaction_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


NOTHING_SPENT = RequestStats()
