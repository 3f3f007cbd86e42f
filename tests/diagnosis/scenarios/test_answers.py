"""An answer counts only if its first paragraph blames the right object and says why."""

from __future__ import annotations

import pytest

from holmes.values.first_look import FirstLook
from tests.diagnosis.scenarios.answers import AnswerScore, figures_of, judge_answer
from tests.diagnosis.scenarios.model import HARD, Scenario

FAULT = Scenario(HARD / "development" / "faults" / "currency-typo-three-hops-away.yaml")
HEALTHY = Scenario(HARD / "development" / "healthy" / "killed-once-and-well-since.yaml")
PLACES = {"travel": "travel-1", "clinic": "clinic-1", "run": "1"}


def _judged(scenario: Scenario, culprit: str, text: str) -> AnswerScore:
    look = FirstLook(verdict="cause_found" if culprit else "healthy", summary="", severity="warning", culprit=culprit)
    places = {alias: PLACES[alias] for alias in (*scenario.header.namespaces, "run")}
    return judge_answer(scenario, places, look, text)


@pytest.mark.parametrize(
    ("culprit", "text", "right"),
    [
        ("ConfigMap travel-1/rates-config", "ConfigMap travel-1/rates-config has EURO.\n\nMore", True),
        ("ConfigMap travel-1/rates-config", "ConfigMap travel-1/rates-config is wrong.\n\nIt has EURO.", False),
        ("Deployment travel-1/window", "Deployment travel-1/window; ConfigMap travel-1/rates-config has EURO.", False),
        ("", "No fault was found.", False),
    ],
)
def test_the_first_paragraph_decides(culprit: str, text: str, *, right: bool) -> None:
    assert _judged(FAULT, culprit, text).right == right


def test_another_culprit_is_an_innocent() -> None:
    assert _judged(FAULT, "Service travel-1/basket", "EURO").innocent == "Service travel-1/basket"
    assert _judged(HEALTHY, "Deployment clinic-1/invoicing", "It was killed.").innocent
    assert not _judged(HEALTHY, "", "No fault was found.").innocent


def test_figures_count_both_kinds_of_innocents() -> None:
    scores = [_judged(FAULT, "Service travel-1/basket", "EURO"), _judged(HEALTHY, "Deployment clinic-1/invoicing", "x")]

    figures = figures_of(scores)

    assert (figures.innocents_in_faults, figures.innocents_in_healthy, figures.top1) == (1, 1, 0)
