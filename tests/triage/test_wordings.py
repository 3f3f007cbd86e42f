"""Questions in other words: unknown words by their place, misspelled words, conditions on fields, short follow-ups."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.triage import vocabulary as vocabulary_module
from holmes.triage.follow_ups import completed, parsed
from holmes.triage.grammar import names_things, qualifies
from holmes.triage.names import names_of
from holmes.triage.question import parse_question
from holmes.triage.search import find_subject
from holmes.triage.suspicions import blames
from holmes.triage.vocabulary import language_of, vocabulary, words_of
from holmes.yaml_documents import parse_document
from tests.triage.shop import look, shop


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("how many glossy pods are there", "glossy"),
        ("pods with sidecars", "sidecars"),
        ("which pods are idle", "idle"),
        ("deployments that mirror traffic", "mirror"),
        ("cuántos pods obsoletos hay", "obsoletos"),
    ],
)
def test_an_unknown_word_beside_what_is_asked_for_is_a_condition(text: str, word: str) -> None:
    question = parse_question(text)
    assert qualifies(question, question.words.index(word))
    assert look(text).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("gimme every pod", "gimme"),
        ("list the pods, my boss lurks", "lurks"),
        ("is everything ok before the launch", "launch"),
    ],
)
def test_an_unknown_word_elsewhere_is_not(text: str, word: str) -> None:
    question = parse_question(text)
    assert not qualifies(question, question.words.index(word))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lsit the podds", {"lsit": "list", "podds": "pods"}),
        ("hwo many servcies", {"hwo": "how", "servcies": "services"}),
        ("is nmaespace shpo ok", {"nmaespace": "namespace", "shpo": "shop"}),
        ("is vault ok", {}),
        ("are the cups full", {}),
        ("is quote fine", {}),
    ],
)
def test_a_slip_is_corrected_only_if_it_has_one_meaning(written: str, meant: dict[str, str]) -> None:
    assert dict(parsed(written, shop().state).corrections) == meant


def test_a_correction_is_told() -> None:
    found = look("hwo many podds are in shop")
    assert found.summary.startswith("3 Pods")
    assert "Read `podds` as `pods`." in found.notes


@pytest.mark.parametrize(
    ("before", "text", "whole"),
    [
        ("how many pods run on node-1?", "and on node-2?", "how many pods run on node-2?"),
        ("list the pods in shop", "and in quiet?", "list the pods in quiet"),
        ("how many deployments are in shop?", "and services?", "how many services are in shop?"),
        ("list the pods in shop", "which of those are ready?", "list the pods in shop which of those are ready?"),
        ("list the pods in shop", "why is payments down?", "why is payments down?"),
    ],
)
def test_a_short_question_continues_the_one_before(before: str, text: str, whole: str) -> None:
    assert completed(text, (before,), shop().state, "") == whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pods that run on node-1", True),
        ("claims without a volume", True),
        ("not ready pods of shop", True),
        ("are the pods ready", False),
        ("web is crashing", False),
    ],
)
def test_a_noun_with_its_conditions_asks_for_objects(text: str, expected: bool) -> None:
    assert names_things(parse_question(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checkout still shows the old page", True),
        ("catalog is not scheduled", True),
        ("half of the orders of checkout are lost", True),
        ("something in shop keeps crashing", True),
        ("how many pods of checkout crashed", False),
        ("list the failing pods of checkout", False),
        ("is checkout healthy", False),
    ],
)
def test_a_complaint_about_the_subject_asks_for_its_cause(text: str, expected: bool) -> None:
    question, subject = find_subject(parsed(text, shop().state), names_of(shop().state), "")
    assert blames(question, subject) is expected


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("services of type ClusterIP in shop", ""),
        ("pods with tolerations in shop", "No Pod"),
        ("deployments without an autoscaler in shop", "3 Deployments"),
        ("deployments and services in shop", "6 objects"),
        ("bare pods in shop", "No Pod"),
        ("pods of deployments in shop", "3 Pods"),
    ],
)
def test_fields_and_relations_are_conditions(text: str, summary: str) -> None:
    assert look(text).summary.startswith(summary)


def test_the_language_decides_what_a_word_means() -> None:
    assert language_of(words_of("ist hier gerade alles gut")) == "de"
    assert parse_question("läuft hier gerade alles rund?").period is None
    assert parse_question("qu'est-ce qui a changé hier ?").period is not None


def test_ordinary_words_are_not_names_and_qualifiers_are_not_ordinary() -> None:
    known = vocabulary()
    assert all(map(known.is_ordinary, ("according", "welchen", "nosotros", "lesquelles")))
    assert not any(map(known.is_ordinary, ("large", "kafka", "read-only", "different")))


def test_no_list_of_the_vocabulary_is_written_twice() -> None:
    file = Path(vocabulary_module.__file__).with_name("vocabulary.yaml")
    parse_document(file.read_text(encoding="utf-8"), source=file.name)  # the second list would replace the first
