"""The answer to several questions in one sentence never calls an open question a cause."""

from __future__ import annotations

from typing import Final

from holmes.triage.sentences import BESIDE, joined
from holmes.values.first_look import FirstLook

CAUSE: Final = FirstLook(verdict="cause_found", summary="The key PORT is missing.", culprit="ConfigMap shop/web")
OPEN: Final = FirstLook(verdict="inconclusive", summary=f"Not answered: `who`.{BESIDE}{CAUSE.summary}")
HEALTHY: Final = FirstLook(verdict="healthy", summary="No fault was found in web.")


def test_a_cause_comes_before_the_part_that_is_open_and_is_told_once() -> None:
    look = joined([OPEN, CAUSE])
    assert look.verdict == "cause_found"
    assert look.summary == f"{CAUSE.summary} Not answered: `who`."


def test_parts_keep_their_order_if_the_first_one_is_answered() -> None:
    assert joined([HEALTHY, CAUSE]).summary == f"{HEALTHY.summary} {CAUSE.summary}"


def test_open_parts_stay_open() -> None:
    assert joined([OPEN, HEALTHY]).verdict == "inconclusive"
