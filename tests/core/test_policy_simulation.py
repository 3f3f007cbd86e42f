"""The simulation behind the benchmark of the policies, on thirty rounds: it runs, and `balanced` forgets little."""

from __future__ import annotations

import pytest

from benchmarks.policies import simulate
from benchmarks.policy_world import World
from holmes.core.policies import POLICY_NAMES, named_policy

ROUNDS = 30
WINDOW_TOKENS = 48_000


@pytest.mark.parametrize("name", POLICY_NAMES)
async def test_every_policy_ends_with_an_answer_and_balanced_keeps_the_facts(name: str) -> None:
    run = await simulate(named_policy(name), World(seed=21, rounds=ROUNDS), WINDOW_TOKENS)
    assert run.ended
    assert run.compactions + run.masks >= 1
    assert run.reachable >= run.visible
    assert 0 < run.cached_share < 1
    if name == "balanced":
        assert run.visible >= 0.8


async def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = [await simulate(named_policy("octo"), World(seed=5, rounds=9), WINDOW_TOKENS) for _ in range(2)]
    assert first == second
