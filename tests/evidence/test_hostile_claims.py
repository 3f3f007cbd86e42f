"""No claim and no result breaks or slows down judging."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.evidence.markers import Claim, Marker
from holmes.evidence.passages import CitedText, NumberedText, judge_cited
from holmes.evidence.sources import source_of_command
from holmes.values.messages import ResultId
from tests.evidence.corpus import CLAIMS, ResultRow, results_below

pytestmark = pytest.mark.row("N6")

ROWS = [row for _, row in results_below(CLAIMS / "own")]
WORDS = sorted({word for row in ROWS for claim in row.claims for word in claim.answer.split()})
MARKER = Marker(result_id=ResultId("0123456789ab"), first_line=1, last_line=1)


def outcome(statement: str, text: CitedText, first: int, last: int) -> str:
    marker = Marker(result_id=MARKER.result_id, first_line=first, last_line=last)
    claim = Claim(text=statement, statement=statement)
    return judge_cited([text], [marker], claim, time.monotonic() + 60)[0].outcome


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(ROWS), st.integers(1, 9), st.integers(0, 9))
def test_any_words_about_any_result_have_an_outcome(words: list[str], row: ResultRow, first: int, more: int) -> None:
    text = CitedText(NumberedText(row.text.encode()), source_of_command(row.command))
    assert outcome(" ".join(words), text, first, first + more) in {"checked", "cited", "not_found"}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"{}[]:-=,|/\t\n ", "  ", "Name:", "a: b", "- x: 1", "NAME  READY", "---", "中"])))
def test_any_lines_have_records(pieces: list[str]) -> None:
    text = CitedText(NumberedText("".join(pieces).encode()), source_of_command("kubectl get pods"))
    assert outcome("`x` is Running with 1 restart", text, 1, 50) in {"checked", "cited", "not_found"}


@pytest.mark.parametrize("piece", ["a-", "1.", "a.b:", "- ", "[", "'a' ", "x's ", "`", "1 of ", "no ", "2h ", "(", "{"])
def test_a_claim_and_a_result_of_one_piece_have_an_outcome(piece: str) -> None:
    text = CitedText(NumberedText((piece * 6_000 + "\n" + (piece * 20 + "\n") * 200).encode()), source_of_command(""))
    assert outcome(piece * 200, text, 1, 200) in {"checked", "cited", "not_found"}
