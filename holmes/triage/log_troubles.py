"""Collects what the logs of a workload report: groups of lines with trouble, joined over its pods.

A group is evidence if it still occurs, occurs often enough, and did not occur in the healthy time before. A client's
mistake is evidence only if it fills the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.diagnosis.facts.logs import quoted
from holmes.kubernetes.fields import text_map, written
from holmes.triage.connections import connections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_groups import LogGroup
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey

_RECENT_SECONDS: Final = 900.0
_LEAST_OCCURRENCES: Final = 3
_LEAST_SHARE: Final = 0.02
_OFTEN: Final = 5
_ALTERNATING: Final = 0.3
"""The share of warnings that alternate with other lines, for example one for each second request."""
MOST_OF_THE_LOG: Final = 0.5
_ALL_OF_THE_LOG: Final = 0.8
"""The share of lines without a healthy time before. Beside ordinary lines they are noise."""
REACHED: Final[frozenset[LineKind | None]] = frozenset({
    "connection refused", "connection reset", "connection timeout", "dependency unavailable", "upstream 5xx",
})  # fmt: skip
"""Kinds for which the Service that a line names is at fault, not the workload that writes the line."""
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

    @property
    def span(self) -> str:
        """How often the lines occur and since when, for example `40 times from … to …`."""
        group = self.group
        times = f"{group.count} time{'s' if group.count != 1 else ''}"
        return f"{times} from {written(group.first)} to {written(group.last)}" if group.first else times


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
        for pod in state.selected("Pod", service.namespace, text_map(service.body, "spec", "selector")):
            yield state.workload_of(pod)
    if each.kind == "Pod" or state.pods_of(each):
        yield state.workload_of(each)


def troubles_of(state: ClusterState, workload: ClusterObject) -> tuple[Trouble, ...]:
    """Return the groups of lines that report trouble in the logs of a workload's running containers."""
    found: dict[str, Trouble] = {}
    for key, story in stories_of(state, workload):
        pod = state.find(key.pod)
        starting = pod is not None and state.age_seconds(pod) < state.grace_seconds
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


def is_evidence(group: LogGroup, now: float) -> bool:
    """Return whether lines still occur, occur often enough, and are not the noise of a healthy time."""
    if group.over or group.count < _LEAST_OCCURRENCES or group.share < _LEAST_SHARE:
        return False
    if group.last and now - group.last > _RECENT_SECONDS:
        return False
    if group.of_client or not group.sudden:
        filled = MOST_OF_THE_LOG if group.sudden else _ALL_OF_THE_LOG
        return group.share >= filled and group.count >= _OFTEN and group.weight != "warning"
    return group.weight != "warning" or group.share >= _ALTERNATING


def is_lasting(group: LogGroup) -> bool:
    """Return whether lines occur again and again up to the end of the log, so that what they name matters."""
    return not group.over and group.count >= _LEAST_OCCURRENCES and group.share >= _ALTERNATING
