"""The sentence that a marker proves."""

from __future__ import annotations

import pytest

from holmes.evidence.markers import MAX_CLAIM_CHARACTERS, claim_before, clipped_claim

pytestmark = pytest.mark.row("N6")

MARKER = "[[0123456789ab:3]]"


@pytest.mark.parametrize(
    ("before", "claim"),
    [
        ("The pod was killed ", "The pod was killed"),
        ("First this. Then `OOMKilled` at 12:01. ", "Then `OOMKilled` at 12:01"),
        ("See e.g. the pod of v1.2 in shop.svc ", "See e.g. the pod of v1.2 in shop.svc"),
        ('It says "Back-off. Restarting" twice ', 'It says "Back-off. Restarting" twice'),
        ("- one\n- **two**: `x`\n  goes on ", "two: `x` goes on"),
        ("1. First.\n2. The node is NotReady ", "The node is NotReady"),
        ("# Heading\nThe claim ", "The claim"),
        ("Other paragraph.\n\nThe claim\n\n", "The claim"),
        ("| name | state |\n|---|---|\n| checkout | OOMKilled | ", "checkout OOMKilled"),
        (f"Pod a died {MARKER}, and node b is down ", "and node b is down"),
        (f"Pod a died {MARKER}. ", "Pod a died"),
        ("Pod a died (unverified), and node b is down ", "and node b is down"),
        ("Pod a died (unverified). ", "Pod a died"),
        ("The log:\n```\npanic: no space left\n```\n", "The log"),
        ("```\npanic: no space left\n```\n", "panic: no space left"),
        ("The pod was killed `", "The pod was killed"),
        ("", ""),
    ],
)
def test_the_claim_is_the_sentence_or_list_item_in_front(before: str, claim: str) -> None:
    assert claim_before(before).text == claim


def test_the_lines_of_a_fenced_block_are_claimed_word_for_word() -> None:
    claim = claim_before("The log:\n```\nline one\n\nline number two\n```\n")
    assert (claim.statement, claim.block) == ("The log:", ("line one", "line number two"))


def test_a_long_claim_is_cut_once_and_its_quote_stays_closed() -> None:
    long = f"The log says `{'connection refused ' * 40}`"
    cut = clipped_claim(long)
    assert len(cut) <= MAX_CLAIM_CHARACTERS
    assert cut.endswith("…`")
    assert clipped_claim(cut) == cut


def test_the_claim_of_a_hostile_text_is_short() -> None:
    for hostile in ("`" * 4_000, '"' * 4_000, "a-" * 2_000, "[" * 4_000, "- " * 2_000, "x. " * 1_300, "\n" * 4_000):
        for text in (hostile, hostile + "`"):
            assert len(claim_before(text).text) <= MAX_CLAIM_CHARACTERS
