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
"""The share of answers that may keep their verdict."""
MOST_OF_LINES: Final = 0.05
"""The share of answers from log lines that may keep their verdict."""
SAMPLE: Final = 40
_ENDS_PLAINLY: Final = re.compile(r"^(?!.*[.?!] ).*[\w)]\??$", re.DOTALL)
"""One sentence: words after a question can belong to a remark, which is rightly ignored."""


def _plain(*, of_lines: bool) -> list[Case]:
    """Return short English questions of fact that are answered rightly, those of log lines or the others."""
    found = [
        each for each in read_corpus("development", "questions")
        if each.expected.verdicts == ("answered",) and each.language == "en" and each.cluster not in ("", DEMO)
        and not each.earlier and len(each.question.split()) < 14 and _ENDS_PLAINLY.match(each.question.strip())
    ]  # fmt: skip
    found = [each for each in found if not of_lines or re.search(r"log|num", each.group)]
    judged = map(judge, answers_to(cases(found, len(found) // SAMPLE)))
    return [
        each.case
        for each in judged
        if each.wholly_right and each.answer.look is not None and (" log line" in each.answer.look.summary) == of_lines
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("of_lines", "most"), [(False, MOST), (True, MOST_OF_LINES)])
def test_an_unknown_condition_is_never_dropped(of_lines: bool, most: float) -> None:
    chosen = _plain(of_lines=of_lines)
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
    assert len(kept) <= most * len(asked), kept
