"""The recorded incidents of `benchmarks/models.py`: a compact cluster is served as the rules see it, and judged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holmes.triage.conversation import read_conversation
from holmes.values.events import AnswerFinished
from holmes.values.verdicts import Verdict
from tests.support.plays import PlaySettings, opened, outcome_of, play
from tests.support.recorded_incidents import Cause, RecordedIncident, case_incidents, recorded_incidents
from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import Case

if TYPE_CHECKING:
    from holmes.values.verdicts import VerdictKind

BUILT_IN = PlaySettings(variables={"PATH": os.environ["PATH"]}, overrides={"model": "builtin/triage"})
SERVED = ("c03-f1-pool-exhausted", "c07-f4-node-down", "c08-f1-argo-degraded", "c08-f3-zalando-create-failed")
INCIDENTS = {each.id: each for each in case_incidents("development")}


def test_there_are_enough_incidents_and_each_has_an_id_of_its_own() -> None:
    found = recorded_incidents()
    assert len({each.id for each in found}) == len(found) >= 300
    assert sum(each.plain for each in found) >= 200


@pytest.mark.parametrize("name", SERVED)
async def test_a_served_cluster_gets_the_same_look_as_the_compact_one(name: str) -> None:
    incident = INCIDENTS[name]
    assert isinstance(incident.source, Case)
    (direct,) = answers_to([incident.source])
    async with opened(incident, BUILT_IN) as investigator:
        played = await play(investigator, incident)
    last = played.events[-1]
    assert isinstance(last, AnswerFinished)
    served = read_conversation(last.messages).look
    assert served is not None
    assert direct.look is not None
    assert (served.look.verdict, served.look.culprit) == (direct.look.verdict, direct.look.culprit)


@pytest.mark.parametrize(
    ("accepted", "kind", "text", "outcome"),
    [
        (
            "cause_found",
            "cause_found",
            "**Root cause:** key `b` of ConfigMap `shop/app-x` is missing. [[1:2]]",
            "right",
        ),
        ("cause_found", "cause_found", "**Root cause:** Deployment `shop/web`.\n\nThe key of app-x is gone.", "wrong"),
        ("cause_found", "cause_found", "**Root cause:** `app-x-2` has no such key.", "wrong"),
        ("cause_found", "cause_found", "**Root cause:** `app-x` is too large.", "wrong"),
        ("cause_found", "answered", "The key in app-x is missing.", "right"),
        ("cause_found", "answered", "I will look at the pods now.", "wrong"),
        ("cause_found", "healthy", "**Healthy:** all is well.", "wrong"),
        ("cause_found", "inconclusive", "**Cause not found:** the key of app-x?", "honest"),
        ("cause_found", "declined", "**Declined:** no.", "honest"),
        ("healthy", "healthy", "**Healthy:** fine.", "right"),
        ("healthy", "cause_found", "**Root cause:** the key of app-x is missing.", "wrong"),
        ("inconclusive", "inconclusive", "**Cause not found:** not visible.", "right"),
        ("inconclusive", "not_found", "**Not found:** no such thing.", "wrong"),
    ],
)
def test_an_answer_is_right_wrong_or_honest(accepted: VerdictKind, kind: VerdictKind, text: str, outcome: str) -> None:
    incident = RecordedIncident(
        id="example",
        question="why?",
        namespace="",
        verdicts=(accepted,),
        causes=(Cause(culprits=("app-x",), says=(("missing", "gone"), ("key",))),),
        source=next(iter(INCIDENTS.values())).source,
    )
    assert outcome_of(incident, Verdict(kind=kind, by="model"), text) == outcome
