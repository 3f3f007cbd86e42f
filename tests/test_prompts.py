"""What the loop says by itself: the prompts that are not part of the golden file."""

from __future__ import annotations

import pytest

from holmes.prompts import render_prompt


@pytest.mark.row("K6")
@pytest.mark.parametrize(
    "wanted",
    [
        "## Question\n",
        "namespaces",
        "## Resources and their state\n",
        "## Timeline\n",
        "## Checked\n",
        "with its arguments",
        "healthy",
        "broken",
        "## Evidence\n",
        "## Hypotheses\n",
        "ruled out",
        "approved, refused",
        "## Next step\n",
        "do not invent",
    ],
)
def test_the_compaction_prompt_asks_for_what_an_investigation_needs(wanted: str) -> None:
    assert wanted.lower() in render_prompt("compaction").lower()
