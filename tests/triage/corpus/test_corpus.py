"""Every corpus scores at least what it scored before, and no case crashes. `pytest -s` prints the scores."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import pytest

from holmes.values.first_look import FirstLook, Table
from tests.support.long_form import cases
from tests.triage.corpus.asking import Answer, answers_to
from tests.triage.corpus.loading import CORPORA, HALVES, Case, Corpus, Expected, Half, read_corpus
from tests.triage.corpus.scoring import Judgement, Score, judge, score_table

Judged: TypeAlias = Mapping[tuple[Half, Corpus], tuple[Judgement, ...]]

# `make test` answers every eighth case of the two large corpora. A share may be somewhat harder than the whole, so its
# floor is a part lower, but no answer may be false.
EVERY: Final = 8
SLACK: Final = 0.01
LARGE: Final = 1_000
# The first three numbers may only rise, and the number of false answers may only fall. The aim is 95% wholly right and
# none false. A case that is added although it is answered falsely counts in the floor from then on. On 2026-11-30, one
# alert of the blind half became silent, when a fault of another measure no longer explained an alert. Later, four
# blind and five unseen questions became silent, when an answer began to need every word of its question. Then an answer
# of fact that is not the expected one began to count as false, and seven unseen cases that were false were retired.
FLOORS: Final[Mapping[tuple[Half, Corpus], Score]] = {
    ("blind", "questions"): Score(cases=183, verdict_right=179, wholly_right=179, false=0),
    ("blind", "alerts"): Score(cases=86, verdict_right=82, wholly_right=82, false=0),
    ("blind", "classes"): Score(cases=182, verdict_right=182, wholly_right=182, false=0),
    ("unseen", "questions"): Score(cases=346, verdict_right=335, wholly_right=335, false=0),
    ("unseen", "alerts"): Score(cases=60, verdict_right=55, wholly_right=54, false=0),
    ("unseen", "classes"): Score(cases=74, verdict_right=66, wholly_right=62, false=0),
    ("development", "questions"): Score(cases=5894, verdict_right=5636, wholly_right=5594, false=0),
    ("development", "classes"): Score(cases=3051, verdict_right=2982, wholly_right=2962, false=0),
    ("development", "alerts"): Score(cases=115, verdict_right=115, wholly_right=115, false=0),
}
CLASSES: Final = ("02", "03", "04", "05", "06", "07", "08", "09", "12", "13", "14", "15", "16", "17", "18", "20")
"""The numbers of classes with which the names of files begin. Class 1 is about look-alikes only."""
FEWEST: Final = 5
ROLLOUT: Final = Case(
    id="example",
    half="development",
    group="why",
    language="en",
    question="why is checkout down?",
    namespace="",
    earlier=(),
    alert={},
    cluster="firm",
    expected=Expected(
        verdicts=("cause_found",), culprits=("Secret shop/keys",), says=(("401", "rejected"),), never_says=("disk",)
    ),
)
RIGHT: Final = FirstLook(verdict="cause_found", summary="Every call is rejected.", culprit="Secret shop/keys")


pytestmark = pytest.mark.timeout(1500)  # all cases of all corpora are answered at once


@pytest.fixture(scope="module")
def judged() -> Judged:
    """All cases, asked together, so that each shared cluster is scanned once and the recording is served once."""
    asked = {(half, corpus): _asked(half, corpus) for half in HALVES for corpus in CORPORA}
    answers = iter(answers_to([case for some in asked.values() for case in some]))
    return {key: tuple(judge(next(answers)) for _ in some) for key, some in asked.items()}


def _asked(half: Half, corpus: Corpus) -> Sequence[Case]:
    whole = read_corpus(half, corpus)
    return cases(whole, EVERY) if len(whole) > LARGE else whole


@pytest.mark.parametrize(("half", "corpus"), FLOORS)
def test_a_corpus_scores_at_least_its_floor(judged: Judged, half: Half, corpus: Corpus) -> None:
    judgements, floor = judged[half, corpus], FLOORS[half, corpus]
    print(f"\n{half} {corpus}\n{score_table(judgements)}")  # noqa: T201  the scores are the result of this test
    score = Score.of(judgements)
    assert [each.faults for each in judgements if each.answer.look is None] == []
    assert len(read_corpus(half, corpus)) >= floor.cases
    share = min(1.0, score.cases / floor.cases)
    slack = SLACK * score.cases if share < 1 else 0
    assert score.verdict_right >= floor.verdict_right * share - slack
    assert score.wholly_right >= floor.wholly_right * share - slack
    assert score.false <= floor.false


def test_every_case_is_in_a_corpus_with_a_floor_and_has_an_id_of_its_own() -> None:
    corpora = {(half, corpus): read_corpus(half, corpus) for half in HALVES for corpus in CORPORA}
    assert {key for key, cases in corpora.items() if cases} == set(FLOORS)
    ids = Counter(case.id for cases in corpora.values() for case in cases)
    assert [name for name, count in ids.items() if count > 1] == []


def test_each_class_has_faults_and_look_alikes() -> None:
    """Each class of the issue that a cluster can show has at least five faults and five look-alikes of its own."""
    found = {name: Counter[bool]() for name in CLASSES}
    for case in (case for half in HALVES for case in read_corpus(half, "classes")):
        if case.group[:2] in found:
            found[case.group[:2]]["cause_found" in case.expected.verdicts] += 1
    sys.stdout.write("".join(f"class {name}: {n[True]} faults, {n[False]} look-alikes\n" for name, n in found.items()))
    assert [name for name, number in found.items() if min(number[True], number[False]) < FEWEST] == []


def _judged(look: FirstLook | None, text: str = "rejected", **expected: tuple[str, ...]) -> Judgement:
    case = replace(ROLLOUT, expected=replace(ROLLOUT.expected, **expected))  # type: ignore[arg-type]
    return judge(Answer(case=case, look=look, text=text))


def test_a_right_answer_names_the_culprit_and_the_words() -> None:
    assert _judged(RIGHT).wholly_right
    assert _judged(RIGHT, "nothing").faults == ("does not say '401' or 'rejected'",)
    assert _judged(RIGHT, "REJECTED, the Disk is full").faults == ("says 'disk'",)
    assert not _judged(None, "").wholly_right


@pytest.mark.parametrize(
    ("verdict", "accepted", "false"),
    [
        ("cause_found", ("healthy",), True),
        ("cause_found", ("cause_found", "inconclusive"), False),
        ("healthy", ("cause_found",), True),
        ("healthy", ("cause_found", "inconclusive"), True),
        ("answered", ("cause_found", "inconclusive"), True),
        ("answered", ("answered",), False),
        ("not_found", ("answered",), True),
        ("not_found", ("inconclusive",), False),
        ("inconclusive", ("cause_found",), False),
    ],
)
def test_an_answer_is_false_if_it_claims_what_the_case_rules_out(
    verdict: str, accepted: tuple[str, ...], false: bool
) -> None:
    look = replace(RIGHT, verdict=verdict)  # type: ignore[arg-type]
    assert _judged(look, verdicts=accepted).false is false


def test_another_culprit_and_an_innocent_culprit_are_false() -> None:
    assert _judged(replace(RIGHT, culprit="Pod shop/web-1")).false
    assert _judged(RIGHT, culprits=(), innocents=("Secret shop/keys",)).false
    assert not _judged(RIGHT, culprits=(), innocents=("Pod shop/web-1",)).false


def test_rows_of_a_table_do_not_count_as_lines() -> None:
    table = Table(header="name", rows=("a",) * 15, total=40)
    assert _judged(replace(RIGHT, table=table), "rejected\n" * 35).wholly_right
    assert _judged(RIGHT, "rejected\n" * 21).faults == ("21 lines, expected at most 20",)
