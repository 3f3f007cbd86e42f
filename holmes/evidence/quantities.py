"""Parses numbers with units into a comparable form: `512Mi` equals `0.5 GiB`, `72h` equals `3 days`.

Values are exact. An ambiguous quantity such as `10m` keeps all its possible values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from holmes.values.expressions import expression

Dimension: TypeAlias = Literal["count", "memory", "cpu", "time", "percent", "ratio", "clock", "moment"]

_UNITS: Final[dict[str, tuple[tuple[Dimension, Fraction], ...]]] = {}


def _unit(dimension: Dimension, factor: Fraction | int, names: str) -> None:
    for name in names.split():
        _UNITS[name] = (*_UNITS.get(name, ()), (dimension, Fraction(factor)))


for _power, _letter in enumerate("KMGTP", 1):
    _unit("memory", 1024**_power, f"{_letter}i {_letter}iB")
    _unit("memory", 1000**_power, f"{_letter} {_letter}B")
    _unit("memory", 1024**_power, f"{_letter}io")
    _unit("memory", 1000**_power, f"{_letter}o")
_unit("memory", 1000, "k kB")
_unit("memory", 1, "B byte bytes Byte Bytes octet octets")
_unit("cpu", Fraction(1, 1000), "m millicores millicore mCPU milliCPU")
_unit("cpu", 1, "CPU CPUs cpu cpus cores core vCPU Kerne Kern cœurs núcleos")
_unit("percent", 1, "% percent Prozent")
_unit("time", Fraction(1, 1_000_000), "us µs")
_unit("time", Fraction(1, 1000), "ms milliseconds millisecond Millisekunden Millisekunde millisecondes milisegundos")
_unit("time", 1, "s sec secs second seconds Sekunde Sekunden seconde secondes segundo segundos")
_unit("time", 60, "m min mins minute minutes Minute Minuten minuto minutos")
_unit("time", 3_600, "h hr hrs hour hours Stunde Stunden heure heures hora horas")
_unit("time", 86_400, "d day days Tag Tage Tagen jour jours día días")
_unit("time", 604_800, "w week weeks Woche Wochen semaine semaines semana semanas")
_unit("time", 31_536_000, "y year years Jahr Jahre Jahren")

_UNIT_PATTERN: Final = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_NUMBER = r"\d{1,18}(?:[.,]\d{1,9}){0,4}"
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero", "feb february februar février febrero", "mar march märz mars marzo",
            "apr april avril abril", "may mai mayo", "jun june juni juin junio", "jul july juli juillet julio",
            "aug august août agosto", "sep september septembre septiembre", "oct october oktober octobre octubre okt",
            "nov november novembre noviembre", "dec december dezember décembre diciembre dez",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_SPOKEN = (
    rf"(?:[A-Z][a-z]{{2}}, )?(?P<day>\d{{1,2}})\.?(?: de)? (?P<month>(?i:{_MONTH}))\.?(?: de)? (?P<year>\d{{4}})"
    r"(?: (?P<hour>\d\d:\d\d(?::\d\d)?)(?: (?P<zone>[+-]\d{4}|UTC|GMT))?)?"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?Z?(?!\d|:\d)"
QUANTITY: Final = expression(
    rf"(?P<moment>{_MOMENT})|(?P<spoken>{_SPOKEN})|(?P<date>\d{{4}}-\d\d-\d\d)(?![\w-])|(?P<clock>(?<![\d:]){_CLOCK})"
    r"|(?P<ratio>(?<![\w./])\d{1,9}/\d{1,9})(?![\w/%])"
    r"|(?P<compound>(?<![\w.-])(?:\d{1,6}(?:ms|[ywdhms])){2,6})(?![\w-])"
    rf"|(?<![\w.-])(?<!\w[:/])(?<!^/)(?P<number>{_NUMBER})"
    rf"(?:(?![ \u00a0][yw]\b)[ \u00a0]?(?P<unit>{_UNIT_PATTERN})(?!\w))?"
    r"(?!\w|:\S|/\d|[.-]\w)"
)
_COMPOUND_PART = expression(r"(\d{1,6})(ms|[ywdhms])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A written number with all its possible values. It has no values if the text is not a number."""

    text: str
    meanings: frozenset[tuple[Dimension, Fraction | str]]

    @property
    def dimensions(self) -> frozenset[Dimension]:
        return frozenset(dimension for dimension, _ in self.meanings)

    @property
    def is_time(self) -> bool:
        return bool(self.dimensions & {"clock", "moment"})

    def measured(self, dimension: Dimension) -> Quantity:
        """Return the quantity. If it is a plain number, its dimension becomes `dimension`."""
        taken = {(dimension, value) if each == "count" else (each, value) for each, value in self.meanings}
        return replace(self, meanings=frozenset(taken))

    def equals(self, other: Quantity) -> bool:
        """Return whether both quantities can be equal. A time of day equals a moment with that time."""
        if self.meanings & other.meanings:
            return True
        clocks = [str(value) for dimension, value in self.meanings if dimension in ("clock", "moment")]
        moments = [str(value) for dimension, value in other.meanings if dimension in ("moment", "clock")]
        return any(_same_time(clock, moment) for clock in clocks for moment in moments)

    def number(self, dimension: Dimension | None = None) -> Fraction | None:
        """Return the only value, or None if the quantity has no value or several values.

        If `dimension` is given, only values in this dimension are considered.
        """
        values = {value for each, value in self.meanings if isinstance(value, Fraction) and dimension in (None, each)}
        return next(iter(values)) if len(values) == 1 else None


def quantities_in(text: str) -> tuple[Quantity, ...]:
    """Find every quantity in `text`, in order."""
    return tuple(quantity_of(match) for match in QUANTITY.finditer(text))


def quantity_of(match: re.Match[str]) -> Quantity:
    """Convert a match of `QUANTITY` into a quantity."""
    meanings: set[tuple[Dimension, Fraction | str]] = set()
    if match["spoken"]:
        meanings.add(("moment", _spoken_moment(match)))
    elif match["moment"] or match["date"]:
        meanings.add(("moment", _moment(match[0])))
    elif match["clock"]:
        meanings.add(("clock", match[0].rstrip("Z")))
    elif match["ratio"]:
        meanings.add(("ratio", match[0]))
    elif match["compound"]:
        factors = {name: _UNITS["m" if name == "m" else name][-1][1] for name in ("y", "w", "d", "h", "m", "s", "ms")}
        total = sum((int(part[1]) * factors[part[2]] for part in _COMPOUND_PART.finditer(match[0])), Fraction(0))
        meanings.add(("time", total))
    else:
        number = _fraction(match["number"])
        units = _UNITS.get(match["unit"] or "", (("count", Fraction(1)),))
        if number is not None:
            meanings = {(dimension, number * factor) for dimension, factor in units}
        else:
            meanings.add(("count", match[0]))
    return Quantity(text=match[0].strip(), meanings=frozenset(meanings))


def count_of(number: int) -> Quantity:
    return Quantity(text=str(number), meanings=frozenset({("count", Fraction(number))}))


def seconds_of(seconds: Fraction) -> Quantity:
    return Quantity(text=f"{seconds} s", meanings=frozenset({("time", seconds)}))


def share_of(part: Quantity, whole: Quantity) -> Quantity:
    """Return the ratio `1/3` for `1 of 3`."""
    ratio = f"{part.number('count')}/{whole.number('count')}"
    return Quantity(text=ratio, meanings=frozenset({("ratio", ratio)}))


def seconds_between(first: Quantity, second: Quantity) -> Fraction | None:
    """Return the seconds between two moments or between two times on the same day, or None for other quantities."""
    moments = [_parsed(str(value)) for each in (first, second) for kind, value in each.meanings if kind == "moment"]
    if not moments and first.is_time and second.is_time:
        moments = [_parsed(f"2000-01-01T{value:0>8}") for each in (first, second) for _, value in each.meanings]
    if len(moments) != 2 or moments[0] is None or moments[1] is None:
        return None
    difference = moments[1] - moments[0]
    return abs(Fraction(difference.days * 86_400 + difference.seconds) + Fraction(difference.microseconds, 1_000_000))


def _fraction(text: str) -> Fraction | None:
    """Parse `1.5`, `1,5`, `5,000` or `1,234,567`. Returns None for a version number."""
    parts = re.split(r"[.,]", text)
    if len(parts) == 1:
        return Fraction(text)
    if "." not in text and all(len(part) == 3 for part in parts[1:]):
        return Fraction("".join(parts))
    if len(parts) == 2:
        return Fraction(f"{parts[0]}.{parts[1]}")
    return None


def _moment(text: str) -> str:
    return text.replace(" ", "T", 1).replace(",", ".").removesuffix("Z").removesuffix("+00:00")


def _spoken_moment(match: re.Match[str]) -> str:
    """Convert `Tue, 06 May 2025 09:41:07 +0200` or `6 May 2025` to the ISO 8601 format."""
    day = f"{match['year']}-{_MONTHS[match['month'].casefold()]:02}-{int(match['day']):02}"
    zone = (match["zone"] or "").removeprefix("UTC").removeprefix("GMT").removeprefix("+0000")
    return f"{day}T{match['hour']}{zone}" if match["hour"] else day


def _parsed(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _same_time(claimed: str, written: str) -> bool:
    """Return whether `claimed` is the beginning of `written`. `claimed` may omit the day, seconds or fractions."""
    if "T" not in claimed and ":" in claimed:
        written = written.partition("T")[2] or written
        claimed = claimed if len(claimed.split(":", maxsplit=1)[0]) == 2 else f"0{claimed}"
    starts = (f"{claimed}:", f"{claimed}.", f"{claimed}T", f"{claimed}+", f"{claimed}-")
    return written == claimed or (written.startswith(starts) and claimed.count("-") != 1)
