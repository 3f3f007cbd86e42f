"""The longest interval of a schedule is never too short, and unknown for complex schedules."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.schedules import longest_rest_seconds


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ("* * * * *", 60),
        ("*/15 * * * *", 15 * 60),
        ("5 * * * *", 3600),
        ("5,35 * * * *", 3600),
        ("0 */6 * * *", 6 * 3600),
        ("0 3 * * *", 24 * 3600),
        ("0 9-17 * * *", 24 * 3600),
        ("0 3 * * 1-5", 7 * 24 * 3600),
        ("0 3 31 * *", 62 * 24 * 3600),
        ("@hourly", 3600),
        ("TZ=UTC 0 3 * * *", 24 * 3600),
        ("0 0 1 1 *", None),
        ("@every 90m", None),
        ("", None),
        ("nonsense", None),
    ],
)
def test_a_schedule_rests_at_most_so_long(schedule: str, seconds: int | None) -> None:
    assert longest_rest_seconds(schedule) == seconds
