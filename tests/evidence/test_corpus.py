"""No false claim is checked, and most true claims are recognised.

`own` was written with the code in view. `blind` was written before the code and is only measured. `development` was
written without the code in view and is used for improvements. `hostile` contains false claims that were written with
the code in view, to deceive it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence.corpus import CLAIMS, false_checked, recognised, results_below, score, table
from tests.support.long_form import cases, count

pytestmark = [pytest.mark.slow, pytest.mark.row("N6")]

MEASURED = {"own": 0.95, "blind": 0.55, "development": 0.46}
"""The minimum share of true claims with the expected outcome."""
DECEIVED = 0.03
"""The maximum share of hostile claims that are checked; the goal is zero."""


@pytest.mark.parametrize("half", MEASURED)
async def test_no_false_claim_is_checked_and_true_ones_are_recognised(half: str, tmp_path: Path) -> None:
    scored = await score(results_below(CLAIMS / half), tmp_path / "results")
    print(f"\n{table(half, scored)}")  # noqa: T201  the table is what the corpus is for
    assert len(scored) >= 150
    assert [each.claim.answer for each in false_checked(scored)] == []
    assert recognised(scored) >= MEASURED[half]


@pytest.mark.timeout(900)
async def test_few_of_the_false_claims_that_were_written_to_deceive_are_checked(tmp_path: Path) -> None:
    rows = tuple(results_below(CLAIMS / "hostile"))
    scored = await score(cases(rows, every=8), tmp_path / "results")
    print(f"\n{table('hostile', scored)}")  # noqa: T201
    assert len(scored) >= count(long=2_000, short=200)
    assert len(false_checked(scored)) <= DECEIVED * len(scored)
