"""An answer of fact does not survive a condition that nobody understands, or it is not an answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pytest

from tests.support.long_form import cases
from tests.triage.corpus.asking import answers_to
from tests.triage.corpus.loading import DEMO, Case, read_corpus
from tests.triage.corpus.scoring import judge

CONDITIONS: Final = ("with zwurbel", "of the zwurbel", "that zwurbled")
"""Words of no language, so that no list of words contains them."""
CONFIDENT: Final = frozenset({"answered", "healthy", "cause_found"})
MOST: Final = 0.03
"""The share of answers that may keep their verdict. Log lines are searched for other words of the question."""
SAMPLE: Final = 40
_ENDS_PLAINLY: Final = re.compile(r"[\w)]\??$")


def _plain() -> list[Case]:
    """Return short English questions of fact that are answered rightly and not from log lines."""
    found = [
        each for each in read_corpus("development", "questions")
        if each.expected.verdicts == ("answered",) and each.language == "en" and each.cluster not in ("", DEMO)
        and not each.earlier and len(each.question.split()) < 14 and _ENDS_PLAINLY.search(each.question.strip())
    ]  # fmt: skip
    judged = map(judge, answers_to(cases(found, len(found) // SAMPLE)))
    return [
        each.case
        for each in judged
        if each.wholly_right and each.answer.look is not None and " log line" not in each.answer.look.summary
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_unknown_condition_is_never_dropped() -> None:
    chosen = _plain()
    assert len(chosen) >= 20
    asked = [
        replace(each, id=f"{each.id}/{words}", question=f"{each.question.strip().rstrip('?').rstrip()} {words}?")
        for each in chosen
        for words in CONDITIONS
    ]
    kept = [
        f"{each.case.question}: {each.look.verdict}: {each.look.summary}"
        for each in answers_to(asked)
        if each.look is not None and each.look.verdict in CONFIDENT
    ]
    assert len(kept) <= MOST * len(asked), kept
