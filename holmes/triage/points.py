"""Points in time: days, times of day, both together, and amounts of time ago.

A point is relative to the time of the cluster. A date without a year is in the past, as near as possible.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holmes.values.durations import UNIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

DAY_SECONDS: Final = 86_400.0
_HOUR: Final = 3_600.0
_QUARTER_SECONDS: Final = 900.0
_VAGUE_SHARE: Final = 0.5
_QUARTERS: Final = ("quarter", "viertel", "cuarto", "quart")
_UNITS: Final = "|".join(
    (
        r"quarters? of an hour|quarter hours?|viertelstunden?|cuartos? de hora|quarts? d'heure",
        *(word for word, seconds in UNIT_SECONDS.items() if seconds >= 1 and word != "y"),
    )
)
"""The units of questions. A `y` is Spanish for "and"."""
_NUMBERS: Final = (
    "a an one ein eine einem einer eines einen un una une", "two zwei dos deux", "three few drei tres trois paar",
    "four vier cuatro quatre", "five funf cinco cinq", "six sechs seis", "seven sieben siete sept",
    "eight acht ocho huit", "nine neun nueve neuf", "ten zehn diez dix", "eleven elf once onze",
    "twelve zwolf doce douze",
)  # fmt: skip
_HALVES: Final = ("half", "halb", "media", "demi")
NUMBER_WORDS: Final = {word: number for number, words in enumerate(_NUMBERS, 1) for word in words.split()}
ARTICLES: Final = r"(?:the |the past |the last |der |den |dem |la |las |los |les )?"


def seconds_of(number: str, unit: str) -> float:
    """Return the length of an amount of time, for example of `two` `hours`."""
    if unit.startswith(_QUARTERS):
        return number_of(number) * _QUARTER_SECONDS
    count = 0.5 if number.startswith(_HALVES) else number_of(number)
    return count * UNIT_SECONDS[unit]


def number_of(written: str) -> float:
    """Return a number that is written in digits or as a word. Empty means 1, and an unknown word 2."""
    return float(written) if written.isdigit() else float(NUMBER_WORDS.get(written, 2 if written else 1))


def length_expression(number: str = "number", unit: str = "unit") -> str:
    """Return the expression for an amount of time, with the groups `number` and `unit`."""
    words = "|".join(NUMBER_WORDS)
    amount = rf"\d{{1,6}}|(?:{words})\b|half(?: an?)?\b|halb\w{{0,2}}\b|media|demi|couple of"
    return rf"(?P<{number}>{amount})?[\s-]*(?P<{unit}>{_UNITS})\b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A calendar day, or several. `begins` returns its midnight for a present time."""

    begins: Callable[[datetime], datetime]
    days: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point in time: a day, a time of day, both, or a number of seconds `ago`.

    `clock` contains the hours after midnight at which it begins and ends. Equal hours mean a moment. `zone` is the
    offset of its time zone from UTC in seconds, or None if the question states none.
    """

    day: Day | None = None
    clock: tuple[float, float] | None = None
    ago: float | None = None
    zone: float | None = None

    def interval(self, now: float) -> tuple[float, float]:
        """Return when the point begins and ends, in seconds since the epoch. A time without a day is in the past."""
        if self.ago is not None:
            return now - self.ago, now - self.ago
        zone = self.zone or 0.0
        now += zone
        present = datetime.fromtimestamp(now, UTC)
        midnight = midnight_of(present)
        start = self.day.begins(present) if self.day is not None else midnight
        length = self.day.days if self.day is not None else 1
        begin, end = self.clock or (0.0, 24.0 * length)
        if self.day is None and midnight.timestamp() + begin * _HOUR > now:
            start -= timedelta(days=1)
        midnight_seconds = start.timestamp() - zone
        return midnight_seconds + begin * _HOUR, midnight_seconds + end * _HOUR

    def during(self, now: float, near: float) -> tuple[float, float]:
        """Return the time that "at" the point means: `near` a moment, and roughly an amount of time ago."""
        start, end = self.interval(now)
        if self.ago is not None:
            around = max(self.ago * _VAGUE_SHARE, 300.0)
            return start - around, end + around
        return (start - near, end + 2 * near) if start == end else (start, end)

    def with_clock(self, now: float, other: Point) -> float:
        """Return the end of `other`, a time of day, on the day of this time of day or on the next one."""
        start = self.interval(now)[0]
        midnight = start - (self.clock or (0.0, 0.0))[0] * _HOUR
        between = (self.zone or 0.0) - (other.zone or 0.0)
        return midnight + (other.clock or (0.0, 24.0))[1] * _HOUR + between


def midnight_of(present: datetime) -> datetime:
    return present.replace(hour=0, minute=0, second=0, microsecond=0)


def days_back(days: int, length: int = 1) -> Day:
    return Day(begins=lambda present: midnight_of(present) - timedelta(days=days), days=length)


def weekday(index: int, *, past: bool) -> Day:
    """Return the most recent day of the week. A `past` one is not today."""

    def begins(present: datetime) -> datetime:
        back = (present.weekday() - index) % 7
        return midnight_of(present) - timedelta(days=back or (7 if past else 0))

    return Day(begins=begins)


def date_of(year: int, month: int, day: int) -> Day | None:
    """Return a date. Year and month can be 0, which means the most recent ones."""
    if not (month <= 12 and 1 <= day <= (monthrange(year or 2024, month)[1] if month else 31)):
        return None

    def begins(present: datetime) -> datetime:
        at = midnight_of(present)
        while (at.day, month or at.month, year or at.year) != (day, at.month, at.year) and at.year >= (year or 1900):
            at -= timedelta(days=1)
        return at

    return Day(begins=begins)
