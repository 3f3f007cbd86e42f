"""The sums: the cap of one result, and how a window is divided."""

from __future__ import annotations

import pytest

from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.core.truncation.context import HistoryBudget


@pytest.mark.parametrize(
    ("pct", "window", "cap"),
    [
        (15.0, 32_000, 4_800),
        (15.0, 200_000, 25_000),
        (100.0, 8_000, 8_000),
        (0.0, 8_000, 25_000),
        (-1.0, 8_000, 25_000),
        (100.1, 8_000, 25_000),
    ],
)
def test_the_cap_is_the_smaller_of_both_limits_unless_the_percentage_makes_no_sense(
    pct: float, window: int, cap: int
) -> None:
    assert SpillPolicy(max_pct=pct).cap_tokens(window) == cap


def test_a_window_is_divided_as_the_specification_says() -> None:
    budget = HistoryBudget(
        window_tokens=200_000,
        reserve_tokens=50_000,
        schema_tokens=4_000,
        system_tokens=2_000,
        max_output_tokens=50_000,
        policy=ContextPolicy(),
    )
    assert budget.history_limit_tokens == 190_000 - 50_000 - 4_000
    assert budget.hard_limit_tokens == 146_000
    assert budget.usable_tokens == 144_000
    assert budget.tail_tokens == 20_000
    assert budget.newest_round_tokens == 43_200
    assert budget.summary_tokens == 4_096


def test_a_window_that_prompt_and_schemas_fill_leaves_nothing_and_breaks_nothing() -> None:
    budget = HistoryBudget(
        window_tokens=4_000,
        reserve_tokens=1_000,
        schema_tokens=3_000,
        system_tokens=2_000,
        max_output_tokens=50_000,
        policy=ContextPolicy(),
    )
    assert (budget.usable_tokens, budget.tail_tokens, budget.newest_round_tokens) == (0, 0, 0)
    assert budget.summary_tokens == 64
