"""Terminal escape sequences, real or printed, never reach a reader and never hide a secret."""

from __future__ import annotations

import pytest

from holmes.redaction.redactor import Redactor
from holmes.redaction.views import strip_escape_sequences
from tests.support.planted_forms import random_text

STARTS = ("\x1b[", "\x9b", "^[[", "\\e[", "\\E[", "\\033[", "\\0033[", "\\x1b[", "\\x1B[", "\\u001b[", "\\u001B[",
          "\\\\u001b[", "#033[", "\u241b[")  # fmt: skip


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rest", ["m", "0m", "1;33m", "38;5;208m", "38:2::1:2:3m", "K", "2J", "?25l"])
def test_control_sequences_go_and_the_text_around_them_stays(start: str, rest: str) -> None:
    assert strip_escape_sequences(f"a{start}{rest}b") == "ab"
    assert strip_escape_sequences(f"one\n{start}{rest}two{start}0m\n") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("opening", "end"),
    [("\x1b]", "\x1b\\"), ("\x1b]", "\x07"), ("\x9d", "\x9c"), ("^[]", "^G"), ("\\e]", "\\a"), ("\\033]", "\\007"),
     ("\\x1b]", "\\x1b\\\\"), ("\\u001b]", "\\u0007")],
)  # fmt: skip
def test_the_text_of_a_link_stays_and_its_address_goes(opening: str, end: str) -> None:
    link = f"see {opening}8;;https://bob:hunter2@example.com/{end}the page{opening}8;;{end}."
    assert strip_escape_sequences(link) == "see the page."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1bP1$r0m\x1b\\ready", "ready"),
        ("\x1b_hidden\x9cready", "ready"),
        ("\x1b(Bready\x1b=", "ready"),
        ("NAME\x1b[12CVALUE", "NAME VALUE"),
        ("\x1b\x1b[m[mready", "[mready"),
        ("cut off \x1b", "cut off "),
        ("title \x1b]0;never closed", "title 0;never closed"),
    ],
)
def test_other_sequences(text: str, shown: str) -> None:
    assert strip_escape_sequences(text) == shown


@pytest.mark.parametrize(
    "text",
    ["plain", "rate(x[5m])", "a^b [1m", r"C:\etc\[x]", r"re.compile('\x1b\[[0-9;]*m')", "café…", r"\d[a-z]", "#0331"],
)
def test_a_text_without_sequences_is_the_same_object(text: str) -> None:
    assert strip_escape_sequences(text) is text


@pytest.mark.parametrize(
    "unit", ["\x1b", "\x1b[", "\x1b]", "\x9d", "\x1bP", "\x90", "^[", "^[[", "\\e]8;", "\\", "\\e[", "[m\\e", "^[]8;;a"]
)
def test_hostile_texts_stay_stripped(unit: str) -> None:
    once = strip_escape_sequences(unit * (20_000 // len(unit)))
    assert strip_escape_sequences(once) == once


REDACTOR = Redactor(b"a key of the tests, 32 bytes long")
TOKEN = "gh" + "p_" + random_text("escape", 36)


@pytest.mark.parametrize("start", STARTS)
def test_a_secret_that_sequences_interrupt_is_masked_whole(start: str) -> None:
    on, off = f"{start}31m", f"{start}0m"
    for text in (
        f"using {on}{TOKEN}{off} now",
        f"using {TOKEN[:9]}{on}{TOKEN[9:20]}{off}{TOKEN[20:]} now",
        f"using gh{on}p{off}_{TOKEN[4:]} now",
    ):
        assert REDACTOR.redact(text) == REDACTOR.redact(f"using {TOKEN} now")
    for text in (f"{on}DB_PASSWORD{off}={on}hunter2{off}", f"DB_{on}PASS{off}WORD{on}={off}hun{on}ter2"):
        assert REDACTOR.redact(text) == REDACTOR.redact("DB_PASSWORD=hunter2")


def test_a_text_with_sequences_only_is_shown_without_them() -> None:
    redaction = REDACTOR.redaction("\x1b[32mready\x1b[0m\n")
    assert (redaction.text, redaction.masked) == ("ready\n", 0)
