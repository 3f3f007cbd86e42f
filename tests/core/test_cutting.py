"""A shorter text never ends in half of a placeholder, nor, where that matters, in half of a word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.cutting import shortened
from holmes.core.errors import HolmesError, ToolError, mask_errors, masked

PLACEHOLDER = "(REDACTED:password:1f3a9c2b)"
_WHOLE = re.compile(r"\(REDACTED(?::[a-z0-9-]+:[0-9a-f]{8})?\)")


@given(
    st.lists(st.sampled_from([PLACEHOLDER, "(REDACTED)", "word", " ", "(", "(RED"]), max_size=12), st.integers(1, 90)
)
def test_no_placeholder_is_cut_and_the_limit_holds(parts: list[str], most_characters: int) -> None:
    text = "".join(parts)
    cut = shortened(text, most_characters)
    assert len(cut) <= most_characters
    assert cut == text or cut.endswith("…")
    assert text.startswith(cut.removesuffix("…").rstrip() if cut != text else text)
    assert "(REDACTED" not in _WHOLE.sub("", cut)


@pytest.mark.parametrize("most_characters", range(12, 40))
def test_whole_words_leave_no_half_of_a_token(most_characters: int) -> None:
    cut = shortened("login with abcdefghijklmnopqrstuvwxyz failed", most_characters, whole_words=True)
    assert "abc" not in cut or "xyz" in cut


def test_a_text_without_words_is_cut_anywhere() -> None:
    assert shortened("x" * 1_000, 300, whole_words=True) == "x" * 299 + "…"


def test_every_text_of_an_error_is_masked_from_when_the_mask_is_set() -> None:
    error = ToolError("it said hunter2")
    assert str(error) == "it said hunter2"
    try:
        mask_errors(lambda text: text.replace("hunter2", PLACEHOLDER))
        assert str(error) == f"{error}" == f"it said {PLACEHOLDER}"
        assert masked("hunter2") == PLACEHOLDER
        assert str(HolmesError(f"again: {error}")) == f"again: it said {PLACEHOLDER}"
    finally:
        mask_errors(None)
