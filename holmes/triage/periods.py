"""Parses the times in a question: "in the last hour", "two hours ago", "yesterday at 14:00", "since Friday".

A period is relative to the time of the cluster, so that a recording is asked about its own days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY_SECONDS: Final = 86_400.0
_HALF_HOUR: Final = 1_800.0
_VAGUE_SHARE: Final = 0.5
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "o": 2_592_000}
_UNITS: Final = (
    r"(?P<unit>sec\w*|sek\w*|segundos?|s|monat\w*|months?|mes(?:es)?|mois|min\w*|m|hours?|hrs?|std|stunden?|horas?"
    r"|heures?|h|days?|tagen?|tage?|dias?|jours?|d|weeks?|wochen?|semanas?|semaines?|w)\b"
)
_UNIT_STARTS: Final = {
    "o": "mon mes moi", "s": "sec sek seg", "h": "std stu ho hr he", "w": "sem we wo", "m": "mi", "d": "da ta di jo",
}  # fmt: skip
_UNIT_LETTERS: Final = tuple((start, letter) for letter, starts in _UNIT_STARTS.items() for start in starts.split())
_NUMBERS: Final = (
    "a an one ein eine einem einer eines einen un una une", "two zwei dos deux", "three few drei tres trois paar",
    "four vier cuatro quatre", "five funf cinco cinq", "six sechs seis", "seven sieben siete sept",
    "eight acht ocho huit", "nine neun nueve neuf", "ten zehn diez dix", "eleven elf once onze",
    "twelve zwolf doce douze",
)  # fmt: skip
NUMBER_WORDS: Final = {word: number for number, words in enumerate(_NUMBERS, 1) for word in words.split()}
_NUMBER: Final = rf"(?P<number>\d{{1,6}}|(?:{'|'.join(NUMBER_WORDS)})\b|half an?\b|couple of)?"
_LENGTH: Final = rf"{_NUMBER}\s*{_UNITS}"
_LAST: Final = r"last|past|previous|letzte[nrms]?|ultim[oa]s?|pasad[oa]s?|dernier\w*"
_ARTICLES: Final = r"(?:the |the past |the last |der |den |dem |la |las |los |les )?"
_SINCE: Final = re.compile(
    rf"\b(?P<opens>since|seit|desde hace|depuis)\s+{_ARTICLES}(?:(?:{_LAST}) )?{_LENGTH}(?! ago)"
    rf"|\b(?:(?:in|within|during|over|for|of|im|en|dans|durant)\s+{_ARTICLES}(?:{_LAST})|the (?:last|past)|within"
    rf"|ultim[oa]s?|letzten)\s+(?:(?:{_LAST}) )?{_LENGTH.replace('number', 'count').replace('unit', 'units')}(?! ago)"
    r"|\b(?:last|past|letzten|dernieres|derniers)\s+(?P<many>\d{1,6})\s*"
    rf"{_UNITS.replace('unit', 'manys')}"
)
_AGO: Final = re.compile(
    r"(?P<since>\bsince )?(?:\b(?P<before>vor|hace|il y a) (?:about |etwa )?)?"
    rf"{_LENGTH}(?P<after> (?:ago|back|before now))?"
)
_AGE: Final = re.compile(r"\b(?:more|less|older|newer|longer|mehr|mas|plus) (?:than|als|de|que) $")
_DAYS_AGO: Final = (
    (re.compile(r"\b(?:today|heute|hoy|aujourd'hui|this morning)\b"), 0),
    (re.compile(r"\b(?:the day before yesterday|vorgestern|anteayer|avant-hier)\b"), 2),
    (re.compile(r"\b(?:yesterday|gestern|ayer|hier)\b(?! (?:steht|lauft|ist|sind|drin))"), 1),
)
_NIGHT: Final = re.compile(
    r"\b(?:last night|tonight|this night|overnight|(?:letzte|vergangene|heute) nacht|anoche|esta noche|cette nuit"
    r"|la nuit derniere)\b"
)
_PREVIOUS: Final = re.compile(
    r"\b(?:last|letzten?|letztes|vorige[nrs]?|previous) (?P<unit>week|month|year|woche|monat|jahr)\b"
    r"|\b(?:la )?(?P<spanish>semana|mes|ano) pasad[oa]\b"
    r"|\b(?:la |le )?(?P<french>semaine|mois|an) (?:derniere?|passee?)\b"
)
_PREVIOUS_DAYS: Final = {"w": 7, "s": 7, "m": 31, "y": 366, "j": 366, "a": 366}
_WEEKDAYS: Final = (
    "monday montag lunes lundi", "tuesday dienstag martes mardi", "wednesday mittwoch miercoles mercredi",
    "thursday donnerstag jueves jeudi", "friday freitag viernes vendredi", "saturday samstag sonnabend sabado samedi",
    "sunday sonntag domingo dimanche",
)  # fmt: skip
_WEEKDAY: Final = {name: index for index, names in enumerate(_WEEKDAYS) for name in names.split()}
_ON_WEEKDAY: Final = re.compile(rf"\b(?:{'|'.join(_WEEKDAY)})\b")
_DATE: Final = re.compile(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?:t(\d\d):(\d\d))?")
_CLOCK: Final = re.compile(
    r"(?<![\d:.-])(\d{1,2})(?::|h)(\d{2})(?::(\d{2}))?z?(?![\d:])|(?<![\d])(\d{1,2}) ?(am|pm|uhr|o'clock)\b"
)
_OPEN: Final = re.compile(
    r"\b(?:since|seit|desde|depuis|after|nach|despues de|apres|from)\s+(?:the\s+|el\s+|las\s+|last\s+)?$"
)
_CLOSED: Final = re.compile(r"\b(?:before|until|till|vor|bis|antes de|hasta|avant|jusqu'a)\s+(?:the\s+|el\s+|las\s+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of time in a question.

    It is `from_ago` to `until_ago` seconds before now, or the calendar days `days` before today, both inclusive.
    `clock` contains times of day in seconds since midnight. `opens` means that it began then and lasts until now,
    `closes` that it has no beginning. `text` is the part of the question.
    """

    text: str
    from_ago: float = 0.0
    until_ago: float = 0.0
    days: tuple[int, int] | None = None
    weekday: int | None = None
    date: str = ""
    clock: tuple[int, ...] = ()
    opens: bool = False
    closes: bool = False

    @property
    def length(self) -> float:
        """The length of a period that lasts until now, or 0."""
        return self.from_ago if self.from_ago and not self.until_ago else 0.0

    def bounds(self, now: float, near: float = _HALF_HOUR) -> tuple[float, float]:
        """Return the first and the last moment in seconds since the epoch. One time of day means times `near` it."""
        start, end = self._days(now)
        if self.clock:
            midnight = self._midnight(now)
            times = sorted(midnight + clock for clock in self.clock[:2])
            if self.days is None and self.weekday is None and not self.date and times[0] > now:
                times = [each - DAY_SECONDS for each in times]
            around = 0.0 if self.opens or self.closes else near
            start, end = (times[0], times[1]) if len(times) > 1 else (times[0] - around, times[0] + 2 * around)
        if self.opens and not self.from_ago:
            end = now
        if self.closes:
            start, end = 0.0, (start if len(self.clock) < 2 else end)
        return start, min(end, now)

    def _midnight(self, now: float) -> float:
        today = now - now % DAY_SECONDS
        if self.date:
            return datetime.combine(date.fromisoformat(self.date), datetime.min.time(), UTC).timestamp()
        if self.weekday is not None:
            gone = (datetime.fromtimestamp(now, UTC).weekday() - self.weekday) % 7
            return today - gone * DAY_SECONDS
        return today - (self.days[0] if self.days else 0) * DAY_SECONDS

    def _days(self, now: float) -> tuple[float, float]:
        if self.date or self.weekday is not None:
            start = self._midnight(now)
            return start, start + DAY_SECONDS
        if self.days is None:
            return now - self.from_ago, now - self.until_ago
        today = now - now % DAY_SECONDS
        return today - self.days[0] * DAY_SECONDS, today - (self.days[1] - 1) * DAY_SECONDS


def period_of(text: str) -> Period | None:
    """Return the period that a folded question names, or None. The parts of a sentence are combined."""
    found = next(filter(None, (find(text) for find in (_last, _ago, _night, _day, _previous, _date))), None)
    clock = tuple(_clock(text))
    if not clock:
        return found
    first = next(_CLOCK.finditer(text))
    opens, closes = _direction(text, first.start())
    if found is None:
        return Period(text=first[0], clock=clock, opens=opens and len(clock) == 1, closes=closes and len(clock) == 1)
    return Period(
        text=found.text, days=found.days, weekday=found.weekday, date=found.date, clock=clock,
        opens=opens or found.opens, closes=closes,
    )  # fmt: skip


def seconds_of(number: str, unit: str) -> float:
    """Return the length of an amount of time, for example of `two` `hours`."""
    count = 0.5 if number.startswith("half") else number_of(number)
    letter = (
        unit if unit in _UNIT_SECONDS else next(letter for start, letter in _UNIT_LETTERS if unit.startswith(start))
    )
    return count * _UNIT_SECONDS[letter]


def number_of(written: str) -> float:
    """Return a number that is written in digits or as a word. Empty means 1, and an unknown word 2."""
    return float(written) if written.isdigit() else float(NUMBER_WORDS.get(written, 2 if written else 1))


def length_expression() -> str:
    """Return the expression for an amount of time, with the groups `number` and `unit`."""
    return _LENGTH


def _direction(text: str, at: int) -> tuple[bool, bool]:
    before = text[:at]
    return _OPEN.search(before) is not None, _CLOSED.search(before) is not None


def _last(text: str) -> Period | None:
    match = _SINCE.search(text)
    if match is None or text[match.end() :].lstrip().startswith(("ago", "old")):
        return None
    number, unit = next(
        (match[number] or "", match[unit])
        for number, unit in (("number", "unit"), ("count", "units"), ("many", "manys"))
        if match[unit]
    )
    return Period(text=match[0], from_ago=seconds_of(number, unit), opens=match["opens"] is not None)


def _ago(text: str) -> Period | None:
    for match in _AGO.finditer(text):
        if not (match["before"] or match["after"]):
            continue
        if re.search(
            r"\b(?:more|less|older|newer|longer|mehr|mas|plus) (?:than|als|de|que)\s+$", text[: match.start()]
        ):
            continue  # the age of objects
        seconds = seconds_of(match["number"] or "", match["unit"])
        opens = bool(match["since"]) or (match["before"] == "hace" and text[: match.start()].endswith("desde "))
        around = 0.0 if opens else max(seconds * _VAGUE_SHARE, 300.0)
        return Period(text=match[0].strip(), from_ago=seconds + around, until_ago=0.0 if opens else seconds - around)
    return None


def _night(text: str) -> Period | None:
    match = _NIGHT.search(text)
    return Period(text=match[0], days=(1, 0)) if match is not None else None


def _day(text: str) -> Period | None:
    for expression, days in _DAYS_AGO:
        match = expression.search(text)
        if match is not None:
            opens, closes = _direction(text, match.start())
            return Period(text=match[0], days=(days, days), opens=opens, closes=closes)
    match = _ON_WEEKDAY.search(text)
    if match is None:
        return None
    opens, closes = _direction(text, match.start())
    return Period(text=match[0], weekday=_WEEKDAY[match[0]], opens=opens, closes=closes)


def _previous(text: str) -> Period | None:
    match = _PREVIOUS.search(text)
    if match is None:
        return None
    unit = next(filter(None, match.groups()))
    days = _PREVIOUS_DAYS[unit[0]]
    return Period(text=match[0], days=(2 * days, 1))


def _date(text: str) -> Period | None:
    match = _DATE.search(text)
    if match is None:
        return None
    written = f"{match[1]}-{match[2]}-{match[3]}"
    try:
        date.fromisoformat(written)
    except ValueError:
        return None
    opens, closes = _direction(text, match.start())
    return Period(text=match[0], date=written, opens=opens, closes=closes)


def _clock(text: str) -> Iterator[int]:
    for match in _CLOCK.finditer(_DATE.sub(lambda found: f"{found[0][:0]} {found[0][11:]}", text)):
        if match[4]:
            hour = int(match[4]) % 12 + (12 if match[5] == "pm" or (match[5] == "uhr" and int(match[4]) >= 12) else 0)
            yield hour % 24 * 3_600
        elif int(match[1]) < 24 and int(match[2]) < 60:
            yield int(match[1]) * 3_600 + int(match[2]) * 60 + int(match[3] or 0)
