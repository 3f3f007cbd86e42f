"""A rule for vertical autoscalers, which evict pods to give them other requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evictions import RECENT_SECONDS, owner_of_gone
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_KIND: Final = "VerticalPodAutoscaler.autoscaling.k8s.io"
_EVICTED: Final = "EvictedByVPA"
_OFTEN: Final = 3


@Row(
    id="H05",
    title="Vertical autoscaler evicts pods again and again",
    severity="warning",
    kinds=(_KIND, "Pod"),
    reads=("spec.targetRef", "spec.updatePolicy", "status.recommendation", "events EvictedByVPA"),
    explanation="Within the last hour, a VerticalPodAutoscaler evicted at least three pods for each replica of its "
    "target to give them its recommendation. The new pods do not keep the recommendation, for example because the "
    "admission controller of the autoscaler is not running, or it changes all the time. Set updateMode to Initial or "
    "Off, or repair the admission controller.",
)
def evicted_again(state: ClusterState) -> Iterator[Fault]:
    for scaler in state.of(_KIND):
        target = _target(state, scaler)
        evictions = [each for each in state.events if _is_eviction(state, each, target)] if target is not None else []
        replicas = max(1, target.integer("spec", "replicas")) if target is not None else 1
        number = sum(max(1, each.count) for each in evictions)
        if target is None or number < _OFTEN * replicas:
            continue
        yield Fault(
            subject=target.ref,
            culprit=scaler.ref,
            cause=f"{scaler.ref} evicted pods of {target.ref} {number} times within the last hour to apply its "
            f"recommendation (updateMode {scaler.text('spec', 'updatePolicy', 'updateMode') or 'Auto'}, "
            f"{replicas} {'replica' if replicas == 1 else 'replicas'})",
            evidence=(
                evidence.field(scaler, "spec", "updatePolicy"),
                *map(evidence.event, evictions[-2:]),
                evidence.field(scaler, "status", "recommendation"),
            ),
            next_check=f"kubectl -n {scaler.namespace} describe vpa {scaler.name}",
            since=min(each.first for each in evictions),
        )


def _target(state: ClusterState, scaler: ClusterObject) -> ClusterObject | None:
    target = scaler.child("spec", "targetRef")
    return state.get(text(target, "kind"), scaler.namespace, text(target, "name"))


def _is_eviction(state: ClusterState, each: ClusterEvent, target: ClusterObject | None) -> bool:
    if each.reason != _EVICTED or each.kind != "Pod" or state.now - each.last > RECENT_SECONDS:
        return False
    pod = state.find(each.ref) or owner_of_gone(each, state)
    return pod is not None and state.workload_of(pod) is target
