"""The window over a log never loses a line without counting it, however the bytes arrive."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.toolsets.kubernetes_logs.request import LineFilter
from holmes.toolsets.kubernetes_logs.troubles import readable
from holmes.toolsets.kubernetes_logs.window import LONGEST_LINE_BYTES, LineWindow
from holmes.values.errors import ToolError
from tests.support.kubernetes_api import log_time

LINES = st.lists(st.text(st.characters(exclude_characters="\n"), max_size=30).map(str.strip), max_size=60)


def _window(*, tail: int = 10, kept: int = 1_000_000, **filters: regex.Pattern[str] | datetime | None) -> LineWindow:
    return LineWindow(tail_lines=tail, kept_limit_bytes=kept, line_filter=LineFilter(**filters))  # type: ignore[arg-type]


def _feed(window: LineWindow, content: bytes, cuts: list[int]) -> None:
    positions = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(positions):
        window.feed(content[begin:end])
    window.finish()


@settings(deadline=None)
@given(lines=LINES, tail=st.integers(1, 70), cuts=st.lists(st.integers(0, 5_000), max_size=8), ended=st.booleans())
def test_the_last_lines_are_kept_and_all_are_counted(lines: list[str], tail: int, cuts: list[int], ended: bool) -> None:
    content = b"".join(f"{log_time(0)} {line}\n".encode("utf-8", "replace") for line in lines)
    window = _window(tail=tail)

    _feed(window, content if ended else content.removesuffix(b"\n"), cuts)

    assert window.total_lines == window.matching_lines == len(lines)
    assert window.kept == tuple(content.split(b"\n")[:-1][-tail:])


@settings(deadline=None)
@given(lines=LINES, tail=st.integers(1, 70), cuts=st.lists(st.integers(0, 5_000), max_size=8))
def test_filters_count_what_they_pass_and_what_they_saw(lines: list[str], tail: int, cuts: list[int]) -> None:
    content = b"".join(f"{log_time(0)} {line}\n".encode("utf-8", "replace") for line in lines)
    window = _window(tail=tail, include=regex.compile("[a-m0]"), exclude=regex.compile("é|b"))
    decoded = [line.encode("utf-8", "replace").decode() for line in lines]
    wanted = [line for line in decoded if regex.search("[a-m0]", line) and not regex.search("é|b", line)]

    _feed(window, content, cuts)

    assert (window.total_lines, window.matching_lines) == (len(lines), len(wanted))
    assert [kept.split(b" ", 1)[1].decode() for kept in window.kept] == wanted[-tail:]


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 3_000), min_size=1, max_size=80), limit=st.integers(1, 20_000))
def test_memory_stays_bounded_and_the_newest_lines_survive(sizes: list[int], limit: int) -> None:
    window = _window(tail=1_000, kept=limit)

    _feed(window, b"".join(b"x" * size + b"\n" for size in sizes), [])

    assert window.total_lines == len(sizes)
    assert sum(map(len, window.kept)) <= max(limit, len(window.kept[-1]))
    assert [len(line) for line in window.kept] == sizes[-len(window.kept) :]


def test_a_very_long_line_is_cut_and_says_so() -> None:
    window = _window()

    _feed(window, b"x" * 100_000, [])

    (line,) = window.kept
    assert line.startswith(b"x" * LONGEST_LINE_BYTES)
    assert line.endswith("… [cut: the line has 100,000 bytes]".encode())
    assert window.stored_lines >= 100_000 // 16_384


def test_a_line_is_not_cut_within_what_may_be_a_token() -> None:
    window = _window()
    line = b'{"noise":"' + b"x" * (LONGEST_LINE_BYTES - 40) + b'","auth":"' + b"a1B2c3D4" * 10 + b'"}'

    _feed(window, line, [])

    assert b"a1B2" not in window.kept[0]
    assert b'","auth":"' in window.kept[0]


def test_the_end_of_the_time_range_is_inclusive_and_understands_zones() -> None:
    window = _window(until=datetime(2025, 1, 31, 10, 0, 5, 123456, tzinfo=UTC))
    stamps = [log_time(5), "2025-01-31T12:00:04.999999999+02:00", log_time(6), log_time(600)]

    _feed(window, "".join(f"{stamp} line\n" for stamp in stamps).encode(), [])

    assert (window.total_lines, window.matching_lines, window.past_end) == (4, 2, True)


def test_a_pattern_that_explodes_ends_in_one_line() -> None:
    window = _window(include=regex.compile(r"(x+x+)+y"))

    with pytest.raises(ToolError, match="matching include or exclude took too long"):
        _feed(window, b"x" * 5_000 + b"\n", [])


def test_lines_are_shown_without_terminal_codes_and_nanoseconds() -> None:
    assert (
        readable(b"2025-01-31T10:00:00.123456789Z \x1b[31mred\x1b[0m \xff\r") == "2025-01-31T10:00:00.123Z red \ufffd"
    )
    assert readable(b"2025-01-31T10:00:00.123456789+02:00 a\tb") == "2025-01-31T10:00:00.123+02:00 a\tb"
    assert readable(b"unable to retrieve container logs") == "unable to retrieve container logs"
