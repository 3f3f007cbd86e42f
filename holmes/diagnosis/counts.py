"""Counts the objects in the scope of a scan: checked, affected, and too young to be judged.

Counts only what was read. The report states separately what could not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.fields import text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.values.findings import KindCount, TooYoung

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Incident, ObjectRef

_COUNTED: Final = (
    "Namespace", "Node", *WORKLOADS[:-1], "Pod", "Service", "Ingress", "PersistentVolumeClaim",
    "HorizontalPodAutoscaler",
)  # fmt: skip
"""Built-in kinds for which the report contains the number of objects. Custom resources are also counted."""
_JUDGED: Final = (*_COUNTED[1:], "ReplicaSet", "PodDisruptionBudget")
_API_SERVICE: Final = ("default", "kubernetes")
"""The Service of the API server, which every cluster has."""
_MOST_YOUNG: Final = 20


def checked_kinds(
    state: ClusterState, incidents: Sequence[Incident], namespaces: Sequence[str]
) -> tuple[KindCount, ...]:
    """Return the number of objects of each kind, and how many of them have an incident."""
    severe = [each for each in incidents if each.severity != "info"]
    affected = _involved(severe)
    pods = sum(incident.affected_pods for incident in severe)
    counts = []
    for kind in (*_COUNTED, *_custom_kinds(state)):
        if kind == "Namespace" and namespaces:
            continue
        objects = [each for each in state.of(kind) if not namespaces or each.namespace in {"", *namespaces}]
        if objects:
            hit = pods if kind == "Pod" else sum(each.ref in affected for each in objects)
            counts.append(KindCount(kind=kind.partition(".")[0], total=len(objects), affected=min(hit, len(objects))))
    return tuple(counts)


def objects_in_scope(state: ClusterState, namespaces: Sequence[str]) -> int:
    """Return the number of objects that rules can judge.

    An empty cluster and an empty namespace have none: what Kubernetes creates in each of them does not count.
    """
    return sum(1 for _ in _judged(state, namespaces))


def too_young(state: ClusterState, incidents: Sequence[Incident], namespaces: Sequence[str]) -> TooYoung | None:
    """Return the objects that rules left out because they may still be starting, or None.

    Objects with an incident, or of a workload with one, were not left out. A young owner stands for its objects.
    """
    known = _involved(incidents) | {finding.subject for incident in incidents for finding in incident.symptoms}
    found = (each for each in _judged(state, namespaces) if _is_left_out(state, each))
    young = [each.ref for each in found if known.isdisjoint((each.ref, state.workload_of(each).ref))]
    if not young:
        return None
    return TooYoung(total=len(young), grace_seconds=state.grace_seconds, objects=tuple(young[:_MOST_YOUNG]))


def _judged(state: ClusterState, namespaces: Sequence[str]) -> Iterator[ClusterObject]:
    for kind in (*_JUDGED, *_custom_kinds(state)):
        for each in state.of(kind):
            if namespaces and each.namespace not in namespaces:
                continue
            if kind != "Service" or (each.namespace, each.name) != _API_SERVICE:
                yield each


def _custom_kinds(state: ClusterState) -> Iterable[str]:
    return (kind for kind in state.kinds if "." in kind)


def _is_left_out(state: ClusterState, each: ClusterObject) -> bool:
    if each.deleted is not None or not _is_young(state, each) or _works(each):
        return False
    owner = state.workload_of(each)
    return owner.ref == each.ref or (each.kind == "Pod" and not _is_young(state, owner))


def _is_young(state: ClusterState, each: ClusterObject) -> bool:
    return state.age_seconds(each) < state.grace_seconds


def _works(each: ClusterObject) -> bool:
    """Return whether an object has already started, so that its age no longer matters."""
    if each.kind == "Pod":
        return pod_ready(each) or each.text("status", "phase") == "Succeeded"
    if each.kind == "PersistentVolumeClaim":
        return each.text("status", "phase") == "Bound"
    return any(text(each.condition(kind), "status") == "True" for kind in ("Ready", "Available", "Complete"))


def _involved(incidents: Iterable[Incident]) -> set[ObjectRef]:
    return {
        ref
        for incident in incidents
        for ref in (incident.culprit, *incident.affected, *(each.subject for each in incident.findings))
    }
