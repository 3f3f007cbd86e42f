"""The same fault is found however a person asks what is wrong with a workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.support.long_form import cases
from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import Case, read_corpus
from tests.triage.corpus.scoring import judge

QUESTIONS: Final = (
    "what is wrong with {name}?", "whats wrong with {name}", "{name} is broken", "why is {name} broken?",
    "{name} doesn't work", "{name} does not work anymore, why?", "{name} is failing since this morning",
    "what happened to {name}?", "please look at {name}, it has problems", "investigate {name}", "troubleshoot {name}",
    "{name} kaputt?", "warum geht {name} nicht?", "was ist mit {name} los?", "¿qué le pasa a {name}?",
    "por qué falla {name}", "qu'est-ce qui ne va pas avec {name} ?", "pourquoi {name} ne marche pas",
    "any idea why {name} misbehaves?", "diagnose {name} please", "is something wrong with {name}?",
    "hey {name} is dead again, what gives", "{name} keeps failing. what should I look at?",
)  # fmt: skip
KINDS: Final = ("Deployment", "StatefulSet")
STEP: Final = 16


def _asked_about(case: Case) -> str:
    """Return the name of a workload that is the culprit and that the question names, or an empty string."""
    told = (each.partition(" ") for each in case.expected.culprits)
    names = (path.rpartition("/")[2] for kind, _, path in told if kind in KINDS)
    return next((name for name in names if name in case.question.split()), "")


def _plain() -> list[Case]:
    """Return cases with one named workload as the culprit, whose question is short.

    Nothing but a question about a rollout asks why it is paused, and a Deployment named `jobs` needs its kind.
    """
    found = [
        each for each in read_corpus("development", "classes")
        if each.expected.verdicts == ("cause_found",) and not each.earlier and len(each.question.split()) < 14
        and _asked_about(each) not in ("", "jobs") and "rollout" not in each.question
    ]  # fmt: skip
    return found[::STEP]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fault_is_found_however_it_is_asked_for() -> None:
    chosen = cases(_plain(), 3)
    assert len(chosen) >= 4
    asked = [
        replace(
            each,
            id=f"{each.id}/{number}",
            question=text.format(name=_asked_about(each)),
            expected=replace(each.expected, says=()),
            namespace=each.namespace or _space(each),
        )
        for each in chosen
        for number, text in enumerate(QUESTIONS)
    ]
    wrong = [each for each in map(judge, answers_to(asked)) if each.false or not each.verdict_right]
    assert [f"{each.case.question}: {each.answer.text.splitlines()[0]}" for each in wrong] == []


def _space(case: Case) -> str:
    return next(each.partition(" ")[2].partition("/")[0] for each in case.expected.culprits if each.startswith(KINDS))
