"""Times of day as people say them, as times that are written: "quarter to four" becomes "3:45", "halb vier" "3:30"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re

_NUMBERS: Final = (
    ("one", "eins?", "una", "une"),
    ("two", "zwei", "dos", "deux"),
    ("three", "drei", "tres", "trois"),
    ("four", "vier", "cuatro", "quatre"),
    ("five", r"f(?:\u00fc|u)nf", "cinco", "cinq"),
    ("six", "sechs", "seis", "six"),
    ("seven", "sieben", "siete", "sept"),
    ("eight", "acht", "ocho", "huit"),
    ("nine", "neun", "nueve", "neuf"),
    ("ten", "zehn", "diez", "dix"),
    ("eleven", "elf", "once", "onze"),
    ("twelve", r"zw(?:\u00f6|o)lf", "doce", "douze"),
)
"""The numbers of a clock in English, German, Spanish and French."""
_TWENTY: Final = "twenty|zwanzig"
_HOURS: Final = tuple(expression(rf"(?i)(?:{'|'.join(each)})") for each in _NUMBERS)
_NAMES: Final = "|".join(name for each in _NUMBERS for name in each)
_HOUR: Final = rf"(?P<hour>\d{{1,2}}|{_NAMES})(?: ?h| uhr| heures?| o'?clock)?"
_AMOUNT: Final = (
    rf"(?P<amount>quarter|viertel|half|(?:\d{{1,2}}|{_NAMES}|{_TWENTY})(?= (?:minute[sn]?|past|nach) )(?! nach \d)"
    r")(?: minute[sn]?)?"
)
"""Without its unit, a number is one of minutes only before `past` or `nach`: "from three to four" is a range."""
_END: Final = r"(?![\w.:/%-]*\w)"
_BEFORE: Final = expression(
    rf"(?i)\b(?:(?P<half>halb|dreiviertel)|(?:a )?{_AMOUNT} (?P<way>past|to|vor|nach)) {_HOUR}{_END}"
)
_AFTER: Final = expression(
    rf"(?i)\b{_HOUR} (?P<way>y media|y cuarto|menos cuarto|et demie?|et quart|moins le quart){_END}"
)
_FROM: Final = expression(
    r"(?i)\b(?P<from>between|from|zwischen|von|ab|entre|desde|de) (?P<hour>[01]?\d|2[0-4]) "
    r"(?P<to>and|to|und|bis|y|a|et)(?P<last> (?:las |los )?\d{1,2}:\d\d\b)"
)
"""A bare hour with which a range begins: "between 3 and 3:45"."""
_STEP: Final = 5
"""People round spoken minutes to this number."""
_MINUTES: Final = {"quarter": 15, "viertel": 15, "half": 30, "twenty": 20, "zwanzig": 20}
_OFFSETS: Final = {
    "halb": -30, "dreiviertel": -15, "y media": 30, "y cuarto": 15, "menos cuarto": -15, "et demi": 30, "et demie": 30,
    "et quart": 15, "moins le quart": -15,
}  # fmt: skip
_LATEST: Final = 24
_HOUR_MINUTES: Final = 60


def with_written_times(text: str) -> str:
    """Return the text with each spoken time of day as hours and minutes."""
    written = _AFTER.sub(_written, _BEFORE.sub(_written, text))
    return _FROM.sub(r"\g<from> \g<hour>:00 \g<to>\g<last>", written)


def _written(match: re.Match[str]) -> str:
    said = match.groupdict()
    hour, way = _number(said["hour"]), (said.get("half") or said["way"] or "").lower()
    if way in _OFFSETS:
        offset = _OFFSETS[way]
    else:
        amount = said["amount"].lower()
        offset = (_MINUTES.get(amount) or _number(amount)) * (1 if way in ("past", "nach") else -1)
        if way == "to" and amount == "half":
            return match[0]
    if not 0 < hour <= _LATEST or offset % _STEP or abs(offset) >= _HOUR_MINUTES:
        return match[0]
    minutes = hour * _HOUR_MINUTES + offset
    return f"{minutes // _HOUR_MINUTES % _LATEST}:{minutes % _HOUR_MINUTES:02}"


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    return next((number for number, each in enumerate(_HOURS, start=1) if each.fullmatch(word)), 0)
