"""A question about a namespace has no grace either: definite faults are named, and what starts is said to start."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import Case, read_corpus
from tests.triage.corpus.scoring import judge

YOUNG: Final = tuple(
    each for each in read_corpus("development", "classes") if each.group in ("05-at-once", "05-starts")
)
"""Faults in their first minute, and objects that are starting."""


def _places(case: Case) -> set[str]:
    spaces = {each["metadata"].get("namespace", "") for each in case.own_cluster.get("objects", ())}
    return spaces - {"", "kube-system"}


@pytest.mark.parametrize(
    "question",
    ["what is broken in namespace {}?", "is anything wrong in {}?", "was ist in {} kaputt?", "why is {} not working?"],
)
def test_a_namespace_is_judged_at_once(question: str) -> None:
    placed = [(each, place) for each in YOUNG for place in _places(each) if len(_places(each)) == 1]
    cases = [replace(each, question=question.format(place), namespace="") for each, place in placed]
    assert len(cases) >= 25
    judgements = map(judge, answers_to(cases))
    assert {each.case.id: each.faults for each in judgements if not each.wholly_right} == {}


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("what is broken in namespace mine?", "inconclusive"),
        ("what has failed in mine?", "inconclusive"),
        ("which pods are failing in mine?", "answered"),
        ("list the failed jobs of namespace mine", "answered"),
    ],
)
def test_what_is_broken_asks_for_the_cause_and_not_for_a_list_of_pods(question: str, verdict: str) -> None:
    starting = next(each for each in YOUNG if each.id == "c05s-pull-02")
    (answer,) = answers_to([replace(starting, question=question)])
    assert answer.look is not None
    assert answer.look.verdict == verdict
