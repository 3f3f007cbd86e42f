"""Nothing from outside moves the cursor, sets the title or hides text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.cli.render.terminal import one_line, sanitized


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bPpayload\x1b\\after", "after"),
        ("\x1b\x1b[31m[31mnested", "nested"),
        ("\x1b]unterminated text stays", "unterminated text stays"),
        ("a\rb\r\nc\x08\x00\x7f", "ab\nc"),
        ("tab\tand\nnewline stay", "tab\tand\nnewline stay"),
        ("\u202eright to left", "right to left"),
        ("\ud800", "\N{REPLACEMENT CHARACTER}"),
        ("ünïcode 🔥", "ünïcode 🔥"),
    ],
)
def test_only_text_is_left(raw: str, shown: str) -> None:
    assert sanitized(raw) == shown


@given(st.text(st.sampled_from("\x1b\x9b\x9d[]()0;m\x07\\\nab\r\u202e")))
def test_no_control_character_survives_and_twice_is_once(raw: str) -> None:
    shown = sanitized(raw)
    assert not set(shown) & set("\x1b\x9b\x9d\x07\r\u202e")
    assert sanitized(shown) == shown


def test_a_line_is_one_line_and_not_too_long() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 50, limit=10) == "x" * 9 + "…"
