"""Finds the trouble that the logs of running containers report, although Kubernetes sees nothing wrong.

Lines that report trouble are grouped by their text without numbers. A group counts as evidence if it occurred recently
and not since the beginning of the log, because lines that also occur in the healthy time are noise. If the lines name a
Service of the cluster, the search continues in the logs of its pods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import host_uses
from holmes.diagnosis.facts.logs import general_kinds, trouble_kind
from holmes.kubernetes.fields import matches_map, moment, text_map, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.edges import HostUse
    from holmes.diagnosis.facts.logs import SignatureKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.values.findings import ObjectRef

_TIME: Final = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ")
_VARYING: Final = re.compile(r"\b[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b|\b[A-Z]{1,4}\d+\b|\d+")
_SERVER_ERROR: Final = re.compile(
    r"(?i)\bstatus(?:_code|code)?[\"']?\s?[=:]\s?[\"']?5\d\d\b|\bHTTP/\d(?:\.\d)?\"? 5\d\d\b"
    r"|\b(?:answered|returned|got|returns|responded(?: with)?|response) (?:with )?(?:HTTP )?5\d\d\b"
    r"|(?<!\s[1-5]\d\d)\s5\d\d (?:\d+(?:\.\d+)?(?:ms|s|us|µs)\b|-\b)"
    r"|\b5\d\d (?:Bad Gateway|Service Unavailable|Gateway Time|Internal Server)"
)
_ERROR_LEVEL: Final = re.compile(
    r"(?i)\b(?:error|fatal|critical|severe|panic|err|eror)\b|\"level\": ?\"(?:error|fatal)\""
)
_ABOUT_HOSTS: Final = frozenset({"unknown host", "unreachable", "certificate"})
_RECENT_SECONDS: Final = 900.0
_EARLY_SHARE: Final = 0.1
_LEAST_OCCURRENCES: Final = 2
_MOST_LINES: Final = 5_000
_MOST_HOPS: Final = 2
_SAMPLE_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleGroup:
    """Lines of one workload that differ only in numbers. `sample` is the newest line.

    `first` and `last` are times in seconds since the epoch, or 0 if the lines have no time. `early` means that the
    group occurs since the beginning of the log.
    """

    workload: ClusterObject
    key: LogKey
    kind: SignatureKind | None
    sample: str
    count: int
    first: float
    last: float
    early: bool

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """A sort key that puts the strongest evidence first."""
        weak = self.kind is None or self.kind in general_kinds()
        return (self.early, weak, _ERROR_LEVEL.search(self.sample) is None, -self.count)

    @property
    def span(self) -> str:
        """The number of occurrences and their times, for example `40 times from … to …`."""
        times = f"{self.count} time{'s' if self.count != 1 else ''}"
        return f"{times} from {written(self.first)} to {written(self.last)}" if self.first else times


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCause:
    """The trouble in the logs: the groups from the subject to the culprit, and the objects between them."""

    groups: tuple[TroubleGroup, ...]
    culprit: ObjectRef
    path: tuple[ObjectRef, ...]


def cause_in_logs(state: ClusterState, subjects: Sequence[ClusterObject]) -> LogCause | None:
    """Return the trouble that the logs of the subjects report, or None if they report none."""
    workloads = dict.fromkeys(_workloads(state, subjects))
    groups = sorted((group for each in workloads for group in trouble_of(state, each)), key=lambda group: group.rank)
    if not groups:
        return None
    first = groups[0]
    cause = LogCause(groups=(first,), culprit=first.workload.ref, path=(first.workload.ref,))
    return _followed(state, cause, {first.workload.ref})


def _workloads(state: ClusterState, subjects: Sequence[ClusterObject]) -> Iterator[ClusterObject]:
    for each in subjects:
        if each.kind == "Service":
            for pod in state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector")):
                yield state.workload_of(pod)
        elif state.pods_of(each):
            yield state.workload_of(each)


def _followed(state: ClusterState, cause: LogCause, seen: set[ObjectRef]) -> LogCause:
    """Follow the Services that the last lines name, as long as the logs behind them report trouble, too."""
    last = cause.groups[-1]
    if last.kind not in _ABOUT_HOSTS and not _SERVER_ERROR.search(last.sample) and "://" not in last.sample:
        return cause if not any(use.port for use in _uses(state, last)) else _through(state, cause, seen)
    return _through(state, cause, seen)


def _uses(state: ClusterState, group: TroubleGroup) -> tuple[HostUse, ...]:
    return host_uses(group.sample, group.workload.namespace, state)


def _through(state: ClusterState, cause: LogCause, seen: set[ObjectRef]) -> LogCause:
    last = cause.groups[-1]
    for use in host_uses(last.sample, last.workload.namespace, state):
        service = state.find(use.service)
        if service is None:
            continue
        path = (*cause.path, use.service)
        for workload in _behind(state, service):
            if workload.ref in seen or len(cause.groups) > _MOST_HOPS:
                continue
            deeper = min(trouble_of(state, workload), key=lambda group: group.rank, default=None)
            if deeper is not None:
                found = LogCause(groups=(*cause.groups, deeper), culprit=workload.ref, path=(*path, workload.ref))
                return _followed(state, found, seen | {workload.ref})
            return replace(cause, culprit=workload.ref, path=(*path, workload.ref))
        return replace(cause, culprit=use.service, path=path)
    return cause


def _behind(state: ClusterState, service: ClusterObject) -> Iterator[ClusterObject]:
    selector = text_map(service.body, "spec", "selector")
    found = (state.workload_of(pod) for pod in state.of("Pod", service.namespace) if matches_map(selector, pod.labels))
    yield from dict.fromkeys(found)


def trouble_of(state: ClusterState, workload: ClusterObject) -> tuple[TroubleGroup, ...]:
    """Return the recent groups of lines that report trouble in the logs of a workload's running containers."""
    pods = {pod.ref for pod in state.pods_of(workload) if pod.text("status", "phase") != "Succeeded"}
    groups: dict[str, TroubleGroup] = {}
    for key, log in state.timed_logs.items():
        if key.pod in pods and not key.previous:
            for group in _groups(workload, key, log):
                known = groups.get(_template(group.sample))
                groups[_template(group.sample)] = group if known is None else _joined(known, group)
    return tuple(group for group in groups.values() if _counts(group, state.now))


def _joined(one: TroubleGroup, other: TroubleGroup) -> TroubleGroup:
    newest = max(one, other, key=lambda group: group.last)
    first = min(filter(None, (one.first, other.first)), default=0.0)
    return replace(newest, count=one.count + other.count, first=first, early=one.early and other.early)


def _counts(group: TroubleGroup, now: float) -> bool:
    """Return whether a group is evidence: it is recent, and it occurred several times or is an error."""
    recent = not group.last or now - group.last <= _RECENT_SECONDS
    often = group.count >= _LEAST_OCCURRENCES or _ERROR_LEVEL.search(group.sample) is not None
    return recent and often and not group.early


def _template(line: str) -> str:
    return _VARYING.sub("#", line)[:200]


def _groups(workload: ClusterObject, key: LogKey, log: str) -> Iterator[TroubleGroup]:
    lines = log.splitlines()[-_MOST_LINES:]
    times = [moment(match[1]) or 0.0 if (match := _TIME.match(line)) else 0.0 for line in lines]
    known = [at for at in times if at]
    began, ended = (known[0], known[-1]) if known else (0.0, 0.0)
    found: dict[str, list[tuple[float, str]]] = {}
    for line, at in zip(lines, times, strict=True):
        plain = _TIME.sub("", line, count=1)
        if trouble_kind(plain) is not None or _SERVER_ERROR.search(plain):
            found.setdefault(_template(plain), []).append((at, plain))
    starts = _starts(lines)
    for same in found.values():
        first, last = same[0][0], same[-1][0]
        early = bool(known) and len(lines) > 20 and not starts and first - began <= _EARLY_SHARE * (ended - began)
        sample = same[-1][1][:_SAMPLE_CHARACTERS]
        yield TroubleGroup(
            workload=workload,
            key=key,
            kind=trouble_kind(sample),
            sample=sample,
            count=len(same),
            first=first,
            last=last,
            early=early,
        )


def _starts(lines: Sequence[str]) -> bool:
    """Return whether the log begins with the start of the program, so that it has no healthy time before it."""
    return any(re.search(r"(?i)\b(?:start(?:ed|ing)?|listening|ready|version|boot)\b", line) for line in lines[:5])
