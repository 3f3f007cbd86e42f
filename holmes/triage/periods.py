"""Parses the times in a question: "in the last hour", "since yesterday noon", "between 14 nov and 16 nov".

A question names points in time, and how they bound its period. A period is relative to the time of the cluster, so that
a recording is asked about its own days.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.point_search import points_in
from holmes.triage.points import ARTICLES, DAY_SECONDS, Point, length_expression, seconds_of
from holmes.triage.zones import unknown_zone
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from holmes.triage.point_search import Sighted

Reach: TypeAlias = Literal["during", "within", "since", "until", "before"]

_HALF_HOUR: Final = 1_800.0
_LAST: Final = r"last|past|previous|letzte[nrms]?|vergangene[nrms]?|ultim[oa]s?|pasad[oa]s?|dernier\w*"
_WITHIN: Final = expression(
    rf"\b(?:(?:in|within|during|over|for|of|im|en|dans|durant|innerhalb|pendant|au cours|while)\s+{ARTICLES}(?:{_LAST})"
    rf"|(?:the|los|las|les|der|den|die) (?:{_LAST})|within|ultim[oa]s?|letzte[nrsm]?|dernieres?|past|last)\s+"
    rf"(?:(?:{_LAST}) )?{length_expression()}(?! ago)"
    rf"|\b(?:in|en|over|pendant|durant|dans|au cours des|au cours de|ces|les|los|las|the) (?:les |ces |las |los |the )?"
    rf"(?P<count>\d{{1,6}}) (?:{_LAST})\s+{length_expression('none', 'kept')}"
    rf"|\b(?P<opens>since|seit|desde hace|depuis)\s+{ARTICLES}(?:about |etwa |unos |unas |environ )?(?:(?:{_LAST}) )?"
    rf"{length_expression('amount', 'units')}(?! ago)"
)
_PLAIN_LAST: Final = expression(r"\b(?:last|past|letzte|ultima|derniere) (?!night)")
_UNREAD: Final = expression(
    rf"\b(?:{_LAST})(?: \w+){{0,2}} (?:hours?|minutes?|days?|weeks?|fortnight|while|stunden?|minuten?|tagen?|horas?"
    r"|minutos?|dias|heures?|jours)\b"
    r"|\b(?:between|zwischen|entre) \d{1,2} (?:and|und|y|et) \d{1,2}"
    r"(?=\s*(?:[?!.,]|$|in |im |on |for |of |en |dans |hat |was ))"
)
_HALF_READ: Final = expression(
    r"\b(?:between|zwischen|entre) \d{1,2} (?:and|und|y|et) \d{1,2} "
    r"(?:this|last|tonight|in the|o'clock|uhr|heute|diese)\b"
    r"|\b(?:quarter|half) (?:past|to) \d{1,2}\b"
    r"|\b(?:evening|week) before last\b|\bvorletzte[rn]? woche\b"
)
"""Times of which only a part can be read."""
_HALF_RANGE: Final = expression(
    r"\b(?:between|zwischen|entre)\b[^.?!]{1,40}?\b(?:and|und|y|et)\b (?:the |las |los )?\d{1,2}:\d\d"
)
_BETWEEN: Final = expression(
    r"\b(?:between|from|zwischen|von|vom|ab|entre|desde|del?|du|des|since|seit|depuis)\s+"
    r"(?:the |dem |el |la |las |le |les |l')*$"
)
_JOINED: Final = expression(r"\s*(?:and|to|und|bis|y|et|a|al|au|hasta|jusqu'a|jusqu'au|until|till|through|-|\u2013)\s+"
    r"(?:the |zum |dem |el |la |las |le |les |l'|um |at )*$|\s*[-\u2013]\s*$")  # fmt: skip
_UP_TO: Final = expression(r"\s*(?:to|bis|al|a|au|hasta|jusqu'a|jusqu'au|until|till|through|-|\u2013)\b|\s*[-\u2013]")
_BEFORE_POINT: Final = (
    r"(?:the |dem |den |der |el |la |las |los |le |les |l'|du |de |del |um |on |am |at |around |about |gegen |vers "
    r"|last |this |letzten |letztem |este |ce |early |late |fruh )*$"
)
_SINCE_WORDS: Final = (
    r"compared (?:to|with)|gegenuber|im vergleich zu|comparado con|par rapport a|since|seit|seitdem|desde|depuis|after"
    r"|nach|despues|apres|from|ab|starting|as of|partir|des le"
)


def _before_point(words: str) -> re.Pattern[str]:
    return expression(rf"\b(?:{words})\s*{_BEFORE_POINT}")


_LIKE: Final = _before_point(
    r"as|(?<!look )(?<!looked )like|than|unlike|versus|vs|wie|als|como|comme"
    r"|(?:as|than|like|unlike) (?:it was|they were)"
    r"|(?:igual|mism[oa]s?|mejor|peor|mas|menos|meme|mieux|pire|plus|moins) qu[e']?"
)
"""Words before a time with which the present is only compared: "the traffic is the same as yesterday"."""
_REACHES: Final[tuple[tuple[Reach, re.Pattern[str]], ...]] = (
    ("since", _before_point(_SINCE_WORDS)),
    ("until", _before_point(r"until|till|up to|bis|hasta|jusqu'a|jusqu'au|jusqu'aux")),
    ("before", _before_point(r"before|prior to|vor|antes|avant|earlier than")),
    ("since", expression(r"\b(?:since|seit(?:dem)?|desde|depuis)\s+(?:[^\s,.;:!?()]+\s+){1,8}$")),
)
"""How words before a point bound the period. The last one is an event: "since the release half an hour ago"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of time in a question.

    `first` and `last` are its ends. Without `last`, the period is the time of `first` itself, or it reaches from
    `first` to now (`since`, and `within` for "the last two hours"), or from the beginning to `first`. `text` is the
    part of the question.
    """

    text: str
    first: Point
    last: Point | None = None
    reach: Reach = "during"

    @classmethod
    def lately(cls, seconds: float, text: str) -> Period:
        """Return the last `seconds`."""
        return cls(text=text, first=Point(ago=seconds), reach="within")

    @property
    def opens(self) -> bool:
        """Whether what the question is about began with the period: "broken since Friday"."""
        return self.reach == "since"

    @property
    def length(self) -> float:
        """The length of a period such as "the last hour", or 0."""
        return self.first.ago or 0.0 if self.reach in ("since", "within") else 0.0

    def bounds(self, now: float, near: float = _HALF_HOUR) -> tuple[float, float]:
        """Return the first and the last moment in seconds since the epoch. One time of day means times `near` it."""
        if self.last is not None:
            start, end = _pair(self.first, self.last, now)
        elif self.reach == "during":
            start, end = self.first.during(now, near)
        else:
            start, end = self.first.interval(now)
            before = start if self.reach == "before" else end
            start, end = (self._opening(now), before) if self.reach in ("before", "until") else (start, now)
        return start, min(end, now)

    def _opening(self, now: float) -> float:
        """Return when a period without a beginning begins: "before 4:30 today" is a part of today."""
        midnight = now - now % DAY_SECONDS
        return midnight if self.first.day and self.first.clock and self.first.interval(now)[0] >= midnight else 0.0


def _pair(first: Point, last: Point, now: float) -> tuple[float, float]:
    """Return the time between two points. A day that only one of them has is the day of both."""
    day = first.day or last.day
    zone = first.zone if first.zone is not None else last.zone
    first, last = replace(first, zone=zone), replace(last, zone=last.zone if last.zone is not None else zone)
    one = first if first.day or first.ago is not None else replace(first, day=day)
    other = last if last.day or last.ago is not None else replace(last, day=day)
    start, end = one.interval(now)[0], other.interval(now)[1]
    if day is None and other.ago is None and one.ago is None:
        end = one.with_clock(now, other)
    return start, end + (DAY_SECONDS if end < start else 0.0)


def period_of(text: str) -> Period | None:
    """Return the period that a folded question names, or None."""
    return _within(text) or _of_points(
        text, [each for each in points_in(text) if not _LIKE.search(text, 0, each.start)]
    )


def _within(text: str) -> Period | None:
    match = _WITHIN.search(text)
    if match is None or text[match.end() :].lstrip().startswith(("ago", "old")):
        return None
    number, unit = next(
        (match[number], match[unit])
        for number, unit in (("number", "unit"), ("count", "kept"), ("amount", "units"))
        if match[unit]
    )
    seconds = seconds_of(number or "", unit)
    calendar = not number and unit[0] in "wsmaj" and _PLAIN_LAST.match(match[0]) and seconds > 86_400
    if calendar:
        return None
    return Period(text=match[0], first=Point(ago=seconds), reach="since" if match["opens"] else "within")


def _of_points(text: str, found: Sequence[Sighted]) -> Period | None:
    if not found:
        return None
    for first, last in pairwise(found):
        opening, gap = _BETWEEN.search(text, 0, first.start), text[first.end : last.start]
        if _JOINED.fullmatch(gap) and (opening or _UP_TO.match(gap)):
            written = text[opening.start() if opening else first.start : last.end]
            return _on_day(Period(text=written, first=first.point, last=last.point), text, found)
    first = found[0]
    reach, start = _reach(text, first)
    return _on_day(Period(text=text[start : first.end], first=first.point, reach=reach), text, found)


def _reach(text: str, first: Sighted) -> tuple[Reach, int]:
    """Return how the words before a point bound the period, and where they begin."""
    for reach, pattern in _REACHES:
        match = pattern.search(text, 0, first.start)
        if match is not None and not (reach == "before" and first.point.ago is not None):
            ofday = match[0].startswith("from") and first.point.clock is None and first.point.day is not None
            on = text[first.end :].lstrip().startswith("on")  # "the run from yesterday", but "from Monday on"
            return ("during" if ofday and not on else reach), match.start()
    return "during", first.start


def _on_day(period: Period, text: str, found: Sequence[Sighted]) -> Period:
    """Add the day that is elsewhere in the sentence: "yesterday … between 3 and 4 pm"."""
    points = (period.first, period.last or period.first)
    if any(each.day or each.ago is not None for each in points):
        clock = next((each for each in found[1:] if each.point.clock and not each.point.day), None)
        if period.last is not None or period.first.clock or period.first.ago is not None or clock is None:
            return period
        reach, start = _reach(text, clock)
        first = replace(period.first, clock=clock.point.clock, zone=clock.point.zone)
        return replace(period, text=f"{period.text} {text[start : clock.end]}", first=first, reach=reach)
    day = next((each for each in found if each.point.day and not each.point.clock), None)
    if day is None:
        return period
    written = f"{text[day.start : day.end]} {period.text}"
    return replace(period, text=written, first=replace(period.first, day=day.point.day))


def unread_time(text: str) -> str:
    """Return a phrase that names a time which cannot be read: "last fortnight" without a period, or "berlin time"."""
    zone = unknown_zone(text)
    if zone:
        return zone
    period = period_of(text)
    left = _UNREAD if period is None else _HALF_RANGE
    match = _HALF_READ.search(text) or (left.search(text) if period is None or period.last is None else None)
    return match[0] if match is not None else ""
