"""Finds the decisive line in the log of a failing container, and the objects that are mentioned in this line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.access_review import accounts_blamed
from holmes.diagnosis.facts.edges import host_uses
from holmes.diagnosis.facts.evidence import shown
from holmes.diagnosis.facts.injection import injectors_blamed
from holmes.diagnosis.facts.line_kinds import decisive_end, kind_of
from holmes.diagnosis.facts.log_weights import is_aside
from holmes.diagnosis.facts.volumes import full_claims
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import text
from holmes.previews.severity import severe_position
from holmes.values.errors import masked
from holmes.values.expressions import expression
from holmes.values.findings import Evidence
from holmes.values.texts import after_placeholder, excerpt, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef


SignatureKind: TypeAlias = Literal[
    "out of memory",
    "access forbidden",
    "wrong architecture",
    "address in use",
    "disk full",
    "too many open files",
    "certificate",
    "authentication",
    "unknown host",
    "unreachable",
    "rate limited",
    "pool exhausted",
    "queue full",
    "lock",
    "schema missing",
    "module missing",
    "bad argument",
    "missing configuration",
    "permission denied",
    "crash",
    "last words",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSignature:
    """A kind of error in a log, the most specific line of this kind, and the number of lines of this kind.

    The kind `last words` is the last line of a log without known errors.
    """

    kind: SignatureKind
    line: str
    count: int


_LONGEST_LINE_CHARACTERS: Final = 2_000
_LONGEST_LOG_CHARACTERS: Final = 256 * 1024
_TAIL_LINES: Final = 12
_LEAST_WEIGHT: Final = 5
"""Added to the weight of lines about what only observes the program, so that all others are more decisive."""
_LONGEST_END_CHARACTERS: Final = 300

_SIGNATURES: Final[dict[LineKind, SignatureKind]] = {
    "out of memory": "out of memory",
    "forbidden": "access forbidden",
    "architecture": "wrong architecture",
    "port in use": "address in use",
    "disk full": "disk full",
    "too many open files": "too many open files",
    "tls": "certificate",
    "auth failed": "authentication",
    "clock or token": "authentication",
    "unknown host": "unknown host",
    "connection refused": "unreachable",
    "connection reset": "unreachable",
    "connection timeout": "unreachable",
    "dependency unavailable": "unreachable",
    "upstream 5xx": "unreachable",
    "permission denied": "permission denied",
    "read only file system": "permission denied",
    "rate limited": "rate limited",
    "pool exhausted": "pool exhausted",
    "queue full": "queue full",
    "lock": "lock",
    "schema missing": "schema missing",
    "module missing": "module missing",
    "file missing": "missing configuration",
}
_DENIED_BY_API: Final = "is forbidden: User"
_GENERAL: Final[dict[SignatureKind, tuple[str, ...]]] = {
    "unreachable": (
        r"dial tcp|could not connect|can't connect|cannot connect|failed to connect|unable to connect",
        r"server is unavailable|no available connection|bad gateway|service unavailable",
        r"://\S{1,300}.{0,100}(?:timed? ?out|timeout|unavailable|refused)|timed? ?out .{0,60}://",
    ),
    "bad argument": (
        r"unknown (?:flag|option|argument|command|shorthand)|unrecognized (?:option|argument)",
        r"invalid option|flag provided but not defined|unexpected argument|illegal option",
        r"unsupported option|invalid (?:flag|argument)",
    ),
    "missing configuration": (
        r"\binvalid (?!memory|opcode|instruction|pointer|argument|operand)|unsupported (?:value|setting|mode|level)",
        r"\bnot set\b|is unset",
        r"(?:must|should|has to|needs to) be (?:set|provided|specified|configured|defined)|is required\b",
        r"are required\b|missing required|required (?:env|config|setting|key|variable|property|parameter)",
        r"environment variable|unbound variable|\bKeyError\b|is not defined|not configured|no such file or directory",
        r"cannot (?:find|open|read|load)|can't (?:find|open|read|load)|could not (?:find|open|read|load)",
        r"\bnot (?:be )?found\b|does not exist|no such (?:file|key)",
        r"(?:cannot|could not|failed to) parse|parse error|syntax error",
        r"unknown (?:key|directive|setting|field)|bad number|malformed|\bmissing\b",
    ),
    "crash": (
        r"\bpanic\b|traceback|\bfatal\b|exception|segmentation fault|segfault|core dumped|stack overflow",
        r"\bcritical\b|error\b|aborted|unhandled|assertion failed|stack smashing",
        r"\bfailed\b|already exists|duplicate (?:key|entry|column)|violates|deadlock|corrupt|unable to\b",
    ),
}
_COMPILED: Final = {kind: expression("|".join(patterns), re.IGNORECASE) for kind, patterns in _GENERAL.items()}
_ANY: Final = expression("|".join(pattern.pattern for pattern in _COMPILED.values()), re.IGNORECASE)
_RANKS: Final = {kind: rank for rank, kind in enumerate(dict.fromkeys((*_SIGNATURES.values(), *_GENERAL)))}
_DECISIVE: Final = expression(
    r"\bpanic\b|\bfatal\b|\bcritical\b|exception|caused by|giving up|exiting|shutting down|aborting|cannot start"
    r"|failed to start|could not start|startup failed|fatal error|Error:|must be set|is required"
    r"|\bnot set\b|unbound variable",
    re.IGNORECASE,
)
_CONSEQUENCE: Final = expression(
    r"(?:giving up|gave up|gives up|exiting|aborting|aborted|shutting down|terminating|stopping|stopped|quitting"
    r"|roll(?:ing|ed) back(?: \w{1,40}){0,3}|failed|failure|cannot continue|exit(?:ed)?|exit (?:code|status) \d{1,3})"
    r"(?: (?:now|after|with|on|due to|because of)(?: [\w:-]{1,40}){1,5})?[\s.!…)\]]{0,5}$",
    re.IGNORECASE,
)
_CALM: Final = expression(
    r"\b(?:debug|trace)\b|level=(?:info|debug|trace)|\"level\": ?\"(?:info|debug|trace)\"|\[info\]|^info\b"
    r"|\b0 (?:errors|failures|failed)\b|no errors?\b",
    re.IGNORECASE,
)
_FRAME: Final = expression(
    r"^(?:\s+at |\s*File \"|\s+[~^]+\s*$|goroutine \d|\t|exit status \d|npm (?:err!|error)|error Command failed"
    r"|Traceback \(most recent|note: (?:run with|Some details are omitted)|stack backtrace:"
    r"|created by |\s*\.\.\. \d+ more|\[signal |main\.main\(\)|[-=*#\s]*$)",
    re.IGNORECASE,
)
_HEADING: Final = expression(
    r"[A-Z ]*(?:FAILED TO START|STARTUP FAILED|ERROR REPORT|CRASH REPORT|FATAL ERROR|STACK TRACE|EXCEPTION)!?$"
    r"|(?:Description|Action|Reason|Cause|Details?|Error|Message|Hint|Stack ?trace):$"
)
"""A heading above the reason, for example those of Spring Boot: `APPLICATION FAILED TO START` and `Description:`."""


def signatures_of(log: str) -> tuple[LogSignature, ...]:
    """Return the signatures of a log, the most specific first.

    A log without lines has no signatures. Lines that announce the end of the program rank first, then the last 12
    lines, then lines of a more specific kind. The first general error (`crash`) among the last lines is also included.
    This error precedes a last line that only announces the end (`giving up`).
    """
    lines = _meaningful(log)
    best: dict[SignatureKind, tuple[tuple[int, int, int], str]] = {}
    counts: dict[SignatureKind, int] = {}
    for index, line in enumerate(lines):
        kind = _kind_of(line)
        if kind is None:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        aside = _LEAST_WEIGHT if is_aside(line) else 0
        weight = (_weight(kind, line, from_end=len(lines) - index) + aside, _RANKS[kind], -index)
        if kind not in best or weight < best[kind][0]:
            best[kind] = (weight, line)
    ordered = sorted(best.items(), key=lambda entry: entry[1][0])
    found = [LogSignature(kind=kind, line=line, count=counts[kind]) for kind, (_, line) in ordered]
    if not found:
        return tuple(LogSignature(kind="last words", line=line, count=1) for line in lines[-1:])
    return tuple(_with_first_error(found, lines))


def _with_first_error(found: list[LogSignature], lines: list[str]) -> Iterator[LogSignature]:
    """Add the first general error among the last lines.

    The error ranks before a line that reports only a consequence.
    """
    for each in found:
        first = _first_error(each.line, lines) if each.kind == "crash" else None
        if first is None:
            yield each
            continue
        earlier = LogSignature(kind="crash", line=first, count=1)
        yield from (earlier, each) if _is_consequence(each.line) else (each, earlier)


def _first_error(last: str, lines: list[str]) -> str | None:
    """Return the first general error among the last lines that is not a consequence of another error, or None."""
    tail = lines[-_TAIL_LINES:]
    if last not in tail:
        return None
    for line in tail[: tail.index(last)]:
        if _kind_of(line) == "crash" and not _is_consequence(line):
            return line
    return None


def _is_consequence(line: str) -> bool:
    """Return whether a line reports that the program failed or is stopping, but not the cause."""
    return _CONSEQUENCE.search(line[-_LONGEST_END_CHARACTERS:].rstrip()) is not None


def _kind_of(line: str) -> SignatureKind | None:
    """Return the kind of error in a line, or None if the line is not significant.

    A failed program also reports its error in general words, so these count where no expression of the corpus does.
    """
    line = line[:_LONGEST_LINE_CHARACTERS]
    if _CALM.search(line) is not None:
        return None
    known = kind_of(line)
    if known is not None and known in _SIGNATURES and (known != "forbidden" or _DENIED_BY_API in line):
        return _SIGNATURES[known]
    if _ANY.search(line) is None:
        return None
    return next((kind for kind, pattern in _COMPILED.items() if pattern.search(line)), None)


def _weight(kind: SignatureKind, line: str, *, from_end: int) -> int:
    """Rank a log line from 0 (specific error that stopped the container) to 4 (early general error)."""
    general = kind == "crash"
    if _DECISIVE.search(line) is not None:
        return 1 if general else 0
    if from_end <= _TAIL_LINES:
        return 2 if general else 1
    return 4 if general else 3


def _meaningful(log: str) -> list[str]:
    """Return the lines of a log without stack frames, empty lines, and headings that other lines follow.

    Reads only the last 262,144 characters.
    """
    lines = [line for line in _lines(log[-_LONGEST_LOG_CHARACTERS:]) if not _FRAME.match(line) and line.strip()]
    return [line for line in lines if line is lines[-1] or not _HEADING.match(line.strip())]


def _lines(log: str) -> Iterator[str]:
    for raw in log.splitlines():
        yield excerpt(raw, _LONGEST_LINE_CHARACTERS).rstrip()


_QUOTED_CHARACTERS: Final = 240
_AFTER_CHARACTERS: Final = 60
_BELOW: Final = " … "
"""The mark between the first line of a record and the error below it."""
_MOST_LINES: Final = 3
_ABOUT_HOSTS: Final = frozenset({"unknown host", "unreachable", "authentication", "certificate", "crash"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """The signatures of a container's log, the most specific first, and their lines as evidence.

    `blamed` contains the objects that are the cause according to the lines: Services, ServiceAccounts without
    permissions, full PersistentVolumeClaims, and injectors that did not add what the lines miss.
    """

    signatures: tuple[LogSignature, ...]
    evidence: tuple[Evidence, ...]
    blamed: tuple[ObjectRef, ...]

    @property
    def first(self) -> LogSignature:
        return self.signatures[0]

    @property
    def quote(self) -> str:
        """The most specific line, shortened for a sentence around the words that decide its kind."""
        return quoted(self.first.line)


def quoted(line: str) -> str:
    """Return a line without secrets, shortened for a sentence around the words that decide its kind.

    Of a record with the innermost error of its stack, the error is kept.
    """
    known = masked(line.strip())
    if len(known) <= _QUOTED_CHARACTERS:
        return known
    first, mark, error = known.rpartition(_BELOW)
    if not mark:
        return _around(known, _QUOTED_CHARACTERS)
    told = _around(error, _QUOTED_CHARACTERS * 2 // 3)
    return f"{shortened(first, _QUOTED_CHARACTERS - len(told) - len(_BELOW))}{_BELOW}{told}"


def _around(known: str, length: int) -> str:
    """Return the part of a text with the words that decide its kind, or with its first severe words."""
    decisive = decisive_end(known) or min(len(known), severe_position(known) + length // 2)
    over = decisive + _AFTER_CHARACTERS - length
    if len(known) <= length or over <= 0:
        return shortened(known, length)
    space = known.find(" ", over, over + _AFTER_CHARACTERS // 2)
    begin = after_placeholder(known, max(over, space + 1))
    return shortened(f"…{known[begin:]}", length)


_WORDS: Final[WeakKeyDictionary[ClusterState, dict[tuple[str, str], LastWords | None]]] = WeakKeyDictionary()


def wanted_logs(container: Container) -> tuple[LogKey, ...]:
    """Return the key of the failed container instance's log."""
    previous = not container.terminated and bool(container.last_terminated)
    return (LogKey(pod=container.pod.ref, container=container.name, previous=previous),)


def last_words(container: Container, state: ClusterState) -> LastWords | None:
    """Return the signatures of the container's log, or of its termination message if the log has no signatures.

    Returns None if the message has no signatures either. The result is cached for each state.
    """
    # Read the logs even on a cache hit, so that the state records that the calling rule uses logs.
    logs = state.logs
    known = _WORDS.setdefault(state, {})
    place = (container.pod.uid, container.name)
    if place not in known:
        known[place] = _read(container, state, logs)
    return known[place]


def _read(container: Container, state: ClusterState, logs: Mapping[LogKey, str]) -> LastWords | None:
    for key in _readable(container, state, logs):
        signatures = signatures_of(logs.get(key, ""))
        if signatures:
            instance = " (previous)" if key.previous else ""
            return _words(key.pod, f"log of container {key.container}{instance}", signatures, state)
    state_name = "state" if container.terminated else "lastState"
    signatures = signatures_of(text(container.terminated or container.last_terminated, "message"))
    path = f"{container.status_path}.{state_name}.terminated.message"
    return _words(container.pod.ref, path, signatures, state) if signatures else None


def _readable(container: Container, state: ClusterState, logs: Mapping[LogKey, str]) -> Iterator[LogKey]:
    """Yield the container's own logs, then the logs of the same container in other pods of the owner.

    The logs of other pods are alternatives, because Holmes reads only a few logs. The container's own logs might not
    be among them.
    """
    wanted = wanted_logs(container)[0]
    for previous in dict.fromkeys((wanted.previous, False, True)):
        yield LogKey(pod=wanted.pod, container=wanted.container, previous=previous)
    owner = container.pod.owner
    for key in logs if owner is not None else ():
        sibling = state.find(key.pod)
        if sibling is None or sibling.owner is None or owner is None:
            continue
        if key.container == container.name and sibling.owner.uid == owner.uid:
            yield key


def _words(place: ObjectRef, path: str, signatures: tuple[LogSignature, ...], state: ClusterState) -> LastWords:
    told, pod = signatures[:_MOST_LINES], state.find(place)
    blamed: dict[ObjectRef, None] = {}
    for each in told:
        if each.kind in _ABOUT_HOSTS:
            blamed |= dict.fromkeys(use.service for use in host_uses(each.line, place.namespace, state))
        if pod is not None:
            blamed |= dict.fromkeys((*accounts_blamed(each.line, pod), *full_claims(each.line, pod)))
            blamed |= dict.fromkeys(injectors_blamed(each.line, pod, state))
    evidence = tuple(Evidence(object=place, path=path, value=shown(each.line)) for each in told)
    return LastWords(signatures=signatures, evidence=evidence, blamed=tuple(blamed))
