"""The incident that a question is about: names before symptoms, symptoms before the order of the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.triage.matching import found_symptoms, is_pod_of, match_incidents, name_likeness
from holmes.triage.question import Named, parse_question
from tests.triage.reports import (
    BAD_IMAGE,
    HIGH_LIMIT,
    MISSING_SETTINGS,
    NO_STORAGE_CLASS,
    OUT_OF_MEMORY,
    SHOP,
    WRONG_SELECTOR,
    ref,
)


@pytest.mark.parametrize(
    ("text", "expected", "relation"),
    [
        ("checkout fails", MISSING_SETTINGS, "subject"),
        ("configmap checkout-settings", MISSING_SETTINGS, "culprit"),
        ("checkout-6c9f7d8b5-x2k4q", MISSING_SETTINGS, "subject"),
        ("service checkout", MISSING_SETTINGS, "symptom"),
        ("cart", OUT_OF_MEMORY, "culprit"),
        ("the cart pod", OUT_OF_MEMORY, "culprit"),
        ("search-7d4b9…", BAD_IMAGE, "culprit"),
        ("ingress shop", WRONG_SELECTOR, "symptom"),
        ("pvc catalog-data", NO_STORAGE_CLASS, "subject"),
        ("statefulset catalog", NO_STORAGE_CLASS, "symptom"),
        ("node worker-1", HIGH_LIMIT, "culprit"),
        ("out of memory", OUT_OF_MEMORY, "none"),
        ("image pull", BAD_IMAGE, "none"),
        ("volume missing", NO_STORAGE_CLASS, "none"),
        ("what is broken", MISSING_SETTINGS, "none"),
    ],
)
def test_the_best_match_comes_first(text: str, expected: object, relation: str) -> None:
    question = parse_question(text)
    best = match_incidents(SHOP.incidents, question, question.names)[0]
    assert best.incident == expected
    assert best.relation == relation


def test_a_name_of_another_namespace_is_another_object() -> None:
    question = parse_question("bank/cart")
    matches = match_incidents(SHOP.incidents, question, question.names)
    assert {match.relation for match in matches} == {"none"}


def test_the_same_questions_give_the_same_order_and_nothing_is_lost() -> None:
    question = parse_question("why is cart slow")
    once, again = (match_incidents(SHOP.incidents, question, question.names) for _ in range(2))
    assert once == again
    assert {match.incident.id for match in once} == {incident.id for incident in SHOP.incidents}


def test_an_incident_told_in_one_sentence_still_matches_by_its_culprit() -> None:
    short = replace(OUT_OF_MEMORY, findings=(), symptoms=(), affected=())
    question = parse_question("why does cart restart")
    assert match_incidents((short,), question, question.names)[0].relation == "culprit"


@pytest.mark.parametrize(
    ("pod", "workload", "belongs"),
    [
        ("cart-5d8f6bb7c9-qwz7x", "cart", True),
        ("cart-5d8f6bb7c9", "cart", True),
        ("catalog-0", "catalog", True),
        ("nightly-29384720-x2k4q", "nightly", True),
        ("cart-worker-5d8f6bb7c9-qwz7x", "cart", False),
        ("cart-worker", "cart", False),
        ("carts-5d8f6bb7c9-qwz7x", "cart", False),
        ("cart", "cart", False),
    ],
)
def test_a_pod_belongs_to_a_workload_by_the_form_of_its_name(pod: str, workload: str, belongs: bool) -> None:
    assert is_pod_of(pod, workload) is belongs


def test_a_kind_that_cannot_be_meant_counts_less() -> None:
    service = ref("Service", "cart")
    assert name_likeness(Named(name="cart", kind="Service"), service) > name_likeness(
        Named(name="cart", kind="Deployment"), service
    )
    assert name_likeness(Named(name="cart", kind="Pod"), ref("Deployment", "cart")) == 5.0
    assert name_likeness(Named(name="art"), ref("Deployment", "cart")) == 0.0


@pytest.mark.parametrize(
    ("title", "cause", "expected"),
    [
        ("No node has room for the pod", "the largest free amount is 2 on node1", set()),
        ("Host port is already in use", "it needs 2 replicas", {"unreachable", "scaling"}),
        ("No PersistentVolume fits the claim", "it does not support access mode ReadWriteMany", {"disk"}),
        ("Volume is lost", "its PersistentVolume no longer exists", {"disk", "start"}),
        ("Gateway is rejected: Programmed is False", "AddressNotAssigned", {"unreachable"}),
        ("HTTPRoute is rejected: Accepted is False", "NoMatchingListenerHostname", {"unreachable"}),
        ("Nodes accept no pods", "node(s) were unschedulable", {"start"}),
        ("Node does not work", "its condition is DiskPressure", {"disk", "evicted", "slow"}),
        ("Preempted pods do not terminate", "the preempted pods still exist", {"evicted"}),
        ("Container cannot be stopped", "error killing pod", set()),
    ],
)
def test_symptom_words_match_only_at_the_start_of_a_word(title: str, cause: str, expected: set[str]) -> None:
    incident = replace(HIGH_LIMIT, title=title, cause=cause, findings=(), symptoms=())
    assert set(found_symptoms(incident)) == expected
