"""Every scenario can be parsed, and their number is as documented."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.diagnosis.scenarios.model import AT_ONCE, FOLDER, HARD, Scenario, UseStep, load_scenarios, part_manifests

ALL = load_scenarios()
SETS = (HARD / "blind", HARD / "development", AT_ONCE)
OTHERS = tuple(each for folder in SETS for each in load_scenarios(folder=folder))


@pytest.mark.parametrize("scenario", [*ALL, *OTHERS], ids=lambda each: each.name)
def test_a_scenario_says_what_it_expects_and_its_steps_can_be_read(scenario: Scenario) -> None:
    places = {alias: f"{alias}-1" for alias in scenario.header.namespaces} | {"run": "abc123"}

    steps = tuple(scenario.steps(places))
    parts = [part for step in steps if isinstance(step, UseStep) for part in step.parts]

    assert steps
    assert all(part_manifests(part, places) for part in parts)
    assert bool(scenario.header.expected) == (scenario.expectation == "faults")
    assert bool(scenario.header.question) == (scenario in OTHERS)
    assert set(scenario.scanned) <= set(scenario.header.namespaces)
    assert all(
        target.namespace in {None, "", *scenario.header.namespaces}
        for target in (*scenario.header.innocent, *(one for each in scenario.header.expected for one in each.culprit))
    )


def test_there_are_sixty_faults_twenty_healthy_ones_and_thirty_blind_ones() -> None:
    counts = Counter(each.expectation for each in ALL)

    assert counts["faults"] >= 60
    assert counts["healthy"] >= 20
    assert sum(each.header.blind and each.expectation == "faults" for each in ALL) >= 30


def test_names_are_unique_over_both_folders() -> None:
    assert len({each.name for each in ALL}) == len(ALL)


def test_every_part_is_used() -> None:
    used = {part for scenario in ALL for step in scenario.steps({}) if isinstance(step, UseStep) for part in step.parts}

    assert used == {path.stem for path in (FOLDER / "parts").glob("*.yaml")}


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'no-such-fault'"):
        load_scenarios("no-such-fault")
