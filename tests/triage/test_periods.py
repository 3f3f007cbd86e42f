"""The times of a question become periods, and a time that is over is never taken for the present."""

from __future__ import annotations

import pytest

from holmes.kubernetes.fields import moment, written
from holmes.triage.question import parse_question

NOW = moment("2026-11-22T05:00:00Z") or 0.0  # a Sunday


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("in the last 2 hours", "22T03:00", "22T05:00"),
        ("seit 30 Minuten", "22T04:30", "22T05:00"),
        ("en las últimas 3 horas", "22T02:00", "22T05:00"),
        ("depuis 2 jours", "20T05:00", "22T05:00"),
        ("within the last hour", "22T04:00", "22T05:00"),
        ("today", "22T00:00", "22T05:00"),
        ("gestern", "21T00:00", "22T00:00"),
        ("yesterday at 14:00", "21T13:30", "21T15:00"),
        ("hace dos horas", "22T02:00", "22T04:00"),
        ("two hours ago", "22T02:00", "22T04:00"),
        ("between 03:00 and 04:00", "22T03:00", "22T04:00"),
        ("on 2026-11-20 between 03:00 and 04:00", "20T03:00", "20T04:00"),
        ("since Friday", "20T00:00", "22T05:00"),
        ("at 2pm", "21T13:30", "21T15:00"),
    ],
)
def test_a_period_has_two_ends(text: str, start: str, end: str) -> None:
    period = parse_question(f"what changed {text}?").period
    assert period is not None
    assert [written(at)[8:16] for at in period.bounds(NOW)] == [start, end]


@pytest.mark.parametrize(
    "text", ["older than two days", "created more than 2 days ago", "with 2 containers", "on node-7"]
)
def test_ages_and_numbers_are_no_periods(text: str) -> None:
    assert parse_question(f"list pods {text}").period is None


def test_a_time_before_which_something_happened_has_no_beginning() -> None:
    period = parse_question("what changed before 04:00?").period
    assert period is not None
    assert period.bounds(NOW) == (0.0, NOW - 3_600)
