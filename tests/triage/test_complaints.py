"""Complaints ask for a cause, whatever else their words could ask for; questions of fact do not."""

from __future__ import annotations

import pytest

from holmes.triage.complaints import complains
from holmes.triage.vocabulary import folded


@pytest.mark.parametrize(
    "text",
    [
        "orders answers 503 since four, nobody deployed",
        "every third upload fails, the image service looks fine",
        "half of the sign-ups are lost. what now",
        "web only has one of two pods, who eats the quota?",
        "the new address is not used, only the old one. what changed?",
        "warehouse antwortet nicht mehr, deploy war keiner",
        "las facturas no llegan desde la una, ¿qué pasa?",
        "les étiquettes ne s'impriment plus, un problème de droits ?",
        "reports are empty, is the database down?",
    ],
)
def test_a_statement_of_trouble_is_a_complaint(text: str) -> None:
    assert complains(folded(text))


@pytest.mark.parametrize(
    "text",
    [
        "how many pods are not ready in shop?",
        "which deployments have no limits?",
        "list the failed jobs of last night",
        "pods with more than 5 restarts",
        "web is broken. how often has it restarted?",
        "memory limit of checkout",
        "can service account builder delete pods in shop?",
        "combien de pods sont en panne ?",
        "is web healthy?",
        "statefulsets without a backup annotation",
        "",
        "?!",
    ],
)
def test_a_question_of_fact_or_health_is_no_complaint(text: str) -> None:
    assert not complains(folded(text))
