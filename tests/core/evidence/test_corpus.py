"""What comes of a corpus of claims: nothing that is not true is ever checked, and most of what is true is recognised.

`own` was written beside the code. `blind` was written before it and without sight of it, and is only measured.
`development` was written without sight of the code, too, and is there to learn from.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.evidence.corpus import CLAIMS, false_checked, recognised, results_below, score, table

pytestmark = pytest.mark.row("N6")

MEASURED = {"own": 0.87, "blind": 0.41, "development": 0.2}
"""The share of true claims with the expected outcome that must not be lost again."""


@pytest.mark.parametrize("half", MEASURED)
async def test_no_false_claim_is_checked_and_true_ones_are_recognised(half: str, tmp_path: Path) -> None:
    scored = await score(results_below(CLAIMS / half), tmp_path / "results")
    print(f"\n{table(half, scored)}")  # noqa: T201  the table is what the corpus is for
    assert len(scored) >= 150
    assert [each.claim.answer for each in false_checked(scored)] == []
    assert recognised(scored) >= MEASURED[half]
