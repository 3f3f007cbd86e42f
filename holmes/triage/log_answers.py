"""Answers questions about logs: their lines, how often something occurs, and statistics of a number in the lines."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment, written
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import MOST_ROWS, fact, place_of, table_of
from holmes.triage.log_troubles import workloads_of
from holmes.triage.markdown import counted
from holmes.values.errors import masked
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_state import LogKey
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_MINUTE: Final = 60.0
_LINE_CHARACTERS: Final = 2_000
_SHOWN_CHARACTERS: Final = 240
_PAIR: Final = re.compile(
    r"(?P<key>[A-Za-z_][\w.-]{0,60}?)[\"']?\s?[=:]\s?[\"']?(?P<number>-?\d+(?:\.\d+)?)\s?(?P<unit>ms|us|µs|ns|s|m|h|%|[kKMG]i?B|B)?(?![\w.:-])"
)
_UNITS: Final = r"(?P<unit>ms|us|µs|ns|s|seconds|minutes|%|[kKMG]i?B|B|rows|items|records)?(?![\w.:-])"
_PHRASE: Final = re.compile(
    r"(?P<key>[A-Za-z][\w-]{2,40})(?: (?:took|in|after|of|was|is|lasted|finished|completed|done|rows|at)){1,3} "
    rf"(?P<number>\d+(?:\.\d+)?)\s?{_UNITS}"
)
_COUNTED: Final = re.compile(
    r"(?<![\w.:-])(?P<number>\d+(?:\.\d+)?)(?P<unit>) (?P<key>[a-z]{3,30}(?: [a-z]{2,20}){0,2})"
)
_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_TROUBLE: Final = re.compile(r"(?i)\b(?:error|exception|fatal|panic|fail(?:ed|ure|s)?|critical|warn(?:ing)?|severe)\b")
_SEARCHED: Final = re.compile(
    r"\b(?:containing|contains?|contain|matching|match(?:es)?|mentioning|mentions?|mention|including|say|says"
    r"|with the (?:word|text|string)|enthalten|enthalt|contienen|contiene|contenant|contiennent)\s{1,3}"
    r"(?:the (?:word|text|string)\s{1,3})?[\"'`]?([\w.:/-]{2,80})"
)
_TIME_WORDS: Final = frozenset(
    {
        "time",
        "duration",
        "latency",
        "long",
        "zeit",
        "dauer",
        "dauert",
        "tiempo",
        "duracion",
        "temps",
        "duree",
        "slow",
        "slowest",
        "took",
        "takes",
        "take",
    }
)
_SHOWN_WORDS: Final = (
    "show list print display give count many when first last zeige liste wann muestra lista cuando montre affiche quand"
)
_SHOWN: Final = frozenset(_SHOWN_WORDS.split())
_PERCENTILE: Final = re.compile(r"\bp(\d{2})\b|\b(\d{2})(?:th|\.|e|eme)? (?:percentile|perzentil|percentil|centile)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a log. `at` is its time in seconds since the epoch, or 0 if the line has none."""

    pod: str
    text: str
    at: float = 0.0


def lines_of(asked: Asked) -> tuple[LogLine, ...]:
    """Return the lines of the subject's logs in the time span of the question, in order of time."""
    objects = [each for each in asked.subject.objects if each.kind != "Pod"]
    pods = {each.ref for each in asked.subject.objects if each.kind == "Pod"}
    pods |= {pod.ref for each in workloads_of(asked.state, objects) for pod in asked.state.pods_of(each) or (each,)}
    start, end = _span(asked)
    found = [
        line
        for key, log in sorted(asked.state.timed_logs.items(), key=lambda entry: (entry[0].pod, not entry[0].previous))
        if (
            key.pod in pods
            if asked.subject.named
            else not asked.subject.namespaces or key.pod.namespace in asked.subject.namespaces
        )
        for line in _lines(key, log)
        if not line.at or start <= line.at <= end
    ]
    return tuple(sorted(found, key=lambda line: line.at))


def _lines(key: LogKey, log: str) -> Iterator[LogLine]:
    at = 0.0
    for line in log.splitlines():
        match = LOG_TIME.match(line)
        at = (moment(match[1]) or at) if match else at
        if line.strip():
            yield LogLine(pod=str(key.pod), text=line[match.end() if match else 0 :], at=at)


def _span(asked: Asked) -> tuple[float, float]:
    """Return the time span of the question, by default all times."""
    period = asked.question.period
    return (0.0, asked.state.now) if period is None else period.bounds(asked.state.now, near=_MINUTE)


def log_answer(asked: Asked) -> FirstLook:
    """Answer a question about log lines: a statistic, a number of lines, or the lines."""
    found = lines_of(asked)
    if not found:
        return fact(asked, f"No log lines were read {place_of(asked)}.", None, "inconclusive")
    statistic = _statistic(asked)
    if statistic:
        return _number(asked, found, statistic)
    wanted = _wanted(asked, found)
    if wanted is _TROUBLE and _SHOWN.isdisjoint(asked.question.words):
        look = look_for_cause(asked)
        if look.verdict == "cause_found":
            return look
    shown = [line for line in found if wanted is None or wanted.search(line.text)]
    told = (
        f" that match `{wanted.pattern}`"
        if wanted is not None and wanted is not _TROUBLE
        else " with errors or warnings"
        if wanted
        else ""
    )
    span = f", {written(shown[0].at)} to {written(shown[-1].at)}" if shown and shown[0].at else ""
    summary = f"{counted(len(shown), 'log line')}{told} {place_of(asked)}{span}."
    several = len({line.pod for line in shown}) > 1
    last = shown[-MOST_ROWS:]
    rows = [
        ((line.pod,) if several else ())
        + (written(line.at) if line.at else "", shortened(masked(line.text), _SHOWN_CHARACTERS))
        for line in last
    ]
    table = table_of((("pod",) if several else ()) + ("time", "line"), rows)
    return fact(asked, summary, replace(table, total=len(shown)) if table is not None else None)


def _wanted(asked: Asked, found: Sequence[LogLine]) -> re.Pattern[str] | None:
    """Return what the lines must contain: the text after "containing", a quoted text, or an error."""
    match = _SEARCHED.search(asked.question.text)
    names = {each.name for each in asked.subject.named}
    quoted = next((text for text in asked.question.quoted if text.lower() not in names), "")
    text = match[1] if match else quoted
    if not text and asked.question.labels:
        text = str(asked.question.labels[0])
    if not text:
        text = next((word for word in asked.question.words if re.fullmatch(r"[1-5]\d\d", word)), "")
    if not text:
        text = next((word for word in asked.subject.unknown if any(word in line.text.lower() for line in found)), "")
    if text:
        return re.compile(re.escape(text), re.IGNORECASE)
    return _TROUBLE if asked.question.asks("trouble") else None


def _statistic(asked: Asked) -> str:
    for name in ("percentile", "average", "sum", "maximum", "minimum"):
        if asked.question.asks(name) or (name == "percentile" and _PERCENTILE.search(asked.question.text)):
            return name
    return ""


def _number(asked: Asked, found: Sequence[LogLine], statistic: str) -> FirstLook:
    """Return a statistic of the number that the question names."""
    numbers: dict[tuple[str, str], list[tuple[float, LogLine]]] = defaultdict(list)
    for line in found:
        text = line.text[:_LINE_CHARACTERS]
        for match in (*_PAIR.finditer(text), *_PHRASE.finditer(text), *_COUNTED.finditer(text)):
            numbers[match["key"], match["unit"] or ""].append((float(match["number"]), line))
    words = {
        part.removesuffix("s")
        for word in (*asked.question.words, *asked.question.quoted)
        for part in _PARTS.findall(word.lower())
    }
    scored = sorted(
        ((_score(key, unit, words), len(values), key, unit) for (key, unit), values in numbers.items()), reverse=True
    )
    if not scored or not scored[0][0]:
        keys = ", ".join(sorted({key for key, _ in numbers})[:10])
        hint = f" The lines contain these numbers: {keys}." if keys else ""
        return fact(
            asked, f"No number in the log lines {place_of(asked)} matches the question.{hint}", None, "inconclusive"
        )
    key, unit = scored[0][2:]
    values = [number for number, _ in numbers[key, unit]]
    lines = [line for _, line in numbers[key, unit]]
    result, label = _result(asked, statistic, values)
    span = f" from {written(lines[0].at)} to {written(lines[-1].at)}" if lines[0].at else ""
    number = f"{_amount(result)}{f' {unit}' if unit else ''}"
    summary = f"The {label} of `{key}` in {counted(len(values), 'log line')} {place_of(asked)}{span} is {number}."
    more = f"smallest {_amount(min(values))}, largest {_amount(max(values))}, sum {_amount(sum(values))}"
    return fact(asked, summary, lines=(more,))


def _score(key: str, unit: str, words: set[str]) -> int:
    parts = {part.lower().removesuffix("s") for part in _PARTS.findall(key)}
    matched = len(parts & words)
    timed = bool(words & _TIME_WORDS) and unit in ("ms", "s", "us", "µs", "ns", "seconds")
    return matched * 2 + int(timed)


def _result(asked: Asked, statistic: str, values: Sequence[float]) -> tuple[float, str]:
    ordered = sorted(values)
    if statistic == "percentile":
        match = _PERCENTILE.search(asked.question.text)
        percent = int(next(filter(None, match.groups()))) if match else 50
        position = max(0, -(-len(ordered) * percent // 100) - 1)
        return ordered[position], f"{percent}th percentile" if match else "median"
    return {
        "average": (statistics.fmean(values), "average"),
        "sum": (sum(values), "sum"),
        "maximum": (ordered[-1], "maximum"),
        "minimum": (ordered[0], "minimum"),
    }[statistic]


def _amount(number: float) -> str:
    return (
        f"{number:g}" if abs(number) < 1e5 and number == round(number, 2) else f"{number:.2f}".rstrip("0").rstrip(".")
    )
