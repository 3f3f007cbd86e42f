"""Events as steps, outputs as windows of lines, and figures in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from holmes.investigations.records.values import StoredEvent
from holmes.server.pages import page_rendering
from holmes.server.pages.page_results import cited_range, window_of
from holmes.server.pages.step_views import timeline_of
from holmes.values.stats import RequestStats
from tests.server.page import hostile

START = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)


def event(number: int, name: str, data: object, seconds: float = 0) -> StoredEvent:
    return StoredEvent(id=number, name=name, at=START + timedelta(seconds=seconds), data=json.dumps(data))


def test_the_end_of_a_call_replaces_its_beginning_and_keeps_its_time() -> None:
    started = event(1, "start_tool_calling", {"id": "c", "tool_name": "kubectl_get", "description": "get pods"}, 10)
    result = {"status": "error", "error": "forbidden", "elapsed_seconds": 2.5}
    ended = event(2, "tool_calling_result", {"tool_call_id": "c", "description": "get pods", "result": result}, 12.5)
    (running,) = timeline_of([started], START).steps.values()
    (done,) = timeline_of([started, ended], START).steps.values()
    assert (running.key, running.offset, running.status) == (done.key, "0:10", "running")
    assert (done.offset, done.status, done.took, done.detail) == ("0:10", "error", "2.5 s", "forbidden")


def test_stored_outputs_are_named_by_the_call_that_returned_them() -> None:
    result = {"stored": [{"id": "0123456789ab"}], "data": "x"}
    data = {"tool_call_id": "c", "description": "kubectl get pods", "result": result}
    assert timeline_of([event(1, "tool_calling_result", data)], START).sources == {"0123456789ab": "kubectl get pods"}


def test_events_of_unknown_shape_are_left_out() -> None:
    events = [
        StoredEvent(id=number, name=name, at=START, data=data) for number, (name, data) in enumerate(hostile.RAW_EVENTS)
    ]
    timeline = timeline_of(events, START)
    assert timeline.last_event_id == len(events) - 1
    assert timeline.gauges is not None
    assert timeline.gauges.max_tokens == 0


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("12", (12, 12)),
        ("12-18", (12, 18)),
        ("18-12", None),
        ("0", None),
        ("", None),
        ("a", None),
        ("1-9999999", (1, 2001)),
    ],
)
def test_lines_in_an_address(text: str, lines: tuple[int, int] | None) -> None:
    assert cited_range(text) == lines


def test_a_window_is_bounded_also_when_every_line_is_huge() -> None:
    content = b"\n".join([b"x" * 50_000] * 1_000)
    window = window_of(content, (100, 900))
    assert sum(len(line.text) for line in window.lines) < 450_000
    assert window.later == window.last + 1


def test_windows_follow_each_other_without_a_gap() -> None:
    content = b"\n".join(b"%d" % number for number in range(1, 1_001))
    first = window_of(content, None)
    assert (first.first, first.earlier) == (1, None)
    second = window_of(content, None, first.later)
    assert second.first == first.last + 1
    assert window_of(content, None, 999_999).last == 1_000


def test_an_empty_output_has_a_window_too() -> None:
    assert window_of(b"", (1, 2)).later is None


def test_nothing_hides_in_foreign_text() -> None:
    shown = page_rendering.visible("\x1b[31mred\x1b[0m\x00\x07\u202egnp\u200b\ud83d\ttab\nline")
    assert shown == "red␀␇�gnp��\ttab\nline"


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0, "$0"), (0.0001, "<$0.001"), (0.0042, "$0.004"), (0.1834, "$0.18"), (3.4, "$3.40"), (1_204.4, "$1,204")],
)
def test_money_has_the_digits_that_matter(dollars: float, text: str) -> None:
    assert page_rendering.money(dollars) == text


def test_a_cost_says_when_it_is_only_a_bound_or_a_guess() -> None:
    assert page_rendering.cost_of(RequestStats(calls=1, cost=0.5, unpriced_calls=1)) == "≥ $0.50"
    assert page_rendering.cost_of(RequestStats(calls=1, cost=0.5, estimated=True)) == "~$0.50"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.96, "10 s"), (59.4, "59 s"), (185, "3 min 5 s"), (4_320, "1 h 12 min")]
)
def test_durations_read_naturally(seconds: float, text: str) -> None:
    assert page_rendering.duration(seconds) == text


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "//a.example", "http://", "http://[", "https://a b", "data:x", "", None]
)
def test_only_web_addresses_become_links(address: str | None) -> None:
    assert page_rendering.web_address(address) is None
