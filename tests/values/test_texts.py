"""A shorter text never ends in half of a placeholder, nor, where that matters, in half of a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.previews import clip_line
from holmes.previews.excerpts import clip_around
from holmes.values.errors import HolmesError, ToolError, mask_errors, masked
from holmes.values.texts import after_placeholder, before_placeholder, excerpt, shortened, without_last_word

PLACEHOLDER = "(REDACTED:password:1f3a9c2b)"
_WHOLE = re.compile(r"\(REDACTED(?::[a-z0-9-]+:[0-9a-f]{8})?\)")


@contextmanager
def _masking(secret: str) -> Iterator[None]:
    try:
        mask_errors(lambda text: text.replace(secret, PLACEHOLDER))
        yield
    finally:
        mask_errors(None)


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


@given(
    st.lists(st.sampled_from([PLACEHOLDER, "(REDACTED)", "word", " ", "(", ")"]), max_size=12),
    st.integers(0, 90),
    st.integers(0, 90),
)
def test_no_piece_begins_or_ends_within_a_placeholder(parts: list[str], start: int, end: int) -> None:
    text = "".join(parts)
    begin, stop = after_placeholder(text, start), before_placeholder(text, end)
    assert text[begin:stop].count("(REDACTED") == len(_WHOLE.findall(text[begin:stop]))
    assert begin >= start
    assert stop <= end


@pytest.mark.parametrize("kept", range(1, 60))
def test_half_of_a_secret_is_not_taken_out_of_a_text_that_nobody_masked(kept: int) -> None:
    secret = "a-token-that-is-known-whole"
    text = f"login with {secret} failed, and more words follow here"
    with _masking(secret):
        assert secret[:3] not in excerpt(text, kept)
        assert excerpt("short", 60) == "short"


def test_only_the_beginning_of_a_very_long_text_is_masked() -> None:
    masked_texts: list[str] = []

    def mask(text: str) -> str:
        masked_texts.append(text)
        return "(REDACTED)"

    try:
        mask_errors(mask)
        assert excerpt("some words " * 100_000, 60) == "(REDACTED)…"
    finally:
        mask_errors(None)
    assert len(masked_texts[0]) < 100_000


def test_the_last_word_of_what_was_cut_by_others_goes_when_it_may_be_a_part() -> None:
    assert without_last_word("login with ghp_a1b2") == "login with "
    assert without_last_word('{"level":"error","auth":"ghp_a1b2') == '{"level":"error","auth":"'
    assert without_last_word("a whole line\n") == "a whole line\n"
    assert without_last_word("x" * 1_000) == "x" * 1_000
    assert without_last_word("") == ""


def test_every_text_of_an_error_is_masked_from_when_the_mask_is_set() -> None:
    error = ToolError("it said hunter2")
    assert str(error) == "it said hunter2"
    with _masking("hunter2"):
        assert str(error) == f"{error}" == f"it said {PLACEHOLDER}"
        assert masked("hunter2") == PLACEHOLDER
        assert str(HolmesError(f"again: {error}")) == f"again: it said {PLACEHOLDER}"


@pytest.mark.parametrize("width", range(20, 120))
def test_lines_of_previews_have_no_part_of_a_placeholder(width: int) -> None:
    line = f"login with {PLACEHOLDER} was refused, then {PLACEHOLDER} and more words " * 3
    for position in (0, width, 150, len(line)):
        for shown in (clip_line(line, width), clip_around(line, width, position)):
            assert shown.count("(REDACTED") == len(_WHOLE.findall(shown)), shown
            assert shown.count(":1f3a9c2b)") == len(_WHOLE.findall(shown)), shown
