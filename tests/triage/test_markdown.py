"""Cluster text in Markdown is shown without changing the layout."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.triage.markdown import code, counted, fenced, one_line, plain, table

ODD = st.text(alphabet=st.sampled_from("ab `*_[]()<>|#\n\r\t\x1b\u202e\u2028\\$\"'"), max_size=60)


@given(ODD)
def test_code_is_one_span_that_its_content_cannot_end(text: str) -> None:
    span = code(text)
    runs = [len(run) for run in re.findall("`+", span)]
    assert "\n" not in span
    assert runs[0] == runs[-1]
    assert all(run < runs[0] for run in runs[1:-1])
    assert "[[" not in span


@given(ODD)
def test_running_text_starts_nothing(text: str) -> None:
    shown = plain(text)
    assert "`" not in shown
    assert "](" not in shown
    assert "[[" not in shown
    assert re.search(r"(?<!\\)\*", shown) is None
    assert re.search(r"(?<!\\)<[A-Za-z/!?]", shown) is None
    assert shown == shown.strip()
    assert len(shown.splitlines()) <= 1


@given(st.lists(ODD, max_size=5))
def test_a_block_is_ended_by_its_own_fence_only(lines: list[str]) -> None:
    block = fenced(lines).split("\n")
    fence = block[0]
    assert block[-1] == fence
    assert [line for line in block[1:-1] if line.strip().startswith(fence)] == []


@given(st.lists(st.tuples(ODD, ODD), max_size=4))
def test_every_row_of_a_table_has_as_many_cells_as_its_header(rows: list[tuple[str, str]]) -> None:
    for line in table(("one", "two"), rows).split("\n"):
        assert len(re.findall(r"(?<!\\)\|", line)) == 3


def test_long_text_is_cut_with_a_sign() -> None:
    assert one_line("x" * 50, 10) == "xxxxxxxxx…"
    assert len(plain("y" * 5_000)) == 600


@pytest.mark.parametrize(
    ("number", "noun", "shown"),
    [
        (1, "pod", "1 pod"),
        (0, "pod", "0 pods"),
        (2, "Ingress", "2 Ingresses"),
        (2, "NetworkPolicy", "2 NetworkPolicies"),
        (1_200, "row", "1,200 rows"),
    ],
)
def test_nouns_are_counted_as_people_do(number: int, noun: str, shown: str) -> None:
    assert counted(number, noun) == shown
