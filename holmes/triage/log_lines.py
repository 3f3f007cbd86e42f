"""Selects the lines of logs that a question is about: by pod, container, time, level, HTTP status and text.

A condition that a question negates holds for the other lines. A part of a question that cannot become a condition is
left in the ledger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment
from holmes.previews.severity import ERROR, FATAL, INFO, WARNING, level_of, severity_of
from holmes.triage.log_troubles import workloads_of
from holmes.triage.vocabulary import beginnings, folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.kubernetes.cluster_state import LogKey
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question

_MINUTE: Final = 60.0
_PINO: Final = re.compile(r'"level":\s?([1-6])0\b')
_PINO_LEVELS: Final = {"4": WARNING, "5": ERROR, "6": FATAL}
_SEARCHED: Final = re.compile(
    r"\b(?:containing|contains?|matching|match(?:es)?|mentioning|mentions?|including|include|say|says|saying"
    r"|with the (?:word|text|string)|enthalten|enthalt|contienen|contiene|contenant|contiennent|mit dem (?:wort|text)"
    r"|con (?:la palabra|el texto)|avec (?:le mot|le texte))\s{1,3}"
    r"(?:the (?:word|text|string)\s{1,3})?[\"'`]?([\w.:/=-]{2,80})"
)
_STATUS: Final = re.compile(r"(?<![\w.:/=-])([1-5])(\d\d|xx)(?:er|s)?(?![\w.:/%]|-\d)")
_PATH: Final = re.compile(r"(?<!\S)(/[\w./{}*-]{1,120})")
_LEVELS: Final[tuple[tuple[str, float, float], ...]] = (
    ("fatal lines", FATAL, FATAL), ("error lines", ERROR, FATAL), ("warning lines", WARNING, WARNING),
    ("info lines", INFO, INFO),
)  # fmt: skip
_PREVIOUS: Final = re.compile(
    r"\b(?:previous|vorherige[rns]?|anterior|precedente?) (?:instance|container|run|log|instanz|instancia)|--previous\b"
    r"|\b(?:before|vor|antes del?|avant)(?: \w+){0,4} (?:crash|restart|absturz|neustart|reinicio|caida|redemarrage"
    r"|plantage|died|crashed|restarted)"
)
_EXCEPTION: Final = re.compile(r"(?i)exception\b|traceback \(most recent|^panic: |\w(?-i:Error): ")
_PLACEHOLDER: Final = re.compile(r"(?<!\w)[NX](?!\w)|<\w+>|\{\w*\}|%[ds]|(?<!\w)XXX?(?!\w)")
_NEAR: Final = 4
_LEAST_STEM: Final = 4
_COUNTED_NOUN: Final = re.compile(
    r"\b(?:(?P<english>how many|number of|count of)|wie viele|anzahl(?: der)?|cuant[oa]s|numero de|combien d[e']"
    r"|nombre de)\s?(?P<noun>[\w-]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a log. `at` is its time in seconds since the epoch, or 0 if the line has none."""

    pod: str
    text: str
    at: float = 0.0

    @property
    def level(self) -> float | None:
        """The level that the line states, or None."""
        pino = _PINO.search(self.text)
        return _PINO_LEVELS.get(pino[1], INFO) if pino else level_of(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """A condition on a line. `told` describes it, for example `with status 503` or `without status 200`.

    `parts` contains its alternatives, each with its description.
    """

    told: str
    holds: Callable[[LogLine], bool]
    parts: tuple[tuple[str, Callable[[LogLine], bool]], ...] = ()


def lines_of(asked: Asked) -> tuple[LogLine, ...]:
    """Return the lines of the subject's logs in the period of the question, in order of time."""
    start, end = span_of(asked)
    found = [line for key, log in _logs(asked) for line in _lines(key, log) if not line.at or start <= line.at <= end]
    return tuple(sorted(dict.fromkeys(found) if _has_previous(asked) else found, key=lambda line: line.at))


def span_of(asked: Asked) -> tuple[float, float]:
    """Return the time span of the question, by default all times."""
    period = asked.question.period
    return (0.0, asked.state.now) if period is None else period.bounds(asked.state.now, near=_MINUTE)


def _has_previous(asked: Asked) -> bool:
    """Return whether logs of previous instances were read. While a container waits, both of its logs are the same."""
    return any(key.previous for key, _ in _logs(asked))


def _logs(asked: Asked) -> list[tuple[LogKey, str]]:
    state, subject = asked.state, asked.subject
    objects = [each for each in subject.objects if each.kind not in ("Pod", "Job")]
    pods = {
        pod.ref for each in subject.objects if each.kind in ("Pod", "Job") for pod in state.pods_of(each) or (each,)
    }
    pods |= {pod.ref for each in workloads_of(state, objects) for pod in state.pods_of(each) or (each,)}
    found = [
        (key, log)
        for key, log in sorted(state.timed_logs.items(), key=lambda entry: (entry[0].pod, not entry[0].previous))
        if (key.pod in pods if subject.named else subject.holds(key.pod.namespace))
    ]
    if asks_previous(asked.question):
        found = [each for each in found if each[0].previous]
    named = {each.name for each in subject.objects}
    containers = {key.container for key, _ in found}
    wanted = {word for word in asked.question.words if word in containers and word not in named}
    return [each for each in found if not wanted or each[0].container in wanted]


def asks_previous(question: Question) -> bool:
    """Return whether a question is about the log before the last crash."""
    return _PREVIOUS.search(question.text) is not None


def containers_named(asked: Asked) -> tuple[str, ...]:
    """Return the containers of the subject that the question names."""
    names = {
        one.name for each in asked.subject.objects for pod in asked.state.pods_of(each) for one in containers_of(pod)
    }
    return tuple(word for word in asked.question.words if word in names)


def _lines(key: LogKey, log: str) -> Iterator[LogLine]:
    at = 0.0
    for line in log.splitlines():
        match = LOG_TIME.match(line)
        at = (moment(match[1]) or at) if match else at
        if line.strip():
            yield LogLine(pod=str(key.pod), text=line[match.end() if match else 0 :], at=at)


def filters_of_lines(asked: Asked, found: Sequence[LogLine]) -> tuple[LineFilter, ...]:
    """Return the conditions that the question puts on lines."""
    return (*_levels(asked, found), *_exceptions(asked), *_statuses(asked), *_texts(asked, found))


def _levels(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    wanted = [(name, low, high, match) for name, low, high in _LEVELS if (match := beginnings(name).search(plain))]
    if not wanted:
        return
    stated = any(line.level is not None for line in found)
    low, high = min(each[1] for each in wanted), max(each[2] for each in wanted)
    told = f"level {' or '.join(each[0].removesuffix(' lines') for each in wanted)}"

    def holds(line: LogLine) -> bool:
        level = line.level if stated else severity_of(line.text)
        return level is not None and low <= level < high + 1

    yield _negated(asked, plain, wanted[0][3].start(), told if stated else f"{told}, judged by words", holds)


def _exceptions(asked: Asked) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    match = beginnings("exceptions").search(plain)
    if match is not None:
        yield _negated(
            asked, plain, match.start(), "an exception", lambda line: _EXCEPTION.search(line.text) is not None
        )


def _statuses(asked: Asked) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    found = list(_STATUS.finditer(plain))
    codes = [match[1] + (r"\d\d" if match[2] == "xx" else match[2]) for match in found]
    if not codes:
        return
    names = [f"status {match[1]}{match[2]}" for match in found]
    tests = [_finder(rf"(?<![\w.:-])(?:{code})(?![\w.:%-])(?! ?(?:ms|s|bytes|mib)\b)") for code in dict.fromkeys(codes)]
    parts = tuple(zip(dict.fromkeys(names), tests, strict=False))
    told = " or ".join(dict.fromkeys(names))
    one = _negated(asked, plain, found[0].start(), told, lambda line: any(test(line) for test in tests))
    yield replace(one, parts=parts)


def _texts(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield a filter for the texts that the lines must contain. Several texts are alternatives."""
    wanted = list(dict.fromkeys(_wanted_texts(asked, found)))
    if not wanted:
        return
    whole = asked.question.text
    told = " or ".join(f"`{each}`" for each in wanted)
    first = min(max(0, whole.find(folded(each))) for each in wanted)

    tests = [_finder(_expression(each)) for each in wanted]
    one = _negated(asked, whole, first, f"text {told}", lambda line: any(test(line) for test in tests))
    yield replace(one, parts=tuple((f"`{each}`", test) for each, test in zip(wanted, tests, strict=True)))


def _finder(expression: str) -> Callable[[LogLine], bool]:
    found = re.compile(expression, re.IGNORECASE)
    return lambda line: found.search(line.text) is not None


def _expression(text: str) -> str:
    """Return the expression for a text in which `N`, `<id>` or `{}` stand for any value."""
    parts = _PLACEHOLDER.split(text)
    return r"\S+".join(re.escape(part) for part in parts)


def _wanted_texts(asked: Asked, found: Sequence[LogLine]) -> Iterator[str]:
    question = asked.question
    names = {each.name for each in asked.subject.named} | {*asked.subject.namespaces, *containers_named(asked)}
    quoted = [text for text in question.quoted if text.lower() not in names]
    yield from quoted
    yield from (match[1] for match in _SEARCHED.finditer(question.text) if match[1] not in names and not quoted)
    yield from (str(term) for term in question.labels if str(term) in question.text and str(term) not in quoted)
    yield from (match[1] for match in _PATH.finditer(question.text))
    if not quoted:
        lowered = [line.text.lower() for line in found]
        known = {part for text in question.text.split() for part in (text,) if text.startswith("/")}
        for word in asked.subject.unknown:
            if _is_condition(word):
                continue
            written = next((each for each in (word, _stem(word)) if any(each in line for line in lowered)), "")
            if written and word not in known and len(word) > 2:
                yield written


def _is_condition(word: str) -> bool:
    """Return whether a word asks for a level or for lines, and is not a text to search for."""
    names = (*(name for name, _, _ in _LEVELS), "exceptions", "line words", "writing")
    return word.startswith("level") or any(beginnings(name).match(word) for name in names)


def counted_noun_missing(asked: Asked, found: Sequence[LogLine]) -> tuple[str, bool]:
    """Return the noun that the question counts, if no line contains it, and whether it is in English like the lines."""
    match = _COUNTED_NOUN.search(asked.question.spoken)
    noun = match["noun"] if match is not None else ""
    if (
        match is None
        or noun not in asked.subject.unknown
        or _is_condition(noun)
        or beginnings("counted lines").match(noun)
    ):
        return "", False
    start = _stem(noun)[:_LEAST_STEM]  # the noun of another language often begins alike
    return ("" if any(start in line.text.lower() for line in found) else noun), match["english"] is not None


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > _LEAST_STEM else word


def _without_texts(asked: Asked) -> str:
    """Return the question without quoted texts, its period and names, whose words are not conditions of their own."""
    text = asked.question.text
    period = asked.question.period
    names = [each.name for each in asked.subject.named]
    for part in sorted(
        (*map(folded, asked.question.quoted), *names, period.text if period else ""), key=len, reverse=True
    ):
        text = text.replace(part, " " * len(part)) if part else text
    return text


def _negated(asked: Asked, text: str, at: int, told: str, holds: Callable[[LogLine], bool]) -> LineFilter:
    """Return the filter, or its opposite if a negation is directly before the place `at` of `text`."""
    before = text[:at].replace("'", " ").split()[-_NEAR:]
    negations = beginnings("without").search(" ".join(before))
    if negations is None:
        return LineFilter(told=f"with {told}", holds=holds)
    asked.ledger.take("concept", "negation", "excluding")
    return LineFilter(told=f"without {told}", holds=lambda line: not holds(line))
