"""Questions are parsed without access to the cluster, whatever the text is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.triage.pasted_texts import MAX_HEAD_CHARACTERS, MAX_TAIL_CHARACTERS
from holmes.triage.question import parse_question, states_health


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("How many pods are there?", ["count"]),
        ("Wie viele Pods gibt es?", ["count"]),
        ("¿Cuántos pods hay?", ["count"]),
        ("Combien de pods y a-t-il ?", ["count"]),
        ("why does it fail", ["why", "trouble"]),
        ("Pourquoi ça ne marche pas ?", ["why", "trouble"]),
        ("¿Por qué no arranca?", ["why", "trouble"]),
        ("what's wrong with it", ["trouble"]),
    ],
)
def test_phrases_of_four_languages_have_the_same_meaning(text: str, concepts: list[str]) -> None:
    question = parse_question(text)
    assert all(question.asks(concept) for concept in concepts)


@pytest.mark.parametrize(
    ("text", "how", "number"),
    [
        ("more than 3 restarts", ">", 3),
        ("at least twice", ">=", 2),
        ("mehr als 10 Neustarts", ">", 10),
        ("menos de 5 reinicios", "<", 5),
        ("au moins 2 redémarrages", ">=", 2),
    ],
)
def test_bounds_are_comparisons(text: str, how: str, number: float) -> None:
    (comparison,) = parse_question(f"pods with {text}").comparisons
    assert (comparison.how, comparison.number) == (how, number)


def test_ages_have_a_direction() -> None:
    assert parse_question("pods older than 3 days").older_seconds == 259_200
    assert parse_question("Pods, die jünger als 2 Stunden sind").newer_seconds == 7_200
    assert parse_question("pods created more than two days ago").older_seconds == 172_800


def test_labels_times_addresses_and_hosts_are_found() -> None:
    question = parse_question("pods with env=prod,tier!=web at 10.0.0.3:8080 or http://shop.example/cart at 14:05")
    assert [str(term) for term in question.labels] == ["env=prod", "tier!=web"]
    assert question.addresses == ("10.0.0.3:8080",)
    assert question.hosts == ("shop.example",)
    assert question.period is not None
    assert question.period.text == "14:05"


def test_a_long_text_is_read_at_its_ends_only() -> None:
    middle = "x" * 2 * (MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS)
    question = parse_question(f"why does cart fail {middle} warum")
    assert question.asks("why")
    assert len(question.text) < len(middle)


@given(st.text(max_size=400))
def test_parsing_never_fails(text: str) -> None:
    question = parse_question(text)
    assert all(word == word.lower() for word in question.words)


@pytest.mark.parametrize(
    ("statement", "only"),
    [
        ("catalog is healthy", True),
        ("All pods in shop are ready", True),
        ("The backup of catalog succeeded last night", False),
        ("The error rate of catalog is below 1%", False),
        ("Namespace shop has no more than one broken workload", False),
        ("catalog runs on node-2", False),
        ("payments is crashing", False),
        ("there are no failed jobs", False),
    ],
)
def test_only_statements_of_health_can_be_checked_by_rules(statement: str, *, only: bool) -> None:
    assert states_health(statement) is only
