"""Finds points in time in a folded question, in four languages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holmes.triage.points import (
    Day,
    Point,
    date_of,
    days_back,
    length_expression,
    midnight_of,
    seconds_of,
    weekday,
)
from holmes.triage.zones import zone_after
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_TODAY: Final = r"today|heute|hoy|aujourd'hui"
_MORNING: Final = r"morning|morgens?|fruh|vormittags?|manana|matin(?:ee)?"
_AFTERNOON: Final = r"afternoon|nachmittags?|tarde|apres-midi"
_EVENING: Final = r"evening|abends?|soir(?:ee)?"
_NIGHT: Final = r"night|nachts?|noche|nuit"
_NOON: Final = r"noon|midday|mittags?|mediodia|medio dia|midi"
_MIDNIGHT: Final = r"midnight|mitternachts?|medianoche|media noche|minuit"
_ANY_PART: Final = rf"(?:{_MORNING}|{_AFTERNOON}|{_EVENING}|{_NIGHT})"
_PARTS: Final[tuple[tuple[str, tuple[float, float]], ...]] = (
    (_MORNING, (5, 12)), (_AFTERNOON, (12, 18)), (_EVENING, (17, 24)), (_NIGHT, (20, 30)), (_NOON, (12, 12)),
    (_MIDNIGHT, (0, 0)),
)  # fmt: skip
_LATE: Final = expression(rf"{_AFTERNOON}|{_EVENING}|pm|p\.m\.")
_WEEKDAYS: Final = (
    "monday montag lunes lundi", "tuesday dienstag martes mardi", "wednesday mittwoch miercoles mercredi",
    "thursday donnerstag jueves jeudi", "friday freitag viernes vendredi", "saturday samstag sonnabend sabado samedi",
    "sunday sonntag domingo dimanche",
)  # fmt: skip
_SHORT_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG: Final = "|".join(" ".join(_WEEKDAYS).split())
_SHORT: Final = "|".join(_SHORT_WEEKDAYS)
_ANY_WEEKDAY: Final = expression(
    rf"\b(?:a|an|any|every|each|some|einem?|einen|jede[mn]?|un|algun|cada|chaque) (?P<day>{_LONG})\b"
    rf"|\b(?P<days>{'|'.join(one for one in _LONG.split('|') if not one.endswith('s'))})s\b"
)
_DAY_WORDS: Final = rf"{_TODAY}|yesterday|gestern|ayer|hier|day|tag|{_LONG}"
_IN_THE: Final = r"(?:in the|de la|del|du|de l'|a la|por la)?\s*"
_WEEKDAY: Final = {
    **{name: index for index, names in enumerate(_WEEKDAYS) for name in names.split()},
    **{name: index for index, name in enumerate(_SHORT_WEEKDAYS)},
}
_MONTHS: Final = (
    "january jan januar enero ene janvier janv", "february feb februar febrero fevrier fevr fev",
    "march mar marz maerz mrz marzo mars", "april apr abril abr avril avr", "may mai mayo",
    "june jun juni junio juin", "july jul juli julio juillet juil", "august aug agosto ago aout",
    "september sept sep septiembre setiembre septembre", "october oct oktober okt octubre octobre",
    "november nov noviembre novembre", "december dec dezember dez diciembre dic decembre",
)  # fmt: skip
_MONTH: Final = {name: index for index, names in enumerate(_MONTHS, 1) for name in names.split()}
MONTHS: Final = frozenset(name for name in _MONTH if len(name) > 4)
"""The names of months that have one meaning."""
_MONTH_NAMES: Final = "|".join(sorted(_MONTH, key=len, reverse=True))
_GLUE: Final = expression(
    r"\s*,?\s*(?:(?:at|um|gegen|a|a las|las|vers|on|am|in the|por la|en la|de la|around|about|shortly|kurz|of|de|del"
    r"|dans la|le|el|the|au|al|in der|zum|d'|l'|sobre las)\s*)*"
)
_GERMAN: Final = expression(
    r"\b(?:ist|sind|war|waren|wird|wurde|der|die|das|dem|und|oder|nicht|wie|was|warum|wieso|welche[rsn]?|wer|wo|hat"
    r"|haben|lauft|laufen|gibt|geht|alles|alle|ein|eine|auf|mit|von|bei|noch|gerade)\b"
)
"""In a German sentence, `hier` means here. In a French one, it means yesterday."""
_QUOTED: Final = expression(r"`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|[“„][^“”\n]+[“”]|«[^«»\n]+»|»[^«»\n]+«")
_AGED: Final = expression(r"\b(?:more|less|older|newer|longer|mehr|mas|plus|menos|moins) (?:than|als|de|que) $")


def _night(present: datetime) -> datetime:
    """Return the day on which the night of `present` began."""
    return midnight_of(present) - timedelta(days=1 if present.hour < 12 else 0)


def _of_week(present: datetime) -> datetime:
    return midnight_of(present) - timedelta(days=present.weekday())


def _weekend(present: datetime) -> datetime:
    return midnight_of(present) - timedelta(days=(present.weekday() - 5) % 7)


_LAST_NIGHT: Final = (
    r"(?:last|letzte|vergangene) (?:night|nacht)|anoche|la nuit derniere|ayer (?:por|en|a) la noche|hier soir"
    r"|gestern nacht|yesterday night"
)
_WEEKEND: Final = (
    r"(?:(?:this|last|past|over the|on the|dieses|letztes|am|este|el|ce|le) )?"
    r"(?:weekend|wochenende|fin de semana|week-end)(?: pasado| dernier)?"
)
_EARLY: Final = r"in the (?:small|wee|early) hours"
_WHOLE_DAYS: Final[tuple[tuple[str, Point], ...]] = (
    (rf"this morning|(?:heute|diesen) (?:{_MORNING})|esta manana|ce matin", Point(day=days_back(0), clock=(0, 12))),
    (r"(?:the )?night before last(?: night)?|vorletzte nacht|anteanoche|avant-derniere nuit",
     Point(day=days_back(2), clock=(18, 32))),
    (_LAST_NIGHT, Point(day=days_back(1), clock=(18, 32))),
    (r"tonight|this night|heute? nacht|esta noche|cette nuit|over ?night",
     Point(day=Day(begins=_night), clock=(18, 32))),
    (r"this (?:after)?noon|heute (?:nach)?mittag|esta tarde|cet apres-midi", Point(day=days_back(0), clock=(12, 18))),
    (rf"{_EARLY}|esta madrugada|heute in der fruhe|in den fruhen morgenstunden|early this morning|au petit matin",
     Point(day=days_back(0), clock=(0, 7))),
    (r"this evening|heute abend|ce soir", Point(day=days_back(0), clock=(17, 24))),
    (r"last evening", Point(day=days_back(1), clock=(17, 24))),
    (rf"{_TODAY}", Point(day=days_back(0))),
    (r"(?:the )?day before yesterday|vorgestern|anteayer|antes de ayer|avant-hier", Point(day=days_back(2))),
    (r"yesterday|gestern|ayer|hier", Point(day=days_back(1))),
    (r"(?:this|diese[rn]?|esta|cette) (?:week|woche|semana|semaine)", Point(day=Day(begins=_of_week, days=7))),
    (_WEEKEND, Point(day=Day(begins=_weekend, days=2))),
    (r"(?:this|diesen|dieser|este|ce) (?:month|monat|mes|mois)",
     Point(day=Day(begins=lambda present: midnight_of(present).replace(day=1), days=31))),
)  # fmt: skip
_PREVIOUS: Final = expression(
    r"\b(?:last|letzten?[sr]?|vergangenen?|vorige[nrs]?|previous) (?P<unit>week|month|year|woche|monat|jahr)\b(?! \d)"
    r"|\b(?:la )?(?P<spanish>semana|mes|ano) pasad[oa]\b"
    r"|\b(?:la |le )?(?P<french>semaine|mois|an(?:nee)?) (?:derniere?|passee?)\b"
)
_PREVIOUS_DAYS: Final = {"w": 7, "s": 7, "m": 31, "y": 366, "j": 366, "a": 366}
_ON_WEEKDAY: Final = expression(
    rf"\b(?P<past>(?:last|past|previous|letzten?|vergangenen|vorigen) )?(?:the )?"
    rf"(?P<day>{_LONG}|(?<=on )(?:{_SHORT})|(?<=since )(?:{_SHORT}))"
    rf"(?:\b|(?=(?:{_ANY_PART}|{_NOON})\b))"
    r"(?P<after> pasado| dernier| passe)?"
)
_ISO: Final = expression(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?:[t ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?z?)?(?!\d)")
_DAY_MONTH: Final = expression(
    r"(?<![\d.:/-])(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?"
    r"(?P<more>\s*(?:-|\u2013|and|to|und|bis(?: zum)?|y|al?|au|et)\s*"
    r"(?:el |le |the |den |dem )?(?P<last>\d{1,2})(?:st|nd|rd|th|er|\.)?)?"
    rf"\s*(?:of |de |d')?(?P<month>{_MONTH_NAMES})\b\.?(?:,? (?:de |del )?(?P<year>\d{{4}})\b)?"
)
_MONTH_DAY: Final = expression(
    rf"\b(?P<month>{_MONTH_NAMES})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)"
    r"(?P<more>\s*(?:-|\u2013|and|to|through)\s*(?:the )?(?P<last>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?"
    r"(?:,? (?P<year>\d{4})\b)?"
)
_NUMERIC: Final = expression(
    r"(?<![\d./-])(?P<day>\d{1,2})"
    r"(?:\.(?P<month>\d{1,2})\.(?P<year>\d{4}|\d\d)?|/(?P<other>\d{1,2})(?P<whole>/\d{4})?)(?![\d./])"
)
_DATED: Final = expression(
    r"\b(?:on|since|before|until|am|vom|seit|bis|ab|el|del|al|desde|le|du|au|depuis|entre|between|y|et|and|from|to)"
    r"(?: the| dem| el| le)? $"
)
_OF_MONTH: Final = expression(
    r"\bthe (?P<english>\d{1,2})(?:st|nd|rd|th)\b"
    r"|\b(?:am|vom|zum|seit dem|ab dem|bis zum) (?P<german>\d{1,2})\.(?![\d.])"
    r"|\b(?:el|del|al) (?:dia )?(?P<spanish>\d{1,2})\b(?=\s*(?:y|al|hasta|por|[?!.,]|$))"
    r"|\b(?:le|du|au) (?P<french>\d{1,2})(?:er)?\b(?=\s*(?:et|au|[?!.,]|$))"
)
_IN_MONTH: Final = expression(
    rf"\b(?:in|im|en|since|seit|desde|depuis|before|until|vor|bis|antes de|hasta|avant|de|del mes de|au mois de) "
    rf"(?P<month>{_MONTH_NAMES})\b(?!\.? \d)"
)
_ON_MIDNIGHT: Final = expression(rf"(?:\b|(?<=tag)|(?<=woch))(?P<part>{_MIDNIGHT}|{_NOON})\b")
_ON_PART: Final = expression(
    r"(?P<lead>\b(?:in the|during the|the|this|am|in der|seit(?: dem)?|por la|en la|de la|a la|la|dans la|du|le|l'"
    rf"|since)\s*)?(?:\b|(?<=tag)|(?<=woch))(?P<part>{_ANY_PART})\b"
)
_CLOCK: Final = expression(
    r"(?<![\d:./])(?P<hour>\d{1,2})(?::|h)(?P<minute>\d{2})(?::(?P<second>\d{2}))?z?(?![\d:])"
    r"(?: ?(?P<half>am|pm|a\.m\.|p\.m\.))?(?: ?uhr\b)?"
    r"|(?<![\d.:/-])(?P<full>\d{1,2}) ?(?P<named>am|pm|a\.m\.|p\.m\.|uhr|o'clock)(?!\w)"
    r"|\b(?:a|vers|entre|et|avant|apres|jusqu'a|des|de|from|between|and|until) (?P<french>\d{1,2}) ?h(?:eures?)?\b"
    rf"|\b(?:{_DAY_WORDS}),? (?:a |um )?(?P<beside>\d{{1,2}}) ?h(?:eures?)?\b"
    rf"|\b(?P<spoken>\d{{1,2}})(?: heures?| horas?)?(?= {_IN_THE}{_ANY_PART}\b)"
    r"|\blas (?P<spanish>\d{1,2})(?: horas)?\b(?=\s*(?:y|de la|hasta|a las|hoy|ayer|[?!.,]|$))"
)
_BARE_HOUR: Final = expression(
    r"\b(?P<hour>\d{1,2})(?=\s*(?:and|to|und|bis|y|et|-|\u2013)\s*\d{1,2}(?::00)? ?(?P<named>am|pm|uhr)\b)"
)
_AGO: Final = expression(
    r"(?:\b(?P<before>vor|hace|il y a) (?:about |etwa |unos |unas |environ |rund )?)?"
    rf"(?<![a-z\d-]){length_expression()}"
    r"(?P<after> (?:ago|back|before now|earlier))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighted:
    """A point at a place of the text."""

    start: int
    end: int
    point: Point


def points_in(text: str) -> tuple[Sighted, ...]:
    """Return the points in a folded text, in their order. A day and a time of day next to each other are one point."""
    plain = _QUOTED.sub(lambda match: " " * len(match[0]), text)
    found = sorted(_sighted(plain), key=lambda each: (each.start, -each.end))
    kept: list[Sighted] = []
    for each in found:
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return tuple(_merged(plain, kept))


def _merged(text: str, found: list[Sighted]) -> Iterator[Sighted]:
    """Yield the points, with a day and its time of day as one."""
    waiting: Sighted | None = None
    for each in found:
        both = waiting and _together(text, waiting, each)
        if waiting is not None and both is None:
            yield waiting
        waiting = both or each
    if waiting is not None:
        yield waiting


def _together(text: str, one: Sighted, other: Sighted) -> Sighted | None:
    first, second = one.point, other.point
    if not _GLUE.fullmatch(text[one.end : other.start]) or first.ago is not None or second.ago is not None:
        return None
    if first.clock and second.clock:
        clock = _narrowed(first.clock, second.clock) or _in_part_of_day(first.clock, text[other.start : other.end])
        return Sighted(start=one.start, end=other.end, point=replace(first, clock=clock)) if clock else None
    if (first.day and second.day) or not (first.clock or second.clock):
        return None
    zone = first.zone if first.zone is not None else second.zone
    point = Point(day=first.day or second.day, clock=first.clock or second.clock, zone=zone)
    return Sighted(start=one.start, end=other.end, point=point)


def _narrowed(part: tuple[float, float], clock: tuple[float, float]) -> tuple[float, float] | None:
    """Return the time of "last night around 11pm", which is in that part of the day, or None."""
    if part[0] == part[1] or clock[0] != clock[1]:
        return None
    hours = (clock[0] + more for more in (0.0, 12.0, 24.0))
    return next(((hour, hour) for hour in hours if part[0] <= hour <= part[1]), None)


def _in_part_of_day(clock: tuple[float, float], part: str) -> tuple[float, float] | None:
    """Return the time of "3 in the afternoon", or None if the second point is not a part of the day."""
    if part[-1:].isdigit():
        return None
    late = 12.0 if _LATE.search(part) and clock[0] < 12 else 0.0
    return clock[0] + late, clock[1] + late


def _sighted(text: str) -> Iterator[Sighted]:
    for finder in (_agos, _words, _weeks, _weekdays, _dates, _clocks, _parts):
        yield from finder(text)


def _agos(text: str) -> Iterator[Sighted]:
    for match in _AGO.finditer(text):
        if (match["before"] or match["after"]) and not _AGED.search(text, 0, match.start()):
            point = Point(ago=seconds_of(match["number"] or "", match["unit"]))
            yield Sighted(start=match.start(), end=match.end(), point=point)


def _words(text: str) -> Iterator[Sighted]:
    for words, point in _WHOLE_DAYS:
        for match in re.finditer(rf"\b(?:{words})\b", text):
            if match[0] != "hier" or not _GERMAN.search(text):
                yield Sighted(start=match.start(), end=match.end(), point=point)


def _weeks(text: str) -> Iterator[Sighted]:
    for match in _PREVIOUS.finditer(text):
        days = _PREVIOUS_DAYS[next(filter(None, match.groups()))[0]]
        yield Sighted(start=match.start(), end=match.end(), point=Point(day=days_back(2 * days, 2 * days)))


def _weekdays(text: str) -> Iterator[Sighted]:
    for match in _ON_WEEKDAY.finditer(text):
        day = weekday(_WEEKDAY[match["day"]], past=bool(match["past"] or match["after"]))
        yield Sighted(start=match.start(), end=match.end(), point=Point(day=day))


def _dates(text: str) -> Iterator[Sighted]:
    for match in _ISO.finditer(text):
        day = date_of(int(match[1]), int(match[2]), int(match[3]))
        hour = int(match[4] or 0) + int(match[5] or 0) / 60 + int(match[6] or 0) / 3_600
        if match[4]:
            end, zone = zone_after(text, match.end(), dated=True)
            stated = zone if end > match.end() or match[0].endswith("z") else None
            yield from _dated(match.start(), end, day, (hour, hour), stated)
        else:
            yield from _dated(match.start(), match.end(), day)
    for pattern in (_DAY_MONTH, _MONTH_DAY):
        for match in pattern.finditer(text):
            month, year = _MONTH[match["month"]], int(match["year"] or 0)
            if match["last"]:  # "14 to 16 nov": two points with what joins them in between
                first, last = match.span("day"), match.span("last")
                yield from _dated(match.start(), first[1], date_of(year, month, int(match["day"])))
                yield from _dated(last[0], match.end(), date_of(year, month, int(match["last"])))
            else:
                yield from _dated(match.start(), match.end(), date_of(year, month, int(match["day"])))
    for match in _NUMERIC.finditer(text):
        if match["month"] or match["whole"] or _DATED.search(text, 0, match.start()):
            year = int((match["year"] or match["whole"] or "0").strip("/"))
            month = int(match["month"] or match["other"])
            yield from _dated(
                match.start(), match.end(), date_of(year + (2000 if 0 < year < 100 else 0), month, int(match["day"]))
            )
    for match in _IN_MONTH.finditer(text):
        day = date_of(0, _MONTH[match["month"]], 1)
        yield from _dated(match.start("month"), match.end(), replace(day, days=31) if day is not None else None)
    for match in _OF_MONTH.finditer(text):
        number = next(filter(None, match.groups()))
        yield from _dated(match.start() + match[0].index(number), match.end(), date_of(0, 0, int(number)))


def _dated(
    start: int, end: int, day: Day | None, clock: tuple[float, float] | None = None, zone: float | None = None
) -> Iterator[Sighted]:
    if day is not None:
        yield Sighted(start=start, end=end, point=Point(day=day, clock=clock, zone=zone))


def _clocks(text: str) -> Iterator[Sighted]:
    for match in _CLOCK.finditer(text):
        written = next(
            filter(None, (match[name] for name in ("hour", "full", "french", "beside", "spoken", "spanish")))
        )
        hour = _hour(int(written), (match["half"] or match["named"] or "").replace(".", ""))
        hour += int(match["minute"] or 0) / 60 + int(match["second"] or 0) / 3_600
        start = match.start() + match[0].index(written)
        if hour < 24 and int(match["minute"] or 0) < 60:
            end, zone = zone_after(text, match.end(), dated=False)
            stated = zone if end > match.end() else None
            yield Sighted(start=start, end=end, point=Point(clock=(hour, hour), zone=stated))
    for match in _BARE_HOUR.finditer(text):
        hour = _hour(int(match["hour"]), match["named"])
        yield Sighted(start=match.start(), end=match.end(), point=Point(clock=(hour, hour)))


def _hour(number: int, half: str) -> float:
    if half in ("am", "pm"):
        return float(number % 12 + (12 if half == "pm" else 0))
    return float(number)


def _parts(text: str) -> Iterator[Sighted]:
    """Yield parts of the day. Without a word before them, they only count next to a day or a time."""
    for match in _ON_MIDNIGHT.finditer(text):
        yield Sighted(start=match.start("part"), end=match.end(), point=Point(clock=_hours(match["part"])))
    for match in _ON_PART.finditer(text):
        beside = re.search(rf"(?:\d|{_DAY_WORDS})(?:,? {_IN_THE})?$", text[: match.start()])
        if match["lead"] or beside:
            yield Sighted(start=match.start("part"), end=match.end(), point=Point(clock=_hours(match["part"])))


def _hours(part: str) -> tuple[float, float]:
    return next(hours for words, hours in _PARTS if re.fullmatch(words, part))


def any_weekday(text: str) -> tuple[str, int]:
    """Return the phrase for a day of any week, and its number from Monday: "on a sunday". Empty without one."""
    match = _ANY_WEEKDAY.search(text)
    return (match[0], _WEEKDAY[match["day"] or match["days"]]) if match is not None else ("", -1)
