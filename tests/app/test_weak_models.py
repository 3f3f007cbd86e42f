"""A model never makes an answer worse, however weak it is. The scripted models know no fault."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.plays import PlaySettings, opened, play
from tests.support.recorded_incidents import case_incidents, scenario_incidents
from tests.support.weak_models import BEHAVIOURS, weak_model

if TYPE_CHECKING:
    from tests.support.plays import Play
    from tests.support.recorded_incidents import RecordedIncident

MOST_REPLIES: Final = 4
RANK: Final = {"right": 0, "honest": 1, "wrong": 2}
SAMPLE: Final = ("claim-missing", "liveness-wrong-port", "dev-unseen-01")
VARIABLES: Final = {"PATH": os.environ["PATH"]}
BUILT_IN: Final = PlaySettings(variables=VARIABLES, overrides={"model": "builtin/triage"})
UNSEEN: Final = tuple(each for each in case_incidents("development", "questions") if each.id.startswith("dev-unseen"))
INCIDENTS: Final = {each.id: each for each in (*scenario_incidents(), *UNSEEN)}


async def _played(incident: RecordedIncident, *, first_look: bool) -> tuple[Play, dict[str, Play]]:
    """The answer of the rules alone, and the answer with each weak model."""
    async with opened(incident, BUILT_IN) as investigator:
        rules = await play(investigator, incident)
    overrides: dict[str, object] = {"first_look": first_look, "prompt": "short", "max_steps": 8}
    settings = PlaySettings(variables=VARIABLES, overrides=overrides, scripted=True)
    async with opened(incident, settings) as investigator:
        return rules, {name: await play(investigator, incident, partial(weak_model, name)) for name in BEHAVIOURS}


def _worse(rules: Play, plays: dict[str, Play]) -> dict[str, str]:
    return {name: each.text for name, each in plays.items() if RANK[each.outcome] > RANK[rules.outcome]}


def _too_many_replies(plays: dict[str, Play]) -> list[str]:
    return [name for name, each in plays.items() if each.turns > MOST_REPLIES]


@pytest.mark.parametrize("name", SAMPLE)
async def test_a_weak_model_with_a_first_look_is_as_right_as_the_rules(name: str) -> None:
    rules, plays = await _played(INCIDENTS[name], first_look=True)
    assert rules.outcome == "right"
    assert _worse(rules, plays) == {}
    assert not INCIDENTS[name].plain or _too_many_replies(plays) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_no_recorded_fault_is_answered_worse_with_a_weak_model() -> None:
    faults = [each for each in INCIDENTS.values() if each.plain]
    worse = {each.id: _worse(*await _played(each, first_look=True)) for each in (*faults[::2], *UNSEEN)}
    assert {name: texts for name, texts in worse.items() if texts} == {}
