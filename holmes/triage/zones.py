"""Reads the time zone behind a time in a question: "04:40 CET", "05:40+01:00". Only fixed offsets are known.

A zone whose offset depends on the day or on the country, such as "Berlin time", is not guessed.
"""

from __future__ import annotations

from typing import Final

from holmes.triage.vocabulary import language_of, words_of
from holmes.values.expressions import expression

_HOUR_SECONDS: Final = 3_600.0
_HOURS: Final = {
    "utc": 0, "gmt": 0, "z": 0, "zulu": 0, "wet": 0, "cet": 1, "mez": 1, "cest": 2, "mesz": 2, "eet": 2, "eest": 3,
    "msk": 3, "jst": 9, "aest": 10, "est": -5, "edt": -4, "cdt": -5, "mdt": -6, "pst": -8, "pdt": -7,
}  # fmt: skip
_NAMES: Final = "|".join(sorted(_HOURS, key=len, reverse=True))
_ZONE: Final = expression(
    rf"\s?(?:(?P<of>utc|gmt)\s?)?(?P<sign>[+-])(?P<hours>\d{{1,2}})(?::?(?P<minutes>\d\d))?(?![\d:])"
    rf"|\s?\(?(?P<name>{_NAMES})\b\)?(?! ?[+-]\d)"
)
_UNKNOWN: Final = expression(
    r"(?:\d[:h]\d\d(?::\d\d)?|\d ?(?:am|pm|uhr|o'clock)) \(?(?P<zone>(?:in )?\w+(?: \w+)? (?:time|ortszeit|zeit)"
    r"|ortszeit|hora (?:de|local)(?: \w+)?|heure (?:de|locale)(?: \w+)?"
    r"|(?:europe|america|asia|africa|australia|pacific|etc)/\w+"
    r"|bst|cst|mst|hst|akst|akdt|nst|sast|hkt|sgt|aedt|nzst|nzdt|kst|et|pt|ct)\b(?! ?\d)"
)
_PLAIN: Final = frozenset({
    "this", "that", "the", "same", "of", "at", "last", "first", "any", "one", "a", "what", "no", "every", "each",
    "server", "cluster", "response", "run", "wait", "some", "utc", "gmt", "zulu", "for", "long",
})  # fmt: skip
_FRENCH_OR_SPANISH: Final = frozenset({"fr", "es"})


def zone_after(text: str, end: int, *, dated: bool) -> tuple[int, float]:
    """Return where the zone behind a time ends, and its offset in seconds. Without a zone, times are in UTC.

    A minus behind a time without a date begins a span: "04:10-04:40".
    """
    match = _ZONE.match(text, end)
    if match is None or (match["name"] == "est" and language_of(words_of(text)) in _FRENCH_OR_SPANISH):
        return end, 0.0
    if match["name"]:
        return match.end(), _HOURS[match["name"]] * _HOUR_SECONDS
    if not (match["of"] or dated or (match["sign"] == "+" and text[end : end + 1] == "+")):
        return end, 0.0
    seconds = (int(match["hours"]) + int(match["minutes"] or 0) / 60) * _HOUR_SECONDS
    return match.end(), -seconds if match["sign"] == "-" else seconds


def unknown_zone(text: str) -> str:
    """Return the zone of a time in a folded question whose offset is not known, for example "berlin time"."""
    for match in _UNKNOWN.finditer(text):
        zone = match["zone"]
        if _PLAIN.isdisjoint(words_of(zone)) and not (zone == "et" and language_of(words_of(text)) == "fr"):
            return zone
    return ""
