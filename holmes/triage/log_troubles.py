"""Collects what the logs of a workload report: groups of lines with trouble, joined over its pods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.templates import serving_workloads
from holmes.triage.connections import connections
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.values.findings import ObjectRef

REACHED: Final[frozenset[LineKind | None]] = frozenset({
    "connection refused", "connection reset", "connection timeout", "dependency unavailable", "upstream 5xx",
})  # fmt: skip
"""Kinds for which the Service that a line names is at fault, not the workload that writes the line."""
NO_SUCH_NAME: Final = expression(r"(?i)\bno such host\b|\bNXDOMAIN\b|\bENOTFOUND\b|\bName or service not known\b")
"""The answer of a name server that works: the name does not exist."""
HOST: Final = expression(
    r"(?<![\w./-])[a-z][\w-]*(?:\.[a-z][a-z0-9-]*)*\.(?!(?:go|py|js|ts|rb|rs|kt|cs|java|php|c|h)\b)[a-z][a-z0-9-]*(?![\w.-])"
    r"|(?<![\w./-])[a-z][\w-]+:\d{2,5}|://|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
)
"""Text of a line that can be a host."""
_STARTING: Final[frozenset[LineKind | None]] = frozenset({*REACHED, "unknown host"})
"""Kinds that programs report while they and their neighbours start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A group of lines in the log of a workload. `before` is the line just before the first one."""

    workload: ClusterObject
    key: LogKey
    group: LogGroup
    before: str = ""

    @property
    def quote(self) -> str:
        return quoted(self.group.record)


def workloads_of(state: ClusterState, subjects: Sequence[ClusterObject]) -> tuple[ClusterObject, ...]:
    """Return the workloads whose logs speak for the subjects: their own, or those behind a Service or an Ingress."""
    return tuple(dict.fromkeys(chain.from_iterable(_workloads_of(state, each) for each in subjects)))


def _workloads_of(state: ClusterState, each: ClusterObject) -> Iterator[ClusterObject]:
    if each.kind == "Ingress":
        found = connections(state, (each,)).values()
        services = [state.find(one.ref) for one in found if one.hops == 1 and one.ref.kind == "Service"]
    else:
        services = [each] if each.kind == "Service" else []
    for service in filter(None, services):
        yield from serving_workloads(state, service)
    if each.kind == "Pod" or state.pods_of(each):
        yield state.workload_of(each)


def is_of_sibling(state: ClusterState, each: ClusterObject, trouble: Trouble) -> bool:
    """Return whether only other pods of its workload write the lines, as the log of a named pod shows."""
    if each.kind != "Pod" or trouble.workload != state.workload_of(each) or trouble.key.pod == each.ref:
        return False
    own = [story for key, story in stories_of(state, trouble.workload) if key.pod == each.ref]
    return own != [] and not any(group.template == trouble.group.template for story in own for group in story.groups)


_TROUBLES: Final[WeakKeyDictionary[ClusterState, dict[ObjectRef, tuple[Trouble, ...]]]] = WeakKeyDictionary()


def troubles_of(state: ClusterState, workload: ClusterObject) -> tuple[Trouble, ...]:
    """Return the groups of lines that report trouble in the logs of a workload's running containers.

    The result is cached for each state.
    """
    known = _TROUBLES.setdefault(state, {})
    if workload.ref not in known:
        known[workload.ref] = _troubles_of(state, workload)
    return known[workload.ref]


def failed_at_start(state: ClusterState, workload: ClusterObject) -> Iterator[Trouble]:
    """Yield the groups that `troubles_of` leaves out, because what a young pod cannot reach may be starting, too.

    They are evidence only together with a fault of what they name.
    """
    for key, story in stories_of(state, workload):
        if _is_young(state, key):
            yield from (Trouble(workload=workload, key=key, group=one) for one in story.groups if one.kind in _STARTING)


def _is_young(state: ClusterState, key: LogKey) -> bool:
    pod = state.find(key.pod)
    return pod is not None and state.age_seconds(pod) < state.grace_seconds


def _troubles_of(state: ClusterState, workload: ClusterObject) -> tuple[Trouble, ...]:
    found: dict[str, Trouble] = {}
    for key, story in stories_of(state, workload):
        starting = _is_young(state, key)
        for group in (*story.groups, *risen_numbers(story)):
            if not (starting and group.kind in _STARTING):
                name = f"{group.template} {group.detail[:20]}"
                trouble = Trouble(workload=workload, key=key, group=group)
                found[name] = _joined(found[name], trouble) if name in found else trouble
    return tuple(found.values())


def _joined(one: Trouble, other: Trouble) -> Trouble:
    newest, older = (one, other) if one.group.last >= other.group.last else (other, one)
    group = replace(
        newest.group,
        count=one.group.count + other.group.count,
        first=min(filter(None, (one.group.first, other.group.first)), default=0.0),
        share=max(one.group.share, other.group.share),
        sudden=one.group.sudden or other.group.sudden,
        over=newest.group.over and older.group.over,
    )
    return replace(newest, group=group)


def late_lines(state: ClusterState, workload: ClusterObject, since: float) -> int:
    """Return the number of records in the logs of a workload since a time in seconds since the epoch."""
    stories = (story for _, story in stories_of(state, workload))
    return sum(story.time_of(number) >= since for story in stories for number in story.heads)
