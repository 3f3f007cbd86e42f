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
        ("since yesterday noon", "21T12:00", "22T05:00"),
        ("seit gestern Mittag", "21T12:00", "22T05:00"),
        ("ayer por la tarde", "21T12:00", "21T18:00"),
        ("depuis mardi matin", "17T05:00", "22T05:00"),
        ("seit Montagmorgen", "16T05:00", "22T05:00"),
        ("le 19 novembre", "19T00:00", "20T00:00"),
        ("between 14 nov and 16 nov", "14T00:00", "17T00:00"),
        ("vom 14. bis 16. November", "14T00:00", "17T00:00"),
        ("del 14 al 16 de noviembre", "14T00:00", "17T00:00"),
        ("du 14 au 16 novembre", "14T00:00", "17T00:00"),
        ("from the 14th to the 16th", "14T00:00", "17T00:00"),
        ("seit dem 20.11.", "20T00:00", "22T05:00"),
        ("am 14. November um 15 Uhr", "14T14:30", "14T16:00"),
        ("between 3 and 4 pm yesterday", "21T15:00", "21T16:00"),
        ("entre las 3 y las 4", "22T03:00", "22T04:00"),
        ("entre hier 22h et aujourd'hui 2h", "21T22:00", "22T02:00"),
        ("between 23:00 and 01:00", "21T23:00", "22T01:00"),
        ("3 in the morning", "22T02:30", "22T04:00"),
        ("this morning", "22T00:00", "22T05:00"),
        ("until noon yesterday", "01T00:00", "21T12:00"),
        ("after 4:45", "22T04:45", "22T05:00"),
        ("on Friday", "20T00:00", "21T00:00"),
        ("this week", "16T00:00", "22T05:00"),
        ("au cours des 3 derniers jours", "19T05:00", "22T05:00"),
        ("während der letzten halben Stunde", "22T04:30", "22T05:00"),
        ("in november", "01T00:00", "22T05:00"),
        ("yesterday with checkout at 14:00", "21T13:30", "21T15:00"),
    ],
)
def test_a_period_has_two_ends(text: str, start: str, end: str) -> None:
    period = parse_question(f"what changed {text}?").period
    assert period is not None
    assert [written(at)[8:16] for at in period.bounds(NOW)] == [start, end]


@pytest.mark.parametrize(
    "text",
    [
        "older than two days",
        "created more than 2 days ago",
        "with 2 containers",
        "on node-7",
        "with 3/3 ready",
        "at 10.4.17.204",
        "with redis:7.4",
        "that may fail",
        "in the march namespace",
        "läuft hier alles rund",
        "with 'since 04:45' in the log",
    ],
)
def test_ages_and_numbers_are_no_periods(text: str) -> None:
    assert parse_question(f"list pods {text}").period is None


def test_a_time_before_which_something_happened_has_no_beginning() -> None:
    period = parse_question("what changed before 04:00?").period
    assert period is not None
    assert period.bounds(NOW) == (0.0, NOW - 3_600)
