"""Selects the lines of logs that a question is about: by pod, container, time, level, HTTP status and text.

A condition that a question negates holds for the other lines. A part of a question that cannot become a condition is
left in the ledger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment
from holmes.previews.severity import ERROR, FATAL, INFO, WARNING, level_of, severity_of
from holmes.triage.log_troubles import workloads_of
from holmes.triage.vocabulary import beginnings, folded
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.kubernetes.cluster_state import LogKey
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question

_MINUTE: Final = 60.0
_ERROR_WORD: Final = expression(r"(?i)\b(?:err(?:or)?s?|fail(?:ed|ure|s)?|exception|cannot|could not|unable to)\b")
_PINO: Final = expression(r'"level":\s?([1-6])0\b')
_PINO_LEVELS: Final = {"4": WARNING, "5": ERROR, "6": FATAL}
_STATUS: Final = expression(
    r"(?<![\w.:/=-])(?<!between )(?<!zwischen )(?<!entre )([1-5])(\d\d|xx)(?:er|s)?"
    r"(?![\w.:/%]|-\d| ?(?:ms|milli\w*|se[cgk]\w*|s)\b)"
)
_KEY_BEFORE: Final = expression(
    r"([\w.-]+)[\"']?=[\"']?$|[\"']([\w.-]+)[\"']\s?:\s?[\"']?$"
    r"|\b((?i:port|id|pid|line|page|order|user|customer|attempt|item|job|batch|record|row|offset|size|length|worker))"
    r"(?: |: |#| #)$"
)
"""The key or the word before a number that is something else than a status: `id=`, `"bytes": `, `port `."""
REQUEST: Final = expression(
    r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b|\b(?:method|http_method|path|uri|status)\"?[=:]|\" [1-5]\d\d "
)
"""The parts that only a line about a request has."""
_TELLS_STATUS: Final = expression(r"(?i)\b(?:status|http|response|code)\W{0,4}[1-5]\d\d\b")
_STATUS_KEY: Final = expression(r"(?i)stat|code|http|resp|result|return|error|^rc$|^sc$|^st$")
LEVELS: Final[tuple[tuple[str, float, float], ...]] = (
    ("fatal lines", FATAL, FATAL), ("error lines", ERROR, FATAL), ("warning lines", WARNING, WARNING),
    ("info lines", INFO, INFO),
)  # fmt: skip
_PREVIOUS: Final = expression(
    r"\b(?:previous|vorherige[rns]?|anterior|precedente?) (?:instance|container|run|log|instanz|instancia)|--previous\b"
    r"|\b(?:before|vor|antes del?|avant)(?: \w+){0,4} (?:crash|restart|absturz|neustart|reinicio|caida|redemarrage"
    r"|plantage|died|crashed|restarted|(?:oom[- ]?)?kill(?:ed)?|oom|end|beendet wurde)\b"
)
_CURRENT: Final = expression(
    r"\b(?:current|present|running|aktuelle[nrms]*|laufende[nrms]*|actual|actuelle?) "
    r"(?:instance|container|run|log|instanz|lauf|instancia|ejecucion|execution)\b"
    r"|\b(?:since|seit|desde|depuis) (?:\w+ ){0,2}(?:restart|neustart|reinicio|redemarrage)\b"
)
_CONTAINER: Final = (
    expression(r"\b(?:container|contenedor|conteneur) (?:named |called |namens )?[\"'`]?([\w.-]*\w)"),
    expression(r"(?<![\w.-])(\w[\w.-]*)[\"'`]?[ -](?:container|contenedor|conteneur)\b"),
)
_EITHER: Final = expression(
    r"\b(?:errors?|exceptions?|warnings?|fehler|ausnahmen?|errores|excepciones|erreurs?)"
    r" (?:or|and|oder|und|o|u|y|e|ou|et) (?:any )?(?:errors?|exceptions?|warnings?|fehler|ausnahmen?|errores"
    r"|excepciones|erreurs?)\b"
)
_STATUS_ERROR: Final = expression(
    r"\b[45](?:\d\d|xx)s?[ -](?:errors?|fehler|errores)\b"
    r"|\b(?:errors?|fehler|errores|erreurs?) (?:with |mit |con |avec )?(?:the |el |le )?(?:http )?"
    r"(?:status(?:[ -]?code)? |statut |estado |code )?[45](?:\d\d|xx)\b"
)
"""Errors by their status: lines with the status count, whatever their level."""
_NEXT_WORD: Final = expression(r"[\w-]+ ")
_EXCEPTION: Final = expression(r"(?i)exception\b|traceback \(most recent|^panic: |\w(?-i:Error): ")
_PLACEHOLDER: Final = expression(r"(?<!\w)[NX](?!\w)|<\w+>|\{\w*\}|%[ds]|(?<!\w)XXX?(?!\w)")
_SET: Final = r"(?![\w-]*[\"']?\s?[=:]\s?[\"']?\d)"
"""The number after a setting: `timeout=30s` tells of no timeout."""
_NEAR: Final = 4


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

    `parts` contains its alternatives, each with its description. If it is not `sure`, no line proves nothing.
    """

    told: str
    holds: Callable[[LogLine], bool]
    sure: bool = True
    parts: tuple[tuple[str, Callable[[LogLine], bool]], ...] = ()


def lines_of(asked: Asked) -> tuple[LogLine, ...]:
    """Return the lines of the subject's logs in the period of the question, in order of time."""
    start, end = span_of(asked)
    end = inf if end >= asked.state.now else end  # logs are read after the time of the state
    logs = [(key, log) for key, log in asked.state.timed_logs.items() if not key.previous]
    hosts = _hosts(asked)
    routed = [line for key, log in logs for line in _lines(key, log) if hosts.search(line.text)] if hosts else []
    every = routed or [line for key, log in _logs(asked) for line in _lines(key, log)]
    found = [line for line in every if not line.at or start <= line.at <= end]
    return tuple(sorted(dict.fromkeys(found) if _has_previous(asked) else found, key=lambda line: line.at))


def is_of_backends(asked: Asked, found: Sequence[LogLine]) -> bool:
    """Return whether the lines of an Ingress are those of its backends, which do not get all of its requests."""
    hosts = _hosts(asked)
    return _is_routed(asked) and (hosts is None or not all(hosts.search(line.text) for line in found))


def _is_routed(asked: Asked) -> bool:
    """Return whether a question is about Ingresses, which have no log. That of their controller names their hosts."""
    return bool(asked.subject.objects) and all(each.kind == "Ingress" for each in asked.subject.objects)


def _hosts(asked: Asked) -> re.Pattern[str] | None:
    """Return the expression for the hosts of the named Ingresses: those that the question names, or all of them."""
    rules = (rule for each in asked.subject.objects for rule in each.children("spec", "rules"))
    hosts = {str(rule.get("host", "")) for rule in rules} - {""} if _is_routed(asked) else set()
    said = {each for each in hosts if each in asked.question.text} or hosts
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(said)))})(?![\w-])") if said else None


def reads_whole(asked: Asked, start: float) -> bool:
    """Return whether the logs of the subject were read from `start` on: each container has one with an earlier line."""
    found = _logs(asked)
    firsts = [next((line.at for line in _lines(key, log)), 0.0) for key, log in found]
    wanted = _containers_asked(asked, {key.container for key, _ in found})
    read = {(key.pod, key.container) for key, _ in found}
    pods = [pod for each in asked.subject.objects for pod in asked.state.pods_of(each)]
    every = {(pod.ref, one.name) for pod in pods for one in containers_of(pod) if not wanted or one.name in wanted}
    return bool(firsts) and every <= read and all(0 < first <= start for first in firsts)


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
    elif _CURRENT.search(asked.question.text) is not None:
        found = [each for each in found if not each[0].previous]
    wanted = _containers_asked(asked, {key.container for key, _ in found})
    return [each for each in found if not wanted or each[0].container in wanted]


def _containers_asked(asked: Asked, logged: set[str]) -> set[str]:
    """Return the containers that the question asks about. A workload's name is one beside the word "container"."""
    named = {each.name for each in asked.subject.objects}
    said = {match[1] for each in _CONTAINER for match in each.finditer(asked.question.text)}
    known = logged | set(containers_named(asked))
    return {word for word in asked.question.words if word in known and (word in said or word not in named)}


def asks_previous(question: Question) -> bool:
    """Return whether a question is about the log before the last crash."""
    return bool(previous_instance(question))


def previous_instance(question: Question) -> str:
    """Return the words for the previous instance, which no line contains: "before the OOM"."""
    match = _PREVIOUS.search(question.text)
    return match[0] if match is not None else ""


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
    """Return the conditions that the question puts on lines, except on their texts."""
    has_status = any(REQUEST.search(line.text) or _TELLS_STATUS.search(line.text) for line in found)
    statuses = tuple(replace(each, sure=has_status) for each in _statuses(asked))
    levels = () if statuses and _STATUS_ERROR.search(asked.question.text) else tuple(_levels(asked, found))
    exceptions = tuple(_exceptions(asked))
    if levels and exceptions and _EITHER.search(asked.question.text) is not None:
        return (_either(levels[0], exceptions[0]), *statuses)
    return (*levels, *exceptions, *statuses)


def _either(one: LineFilter, other: LineFilter) -> LineFilter:
    told = f"{one.told} or {other.told.removeprefix('with ')}"
    return LineFilter(told=told, holds=lambda line: one.holds(line) or other.holds(line))


def _levels(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    wanted = [(name, low, high, match) for name, low, high in LEVELS if (match := beginnings(name).search(plain))]
    if not wanted:
        return
    if len(wanted) > 1 and _NEXT_WORD.fullmatch(plain, *sorted(each[3].start() for each in wanted[:2])):
        wanted = wanted[:1]  # "fatal errors" are not errors of another level
    stated = any(line.level is not None for line in found)
    low, high = min(each[1] for each in wanted), max(each[2] for each in wanted)
    told = f"level {' or '.join(each[0].removesuffix(' lines') for each in wanted)}"

    def holds(line: LogLine) -> bool:
        level = line.level if stated else _level_by_words(line.text)
        level = ERROR if level is None and _EXCEPTION.search(line.text) else level
        return level is not None and low <= level < high + 1

    yield negated(asked, plain, wanted[0][3].start(), told if stated else f"{told}, judged by words", holds)


def _level_by_words(line: str) -> float:
    """Return the level that the words of a line without a stated level mean. A line that tells of an error has one."""
    severity = severity_of(line)
    return max(severity, ERROR) if severity and _ERROR_WORD.search(line) else severity


def _exceptions(asked: Asked) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    match = beginnings("exceptions").search(plain)
    if match is not None:
        yield negated(
            asked, plain, match.start(), "an exception", lambda line: _EXCEPTION.search(line.text) is not None
        )


def _statuses(asked: Asked) -> Iterator[LineFilter]:
    plain = _without_texts(asked)
    bounds = {f"{each.number:g}" for each in asked.question.comparisons}
    found = [each for each in _STATUS.finditer(plain) if each[0] not in bounds]
    codes = [match[1] + (r"\d\d" if match[2] == "xx" else match[2]) for match in found]
    if not codes:
        return
    names = [f"status {match[1]}{match[2]}" for match in found]
    tests = [_status_finder(code) for code in dict.fromkeys(codes)]
    parts = tuple(zip(dict.fromkeys(names), tests, strict=False))
    told = " or ".join(dict.fromkeys(names))
    one = negated(asked, plain, found[0].start(), told, lambda line: any(test(line) for test in tests))
    yield replace(one, parts=parts)


def _status_finder(code: str) -> Callable[[LogLine], bool]:
    """Return the test whether a line has a status. The number of `id=503` or of port 503 is none."""
    found = re.compile(rf"(?i)(?<![\w.:-])(?:{code})(?![\w.:%-])(?! ?(?:ms|s|bytes|mib)\b(?!=))")
    return lambda line: any(not _is_other_number(line.text[: each.start()]) for each in found.finditer(line.text))


def _is_other_number(before: str) -> bool:
    key = _KEY_BEFORE.search(before)
    return key is not None and _STATUS_KEY.search(next(filter(None, key.groups()))) is None


def finder(expression: str) -> Callable[[LogLine], bool]:
    """Return the test whether a line contains a text, in any case."""
    found = re.compile(expression, re.IGNORECASE)
    return lambda line: found.search(line.text) is not None


def text_finder(text: str) -> Callable[[LogLine], bool]:
    """Return the test whether a line contains a text with its placeholders."""
    return finder(_expression(text))


def word_finder(text: str) -> Callable[[LogLine], bool]:
    """Return the test whether a word of a line begins like a text: `closed` has no `lose`."""
    return finder(
        rf"(?:(?<![a-z])|(?<=[a-z])(?=(?-i:[A-Z]))){_expression(text)}" if text.isalpha() else _expression(text)
    )


def _expression(text: str) -> str:
    """Return the expression for a text in which `N`, `<id>` or `{}` stand for any value."""
    if text in ("timeout", "timeouts"):
        return rf"(?<![_-])time-?outs?{_SET}|timed[ -]?out|deadline[ _]?exceeded"
    parts = _PLACEHOLDER.split(text)
    return r"\S+".join(re.escape(part) for part in parts)


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


def negated(asked: Asked, text: str, at: int, told: str, holds: Callable[[LogLine], bool]) -> LineFilter:
    """Return the filter, or its opposite if a negation is directly before the place `at` of `text`."""
    before = text[:at].replace("'", " ").split()[-_NEAR:]
    before = [word for word in before if not beginnings("exceptions").match(word)]
    negations = beginnings("without").search(" ".join(before))
    if negations is None:
        return LineFilter(told=f"with {told}", holds=holds)
    asked.ledger.take("concept", "negation", "excluding")
    return LineFilter(told=f"without {told}", holds=lambda line: not holds(line))
