"""Rules for pods that cannot preempt others, or wait until the preempted pods end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evidence import pod_words
from holmes.diagnosis.facts.unscheduled import unscheduled_for
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import moment, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_LONG_GRACES: Final = 5


@Row(
    id="S09",
    title="Pod cannot preempt other pods",
    severity="info",
    kinds=("Pod",),
    needs=("PriorityClass",),
    reads=("spec.preemptionPolicy", "spec.priority", "status.nominatedNodeName", "event FailedScheduling"),
    explanation="A pod with a higher priority can preempt pods of lower priority on a full node, but not if its "
    "PriorityClass has `preemptionPolicy: Never`. After a preemption, the pod waits until the preempted pods "
    "terminate.",
)
def no_preemption(state: ClusterState) -> Iterator[Fault]:
    lowest: int | None = None
    for found in unscheduled_for(state, "resources"):
        pod = found.pod
        waiting = _LONG_GRACES * state.patience_seconds
        if pod.text("status", "nominatedNodeName") and state.now - (found.since or state.now) >= waiting:
            yield _nominated(state, pod)
        elif pod.text("spec", "preemptionPolicy") == "Never":
            lowest = _lowest_priority(state) if lowest is None else lowest
            if lowest < pod.integer("spec", "priority"):
                yield _may_not(state, pod, lowest)


def _lowest_priority(state: ClusterState) -> int:
    placed = (pod for pod in state.of("Pod") if pod.text("status", "phase") == "Running")
    return min((pod.integer("spec", "priority") for pod in placed), default=0)


def _may_not(state: ClusterState, pod: ClusterObject, lowest: int) -> Fault:
    class_name = pod.text("spec", "priorityClassName")
    known = state.get("PriorityClass", "", class_name)
    own = evidence.field(pod, "spec", "preemptionPolicy")
    return Fault(
        subject=pod.ref,
        cause=f"{pod_words(pod, state)} has priority {pod.integer('spec', 'priority')} and pods with priority "
        f"{lowest} are running, but PriorityClass {class_name or '(none)'} has preemptionPolicy Never",
        evidence=(
            own if known is None else evidence.field(known, "preemptionPolicy"),
            evidence.field(pod, "spec", "priority"),
        ),
        next_check="kubectl get priorityclass",
    )


def _nominated(state: ClusterState, pod: ClusterObject) -> Fault:
    node = pod.text("status", "nominatedNodeName")
    leaving = [
        each.ref for each in state.of("Pod") if each.deleted is not None and each.text("spec", "nodeName") == node
    ]
    return Fault(
        subject=pod.ref,
        title="Preempted pods do not terminate",
        severity="warning",
        cause=f"{pod_words(pod, state)} is nominated for node {node}, but the preempted pods still exist",
        evidence=(evidence.field(pod, "status", "nominatedNodeName"),),
        next_check=f"kubectl get pods -A -o wide --field-selector spec.nodeName={node}",
        because=tuple(leaving),
        since=moment(text(pod.condition("PodScheduled"), "lastTransitionTime")),
    )
