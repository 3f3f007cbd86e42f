"""The recorded scenarios of the hard set: the answers of the development half, and the totals of the blind half.

`python -m tests.diagnosis.scenarios.hard_set --record tests/diagnosis/recordings/hard` records them again. Never print
answers of the blind half: nobody has tuned a rule against them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.diagnosis.scenarios.answers import describe_answer, figures_of
from tests.diagnosis.scenarios.hard_set import answer_recorded, known_misses, load_hard, recorded
from tests.diagnosis.scenarios.model import Scenario
from tests.support.long_form import cases

LEAST_BLIND_TOP1: Final = 16
MOST_BLIND_INNOCENTS: Final = 0


@pytest.mark.parametrize("scenario", cases(recorded("development"), 2), ids=lambda each: each.name)
async def test_a_recorded_hard_scenario_gets_the_right_answer(scenario: Scenario, tmp_path: Path) -> None:
    score = await answer_recorded(scenario, tmp_path)

    assert score.right != (scenario.name in known_misses()), describe_answer(score)


@pytest.mark.slow
async def test_the_blind_half_does_not_get_worse(tmp_path: Path) -> None:
    scores = [await answer_recorded(each, tmp_path / each.name) for each in recorded("blind")]

    figures = figures_of(scores)
    assert figures.top1 >= LEAST_BLIND_TOP1
    assert figures.innocents_in_faults + figures.innocents_in_healthy <= MOST_BLIND_INNOCENTS


def test_both_halves_are_as_large_as_documented() -> None:
    blind, development = load_hard("blind"), load_hard("development")

    assert figures_of_expectations(blind) == (28, 13)
    assert sum(figures_of_expectations((*blind, *development))) >= 80


def figures_of_expectations(scenarios: tuple[Scenario, ...]) -> tuple[int, int]:
    faults = sum(each.expectation == "faults" for each in scenarios)
    return faults, len(scenarios) - faults
