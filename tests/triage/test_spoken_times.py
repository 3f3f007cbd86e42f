"""Spoken times of day become written ones, and words that only look like them stay as they are."""

from __future__ import annotations

import pytest

from holmes.triage.spoken_times import with_written_times


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("quarter to four", "3:45"),
        ("half past 9", "9:30"),
        ("ten past eleven", "11:10"),
        ("viertel nach acht", "8:15"),
        ("halb vier", "3:30"),
        ("dreiviertel zwölf", "11:45"),
        ("zwanzig nach sieben", "7:20"),
        ("las 4 menos cuarto", "las 3:45"),
        ("las tres y media", "las 3:30"),
        ("sept heures et quart", "7:15"),
        ("between 3 and 3:45", "between 3:00 and 3:45"),
    ],
)
def test_a_spoken_time_is_written(spoken: str, written: str) -> None:
    assert with_written_times(f"since {spoken} web fails") == f"since {written} web fails"


@pytest.mark.parametrize(
    "text",
    [
        "from three to four",
        "half to five",
        "7 past 3",
        "quarter to 30",
        "a quarter of the pods",
        "2 nach 3",
        "ten to one odds-4",
        "between 3 and 5 replicas",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert with_written_times(text) == text
