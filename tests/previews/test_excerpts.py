"""Excerpts stay within their token limit, count omissions, and change only whitespace."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.previews import (
    clip_line,
    first_that_fits,
    head_and_tail,
    is_json,
    prefix_that_fits,
    readable_json,
    suffix_that_fits,
)
from holmes.tokens import TokenCounter
from tests.support.conversations import texts

COUNTER = TokenCounter()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(texts(2_000), st.integers(0, 400))
def test_both_ends_are_within_the_cap_and_add_up(text: str, cap: int) -> None:
    ends = head_and_tail(text, cap, COUNTER)
    assert text.startswith(ends.head)
    assert text.endswith(ends.tail)
    assert len(ends.head) + len(ends.tail) + ends.omitted_characters == len(text)
    assert COUNTER.count_text(ends.head) + COUNTER.count_text(ends.tail) <= cap


@given(texts(2_000), st.integers(0, 400), st.floats(0.5, 50))
def test_prefix_and_suffix_fit(text: str, cap: int, guess: float) -> None:
    length = prefix_that_fits(text, cap, COUNTER, characters_per_token=guess)
    assert COUNTER.count_text(text[:length]) <= cap
    length = suffix_that_fits(text, cap, COUNTER, characters_per_token=guess)
    assert COUNTER.count_text(text[len(text) - length :]) <= cap


def test_a_log_is_cut_at_line_ends_and_says_how_many_lines_are_missing() -> None:
    log = "".join(f"line {number} of the log\n" for number in range(1, 1_001))
    ends = head_and_tail(log, 200, COUNTER)
    assert ends.head.endswith("of the log\n")
    assert ends.tail.startswith("line ")
    shown = ends.head.count("\n") + ends.tail.count("\n")
    assert ends.omitted_lines == 1_000 - shown
    assert f"[... {ends.omitted_lines} lines," in ends.render()
    assert ends.head.count("\n") > 10 < 1_000 - ends.omitted_lines


def test_a_text_that_fits_is_shown_whole() -> None:
    ends = head_and_tail("short\ntext", 100, COUNTER)
    assert ends.render() == "short\ntext"


def test_options_are_tried_in_order_and_the_last_is_cut() -> None:
    assert first_that_fits(("word " * 100, "a few words"), 5, COUNTER) == "a few words"
    assert COUNTER.count_text(first_that_fits(("word " * 100,), 5, COUNTER)) <= 5


@given(JSON.filter(lambda value: isinstance(value, list | dict)))
def test_readable_json_changes_only_white_space(value: object) -> None:
    compact = json.dumps(value, separators=(",", ":"))
    view = readable_json(compact)
    assert json.loads(view) == value
    assert json.dumps(json.loads(view), separators=(",", ":")) == compact


def test_readable_json_keeps_literals_and_repeated_keys_as_written() -> None:
    assert readable_json('{"a":1.10,"a":[],"b":{"c":"x, y"}}') == (
        '{\n  "a": 1.10,\n  "a": [],\n  "b": {\n    "c": "x, y"\n  }\n}'
    )


@pytest.mark.parametrize("text", ["", "plain", '{"a": 1\n}', "[1, 2", "{not json}", "[" * 100_000 + "]" * 100_000])
def test_anything_else_comes_back_as_it_is(text: str) -> None:
    assert readable_json(text) is text


def test_deep_json_is_not_blown_up_by_its_indentation() -> None:
    deep = "[" * 150 + "1," * 500_000 + "1" + "]" * 150
    assert readable_json(deep) is deep


def test_is_json_wants_an_object_or_array() -> None:
    assert [is_json(text) for text in ('{"a": 1}', " [1]\n", '"text"', "12", "{a}")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert is_json("[" + "1," * 3_000_000 + "1]")
    assert [
        is_json(text)
        for text in ("[" + "1," * 100_000 + "1]", "[" + "1," * 100_000 + "x]", "[INFO] x\n" * 900_000 + "]")
    ] == [
        True,
        False,
        False,
    ]


def test_a_clipped_line_says_how_much_follows() -> None:
    assert clip_line("abcdef", 4) == "abcd [... 2 more characters in this line]"
    assert clip_line("abcd", 4) == "abcd"


def test_json_with_an_escaped_half_of_a_pair_is_no_reason_to_fail() -> None:
    text = json.dumps(["\ud800 " * 50_000])
    assert is_json(text) in {True, False}
    assert readable_json(text)


@pytest.mark.parametrize("cap_tokens", range(20, 80))
def test_both_ends_of_a_text_hold_whole_placeholders(cap_tokens: int) -> None:
    text = "login with (REDACTED:password:1f3a9c2b) failed " * 40
    ends = head_and_tail(text, cap_tokens, COUNTER)
    for shown in (ends.head, ends.tail):
        assert shown.count("(REDACTED") == shown.count(":1f3a9c2b)") == shown.count("(REDACTED:password:1f3a9c2b)")
