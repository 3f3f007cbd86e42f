"""Finds the numbers in log lines, and computes statistics of the number that a question names."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.vocabulary import beginnings
from holmes.values.durations import UNIT_SECONDS
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.triage.log_lines import LogLine
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

Statistic: TypeAlias = Literal["percentile", "average", "sum", "maximum", "minimum"]
STATISTICS: Final[tuple[Statistic, ...]] = ("percentile", "average", "sum", "maximum", "minimum")
_LINE_CHARACTERS: Final = 2_000
_MOST_UNIT_SECONDS: Final = 60.0
"""Keys of logs are not counted in longer units: `tag` and `day` have another meaning there."""
_UNITS: Final = r"(?P<unit>ms|us|µs|ns|s|seconds|sec|minutes|m|h|%|[kKMG]i?B|B|bytes|rows|items|records)?(?![\w.:=-])"
_PAIR: Final = expression(
    rf"(?P<key>[A-Za-z_][\w.-]{{0,60}}?)[\"']?\s?[=:]\s?[\"']?(?P<number>-?\d+(?:\.\d+)?)\s?{_UNITS}"
)
_PHRASE: Final = expression(
    r"(?P<key>[A-Za-z][\w-]{2,40})(?: (?:took|in|after|of|was|is|lasted|finished|completed|done|rows|at)){1,3} "
    rf"(?P<number>\d+(?:\.\d+)?)\s?{_UNITS}"
)
_COUNTED: Final = expression(
    r"(?<![\w.:-])(?P<number>\d+(?:\.\d+)?)(?P<unit>) (?P<key>[a-z]{3,30}(?: [a-z]{2,20}){0,2})(?![\w=:])"
)
_CHAIN: Final = expression(
    r"(?<![\w.:=/-])(?P<key>[a-z][a-z_]{2,30}) (?P<number>\d+(?:\.\d+)?)(?P<unit>)(?=(?: [a-z][a-z_]{2,30})? |$)"
)
"""A number after its noun, where the next noun has its own: "batch 4100 mixed 24 kg"."""
_FREE: Final = expression(r"(?<![\w.:=/-])\d+(?:\.\d+)? ?$")
_NOUN: Final = expression(r" [a-z]{4,30}(?![\w=:])(?! \d)")
_PLURAL: Final = expression(r" [a-z]{3,30}s\b")
_MEASURE: Final = expression(
    r"(?i)(?<![\w.:=/-])(?P<number>\d+(?:\.\d+)?) ?(?P<key>kg|km|cm|mm|kwh|kw|mwh|eur|usd|gbp|chf|percent|degrees?)\b"
)
_DURATION: Final = expression(r"(?<![\w.=:/-])(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|us|µs|s)(?![\w.-])")
_ACCESS: Final = expression(
    r"\" (?P<status>[1-5]\d\d) (?P<bytes>\d+)(?: \"[^\"]*\" \"[^\"]*\"(?: \d+ (?P<time>\d+\.\d+))?)?"
)
"""An access log with the bytes of the response, and the time of the request in seconds as ingress-nginx writes it."""
_LEAST_NUMBERED: Final = 5
_SAME_START: Final = 4
_PARTS: Final = expression(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CLOCKS: Final = frozenset({"time", "ts", "timestamp", "pid", "level", "tid", "thread"})
_IDENTIFIER: Final = expression(r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b[a-z_]\w*=(?!\w)")
_IN_TIME: Final = expression(r"\bin (?:ms|milliseconds|millis|seconds|secs?|sekunden|segundos|secondes)\b")
_OF_TIME: Final = expression(
    r"\b(?:average|mean|median|total|sum|maximum|minimum|max|min|most|fewest)(?: of| number of)?(?: the)? "
    r"(?:seconds|secs|milliseconds|ms)\b"
)
_SIZED: Final = expression(
    r"\b(?:biggest|largest|longest|smallest|slowest|fastest)\b"
    r"|\bhow many (?:[kmgt]i?b|bytes?|ms|milliseconds|seconds|minutes)\b"
)
_LOG_OF_SERVER: Final = expression(r"\b(?:db|database|datenbank|cache|queue|broker) logs?\b")
_LAST_RUN: Final = expression(
    r"\b(?:last|latest|previous|letzte[nrm]?|ultim[oa]|dernier) (?:\w+ )?(?:run|lauf|ejecucion)\b"
)
_PERCENTILE: Final = expression(
    r"\bp(\d{2}(?:\.\d)?)\b|\b(\d{2})(?:th|st|\.|e|eme|o)?[ -]?(?:percentile|perzentil|percentil|centile)"
    r"|\b(?:percentile|perzentil|percentil|centile) (\d{2})\b"
)
_TIMED_KEY: Final = expression(
    r"(?i)(?:^|[_. -])(?:took|rt|millis|ms|secs?|seconds|response|dauer)(?:$|[_. -])|duration|latency|time|elapsed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The numbers with one key in lines. `unit` is empty if the lines state none."""

    key: str
    unit: str
    values: tuple[float, ...]
    lines: tuple[LogLine, ...]

    @property
    def is_time(self) -> bool:
        """Whether the numbers are durations."""
        return milliseconds_of(self.unit) is not None or (not self.unit and _TIMED_KEY.search(self.key) is not None)

    @property
    def is_numbering(self) -> bool:
        """Whether the numbers only grow from line to line, as those of records or a counter do."""
        by_pod: dict[str, list[float]] = defaultdict(list)
        for line, number in zip(self.lines, self.values, strict=True):
            by_pod[line.pod].append(number)
        grow = all(all(one < other for one, other in pairwise(each)) for each in by_pod.values())
        return grow and len(self.values) >= _LEAST_NUMBERED

    @property
    def milliseconds(self) -> float | None:
        """The unit of the numbers in milliseconds, by itself or by the key, or None if neither tells it."""
        parts = (self.unit, *(part.lower() for part in reversed(_PARTS.findall(self.key))))
        return next((size for part in parts if part and (size := milliseconds_of(part)) is not None), None)


def milliseconds_of(unit: str) -> float | None:
    """Return the length of a unit of time, or None for anything else: `2 s`, `elapsed_millis`."""
    seconds = UNIT_SECONDS.get(unit, 0.0) if len(unit) > 1 or unit == "s" else 0.0  # `5 m` can be a length
    return seconds * 1_000 if 0 < seconds <= _MOST_UNIT_SECONDS else None


def statistic_of(question: Question, subject: Subject) -> Statistic | None:
    """Return the statistic that a question asks for, or None."""
    return next(iter(statistics_of(question, subject)), None)


def measures_left(question: Question, subject: Subject, runs: int) -> tuple[str, ...]:
    """Return the parts of a question that no number of lines can have: "biggest", "how many MB", "the db log".

    `runs` is the number of pods that wrote the lines. Those of several runs are not told apart.
    """
    sized = _SIZED.search(question.text) if statistic_of(question, subject) is None else None
    whose = _LOG_OF_SERVER.search(question.text) if not subject.named else None
    run = _LAST_RUN.search(question.text) if question.asks("count") and runs > 1 else None
    return tuple(match[0] for match in (sized, whose, run) if match is not None)


def statistics_of(question: Question, subject: Subject) -> tuple[Statistic, ...]:
    """Return the statistics that a question asks for. In Spanish, `media` is also a half, or a namespace."""
    if _PERCENTILE.search(question.text):
        return ("percentile",)
    period = question.period.text.split() if question.period is not None else ()
    names = {*subject.namespaces, *(each.name for each in subject.objects), *period}
    said = {each.name for each in question.found if each.sense == "concept" and question.words[each.first] not in names}
    return tuple(each for each in STATISTICS if each in said)


def series_of(lines: Iterable[LogLine]) -> tuple[Series, ...]:
    """Return the numbers in lines by key. The same key with several units of time is in milliseconds."""
    found: dict[str, list[tuple[str, float, LogLine]]] = defaultdict(list)
    for line in lines:
        for key, unit, number in dict.fromkeys(_numbers(line.text[:_LINE_CHARACTERS])):
            found[key].append((unit, number, line))
    return tuple(series for key, entries in found.items() for series in _by_unit(key, entries))


def _numbers(text: str) -> Iterator[tuple[str, str, float]]:
    named: set[int] = set()
    chained = _chained(text)
    for form in (_PAIR, _PHRASE, _COUNTED):
        for match in form.finditer(text):
            if form is _COUNTED and match.start("number") in chained:
                continue
            named.add(match.start("number"))
            yield match["key"], match["unit"] or "", float(match["number"])
    for match in (*chained.values(), *_MEASURE.finditer(text)):
        yield match["key"].lower(), "", float(match["number"])
    for match in _DURATION.finditer(text):
        if match.start("number") not in named or match["unit"]:
            yield "duration", match["unit"], float(match["number"])
    access = _ACCESS.search(text)
    if access is not None:
        yield "bytes", "", float(access["bytes"])
        if access["time"]:
            yield "request time", "s", float(access["time"])


def _chained(text: str) -> dict[int, re.Match[str]]:
    """Return the numbers after their nouns by position: in "deck 2 temperature 230", the 2 is of the deck.

    A number before the first noun, or a noun after the last number, shows that the numbers are before their nouns: "10
    orders 2 failed", "12 active 3 idle 4 waiting".
    """
    found = [*_CHAIN.finditer(text)]
    ends = any(_PLURAL.match(text, each.end("number")) for each in found)
    if not found or ends or _FREE.search(text, 0, found[0].start()) or _NOUN.match(text, found[-1].end("number")):
        return {}
    linked = [pair for pair in pairwise(found) if pair[0].end("number") + 1 == pair[1].start("key")]
    return {each.start("number"): each for pair in linked for each in pair}


def _by_unit(key: str, entries: Sequence[tuple[str, float, LogLine]]) -> Iterator[Series]:
    units = {unit for unit, _, _ in entries}
    sizes = {unit: milliseconds for unit in units if (milliseconds := milliseconds_of(unit)) is not None}
    if len(units) > 1 and units == sizes.keys():
        entries = [("ms", number * sizes[unit], line) for unit, number, line in entries]
        units = {"ms"}
    for unit in units:
        own = [(number, line) for one, number, line in entries if one == unit]
        yield Series(
            key=key, unit=unit, values=tuple(number for number, _ in own), lines=tuple(line for _, line in own)
        )


def chosen_series(question: Question, found: Sequence[Series]) -> Series | None:
    """Return the numbers that the words of a question name, or None.

    A key that the question spells out must exist: another key is never an answer about it, unless both are durations.
    """
    words = {
        part.removesuffix("s") for word in (*question.words, *question.quoted) for part in _PARTS.findall(word.lower())
    }
    if _IN_TIME.search(question.text) or _OF_TIME.search(question.text):
        found = [each for each in found if each.milliseconds is not None] or found
    spelled = {match[0].rstrip("=") for match in _IDENTIFIER.finditer(question.text)}
    named = [each for each in found if each.key.lower() in spelled]
    timed, sized = (
        beginnings("time measures").search(question.spoken),
        beginnings("size measures").search(question.spoken),
    )

    def score(each: Series) -> tuple[int, int, int, int]:
        parts = {part.lower().removesuffix("s") for part in _PARTS.findall(each.key)}
        told_apart = re.search(rf"\b{re.escape(each.key.lower())} \d", question.text) is not None  # "of deck 2"
        matched = (
            0 if told_apart or each.key.lower() in _CLOCKS else 2 * len(parts & words) + _cognates(parts - words, words)
        )
        measured = (timed is not None and each.is_time) or (sized is not None and each.key.endswith("bytes"))
        places = (question.text.find(part) for part in parts & words)  # "temperature of the decks"
        place = min((at for at in places if at >= 0), default=len(question.text))
        return (matched + int(measured), -place, len(each.values), -len(each.key))

    if spelled and not named and not any(_TIMED_KEY.search(each) for each in spelled):
        return None
    best = max(named or found, key=score, default=None)
    return best if best is not None and (named or score(best)[0]) else None


def names_key(question: Question, series: Series) -> bool:
    """Return whether words of the question are a part of the key."""
    words = {part.removesuffix("s") for word in question.words for part in _PARTS.findall(word)}
    return bool({part.lower().removesuffix("s") for part in _PARTS.findall(series.key)} & words)


def _cognates(parts: set[str], words: set[str]) -> int:
    """Return how many parts of a key begin like a word of another language: `object` and `objekte`."""
    return sum(
        any(part[:_SAME_START] == word[:_SAME_START] for word in words) for part in parts if len(part) > _SAME_START
    )


def wanted_key(question: Question) -> str:
    """Return how the question spells the number: a key such as `queue_depth`, or an empty string."""
    match = _IDENTIFIER.search(question.text)
    return match[0].rstrip("=") if match else ""


def results_of(question: Question, statistic: Statistic, values: Sequence[float]) -> list[tuple[float, str]]:
    """Return the results of a statistic with their names. A question can ask for several percentiles."""
    percents = [float(next(filter(None, match.groups()))) for match in _PERCENTILE.finditer(question.text)]
    if statistic == "percentile" and len(percents) > 1:
        return [(_percentile(sorted(values), percent), f"{percent:g}th percentile") for percent in percents]
    return [result_of(question, statistic, values)]


def _percentile(ordered: Sequence[float], percent: float) -> float:
    """Return one of the numbers: the nearest rank."""
    return ordered[int(max(0, -(-len(ordered) * percent // 100) - 1))]


def result_of(question: Question, statistic: Statistic, values: Sequence[float]) -> tuple[float, str]:
    """Return a statistic of numbers and its name. A percentile is one of the numbers (nearest rank)."""
    ordered = sorted(values)
    if statistic == "percentile":
        match = _PERCENTILE.search(question.text)
        percent = float(next(filter(None, match.groups()))) if match else 50.0
        if match is None:
            return statistics.median(ordered), "median"
        return _percentile(ordered, percent), f"{percent:g}th percentile"
    results: dict[Statistic, float] = {
        "average": statistics.fmean(values), "sum": sum(values), "maximum": ordered[-1], "minimum": ordered[0],
    }  # fmt: skip
    return results[statistic], statistic


def amount_text(number: float) -> str:
    """Return a number with at most two decimals."""
    if abs(number) < 1e5 and number == round(number, 2):
        return f"{number:g}"
    return f"{number:.2f}".rstrip("0").rstrip(".")
