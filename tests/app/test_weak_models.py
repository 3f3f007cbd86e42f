"""A model never makes an answer worse, however weak it is, and leads where it is right and the rules are not.

The scripted models play recorded incidents through the whole loop. Weak models know no fault, false models state causes
in many forms with evidence that does not prove them. `make test` plays a share of the incidents, `make test-long` all.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from holmes.app.outfits import SHORT_FORM_TOKENS
from holmes.tokens import TokenCounter
from holmes.triage import TriageModel
from holmes.values.events import AssistantReplied
from tests.support.beyond_rules import DANGEROUS, dangerous_model, incidents_beyond_rules, understanding_model
from tests.support.false_models import FALSE_BEHAVIOURS, false_model
from tests.support.knowing_models import knowing_model
from tests.support.long_form import cases, count
from tests.support.plays import PlaySettings, opened, play
from tests.support.recorded_incidents import case_incidents, hard_incidents, other_incidents, scenario_incidents
from tests.support.rule_incidents import chain_incidents, row_incidents
from tests.support.weak_models import BEHAVIOURS, weak_model
from tests.triage.corpus.loading import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holmes.values.model import ChatModel
    from tests.support.beyond_rules import BeyondRules
    from tests.support.plays import Play
    from tests.support.recorded_incidents import RecordedIncident
    from tests.triage.corpus.loading import Half

MOST_REPLIES: Final = 4
LEAST_RIGHT_WITHOUT_LOOK: Final = 20
RANK: Final = {"right": 0, "honest": 1, "wrong": 2}
VARIABLES: Final = {"PATH": os.environ["PATH"]}
BUILT_IN: Final = PlaySettings(variables=VARIABLES, overrides={"model": "builtin/triage"})
PLAIN: Final = (
    "anti-affinity-one-node", "claim-missing", "configmap-key-renamed", "configmap-wrong-port", "cpu-request-too-large",
    "crash-required-variable-removed", "cronjob-image-missing", "host-name-typo", "image-tag-typo",
    "ingress-service-missing", "init-migration-fails", "job-gives-up", "limit-range-exceeded", "liveness-wrong-port",
    "must-not-run-as-root", "network-policy-names-wrong-label", "node-selector-typo", "oom-after-limit-lowered",
    "pod-security-privileged", "probe-program-missing", "pull-secret-missing", "quota-blocks-rollout",
    "role-lacks-resource", "scaled-to-zero-in-use", "secret-deleted", "service-account-missing",
    "service-selector-typo", "storage-class-missing", "target-port-wrong-number", "wrong-command",
)  # fmt: skip
"""Plain faults with one object to blame, which the rules name."""
UNSEEN: Final = tuple(each for each in case_incidents("development", "questions") if each.id.startswith("dev-unseen"))
"""Questions about faults that nothing in the cluster shows."""
BEYOND: Final = incidents_beyond_rules()
INCIDENTS: Final = {each.id: each for each in (*scenario_incidents(), *UNSEEN)}
ONCE_WORSE: Final = (
    "dev-fact-01", "qb-filter-10", "c18-h4-can-i-no", "dev-wording-7-04", "r2-pe7-040", "r2-har-012",
    "dev-change-or-reveal-06", "r4-b624",
)  # fmt: skip
"""Questions that false models once answered in place of the rules."""
MISSED: Final = (
    "b2c-38", "c02-f1", "c03-r31-celery-unregistered", "ha-16", "ha-18", "mx-13-restore", "u6-29", "uk-18",
)  # fmt: skip
"""Recorded faults that the rules answered with another cause or none, and whose lines show the cause."""
EMPTY_HANDED: Final = ("invents all", "contradicts", "says nothing")
LIES: Final = {name: partial(false_model, name) for name in FALSE_BEHAVIOURS}
QUIET_LIES: Final = {name: model for name, model in LIES.items() if name != "storm of calls"}
STORM: Final = {"storm of calls": LIES["storm of calls"]}
"""Takes as long as all other false models together: each of its 96 calls starts a process."""
WEAK: Final = {name: partial(weak_model, name) for name in BEHAVIOURS}
_RULES: Final = "rules"
"""The built-in model among others, which shares their cluster and its scan."""
PROCESSES: Final = count(long=os.cpu_count() or 1, short=1)


async def _rules(incident: RecordedIncident) -> Play:
    """The answer of the rules alone."""
    async with opened(incident, BUILT_IN) as investigator:
        return await play(investigator, incident)


async def _plays(
    incident: RecordedIncident, models: Mapping[str, Callable[[], ChatModel]], *, first_look: bool = True
) -> dict[str, Play]:
    """The answer with each model."""
    overrides: dict[str, object] = {"first_look": first_look, "prompt": "short", "max_steps": 8}
    settings = PlaySettings(variables=VARIABLES, overrides=overrides, scripted=True)
    async with opened(incident, settings) as investigator:
        return {name: await play(investigator, incident, model) for name, model in models.items()}


def _worse(rules: Play, plays: Mapping[str, Play]) -> dict[str, str]:
    return {name: each.text for name, each in plays.items() if RANK[each.outcome] > RANK[rules.outcome]}


async def _worse_answers(
    incident: RecordedIncident, models: Mapping[str, Callable[[], ChatModel]]
) -> tuple[str, dict[str, str]]:
    plays = await _plays(incident, {_RULES: TriageModel, **models})
    return incident.id, _worse(plays.pop(_RULES), plays)


def _worse_in_process(
    incident: RecordedIncident, models: Mapping[str, Callable[[], ChatModel]]
) -> tuple[str, dict[str, str]]:
    return asyncio.run(_worse_answers(incident, models))


def _all_worse(
    incidents: Sequence[RecordedIncident], models: Mapping[str, Callable[[], ChatModel]]
) -> dict[str, dict[str, str]]:
    """For each incident with worse answers, these answers. The long form plays on all cores."""
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        played = list(pool.map(partial(_worse_in_process, models=models), incidents, chunksize=4))
    return {name: texts for name, texts in played if texts}


def _replies(each: Play) -> int:
    """The number of replies of the scripted model, without those of its fallback."""
    return sum(isinstance(event, AssistantReplied) and event.model.startswith("scripted") for event in each.events)


def _faults(half: Half) -> tuple[RecordedIncident, ...]:
    """All recorded faults of one half of the corpora."""
    hard = hard_incidents(half) if half != "unseen" else ()
    recorded = (*hard, *case_incidents(half), *case_incidents(half, "questions"), *other_incidents(half))
    return tuple(each for each in recorded if "cause_found" in each.verdicts)


async def _not_right(names: Sequence[str], *, first_look: bool) -> dict[str, list[str]]:
    """For each weak model, the plain faults that it does not end in the right cause of, within four replies."""
    missed = dict[str, list[str]]()
    for name in names:
        for model, each in (await _plays(INCIDENTS[name], WEAK, first_look=first_look)).items():
            if each.outcome != "right" or _replies(each) > MOST_REPLIES:
                missed.setdefault(model, []).append(name)
    return missed


async def test_a_weak_model_ends_in_the_right_cause_of_a_plain_fault() -> None:
    assert await _not_right(("liveness-wrong-port",), first_look=True) == {}


async def test_a_small_model_gets_a_prompt_and_tools_of_at_most_2500_tokens() -> None:
    model, counter = weak_model("workload as pod"), TokenCounter()
    await _plays(INCIDENTS["liveness-wrong-port"], {"small": lambda: model})
    assert len(model.requests) > 1
    for request in model.requests:
        prompt = counter.count_text(request.messages[0].text)
        assert 1_000 < prompt + counter.count_tools(request.tools) <= SHORT_FORM_TOKENS


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_weak_models_end_in_the_right_cause_of_all_plain_faults() -> None:
    assert len(PLAIN) == 30
    assert await _not_right(cases(PLAIN, 6), first_look=True) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_weak_models_without_a_first_look_end_in_most_right_causes() -> None:
    names = cases(PLAIN, 6)
    missed = await _not_right(names, first_look=False)
    least = LEAST_RIGHT_WITHOUT_LOOK * len(names) / len(PLAIN)
    assert {model: ids for model, ids in missed.items() if len(names) - len(ids) < least} == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_cause_that_cannot_be_seen_stays_unknown() -> None:
    assert len(UNSEEN) == 15
    for incident in cases(UNSEEN, 8):
        plays = await _plays(incident, {**WEAK, **QUIET_LIES})
        kinds = {name: each.verdict.kind if each.verdict else None for name, each in plays.items()}
        assert {name: kind for name, kind in kinds.items() if kind != "inconclusive"} == {}, incident.id


@pytest.mark.slow
async def test_a_model_that_knows_nothing_is_as_right_as_the_rules() -> None:
    incident = INCIDENTS["claim-missing"]
    rules = await _rules(incident)
    assert rules.outcome == "right"
    assert _worse(rules, await _plays(incident, {**WEAK, **LIES})) == {}


@pytest.mark.slow
@pytest.mark.timeout(count(long=7200, short=1800))
def test_no_recorded_fault_is_answered_worse() -> None:
    """A model that invents everything, contradicts the facts or says nothing."""
    scenarios = [each for each in scenario_incidents() if "cause_found" in each.verdicts]
    faults = (*scenarios, *chain_incidents(), *row_incidents(), *_faults("development"))
    assert len(faults) >= 2000
    assert _all_worse(cases(faults, 250), {name: WEAK[name] for name in EMPTY_HANDED}) == {}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_fault_of_the_other_halves_is_answered_worse() -> None:
    """Tells only the number, so that the code is not adjusted to these cases."""
    faults = (*_faults("blind"), *_faults("unseen"))
    assert len(faults) >= 200
    worse = len(_all_worse(faults, {name: WEAK[name] for name in EMPTY_HANDED}))
    assert worse == 0


@pytest.mark.slow
@pytest.mark.timeout(count(long=7200, short=1800))
def test_no_answer_gets_worse_with_a_false_cause() -> None:
    """Faults, healthy clusters and questions of fact. What the rules do not understand is for the model to answer."""
    asked = (
        *case_incidents("development"),
        *hard_incidents("development"),
        *case_incidents("development", "questions"),
    )
    recorded = (*scenario_incidents(), *(each for each in asked if "not_understood" not in each.verdicts))
    worse_before = [each for each in recorded if each.id in ONCE_WORSE]
    assert len(worse_before) == len(ONCE_WORSE)
    incidents = (*cases(worse_before, 2), *cases(recorded[7::9], 300))
    assert _all_worse(incidents, QUIET_LIES) == {}
    assert _all_worse(incidents[::10], STORM) == {}


async def _leads(case: BeyondRules) -> Play:
    plays = await _plays(case.incident, {"understands": partial(understanding_model, case)})
    return plays["understands"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", BEYOND, ids=lambda each: each.incident.id)
async def test_a_model_that_is_right_leads_where_the_rules_are_not(case: BeyondRules) -> None:
    assert (await _rules(case.incident)).outcome == "honest"
    answer = await _leads(case)
    assert answer.verdict is not None
    assert (answer.outcome, answer.verdict.kind, answer.verdict.by) == ("right", "cause_found", "model"), answer.text
    assert answer.text.startswith("**Root cause:** ")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", cases(BEYOND, 4), ids=lambda each: each.incident.id)
async def test_a_wrong_cause_with_a_real_citation_does_not_lead(case: BeyondRules) -> None:
    models = {name: partial(dangerous_model, name, case) for name in DANGEROUS}
    for name, each in (await _plays(case.incident, models)).items():
        assert each.verdict is not None
        assert (each.verdict.kind, each.verdict.by) == ("inconclusive", "rules"), f"{name}: {each.text}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", cases(MISSED, 3))
async def test_a_right_cause_leads_in_recorded_faults_that_the_rules_miss(name: str) -> None:
    """The rules may learn these faults. Then they may lead."""
    incident = next(each for each in case_incidents("development") if each.id == name)
    assert isinstance(incident.source, Case)
    rules = await _rules(incident)
    answer = (await _plays(incident, {"knows": partial(knowing_model, incident.source)}))["knows"]
    assert answer.outcome == "right", answer.text
    assert answer.verdict is not None
    assert rules.outcome == "right" or answer.verdict.by == "model"
    assert "No result shows" not in answer.text
