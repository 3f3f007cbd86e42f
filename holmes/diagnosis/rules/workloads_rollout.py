"""Deployments whose rollout does not get through, waits, or was never acted upon."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.rollouts import last_rollout, replica_sets_newest_first, template_differences
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import text
from holmes.kubernetes.moments import moment
from holmes.values.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.rollouts import Difference
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

ROLLOUT_GRACES: Final = 5
"""A rollout may take this many times the state's grace."""

_SHOWN_DIFFERENCES: Final = 5
_MOST_PODS: Final = 20


def wanted_replicas(workload: ClusterObject) -> int:
    """`spec.replicas`, 1 when it is not set."""
    written = workload.at("spec", "replicas")
    return written if isinstance(written, int) and not isinstance(written, bool) else 1


def sick_pods(state: ClusterState, workload: ClusterObject) -> tuple[ObjectRef, ...]:
    """The pods of a workload that are not ready: what they suffer from explains why it is not complete."""
    pods = (pod for pod in state.pods_of(workload) if text(pod.condition("Ready"), "status") != "True")
    return tuple(pod.ref for pod in islice(pods, _MOST_PODS))


def difference_evidence(workload: ClusterObject, differences: tuple[Difference, ...]) -> tuple[Evidence, ...]:
    """What changed between two templates: the new value, with the old one behind it."""
    return tuple(
        Evidence(object=workload.ref, path=each.path, value=f"{each.new} (before: {each.old})")
        for each in differences[:_SHOWN_DIFFERENCES]
    )


def _in_words(differences: tuple[Difference, ...]) -> str:
    told = "; ".join(map(str, differences[:_SHOWN_DIFFERENCES]))
    return f"; it changed {told}" if told else ""


@Row(
    id="W01",
    title="Rollout is stuck",
    severity="critical",
    kinds=("Deployment", "ReplicaSet"),
    reads=("status.conditions[Progressing]", "ReplicaSet status.readyReplicas", "ReplicaSet spec.template"),
    explanation="The newest ReplicaSet of a Deployment does not become ready: its progress deadline has passed, or the "
    "older ReplicaSet still runs beside it after several minutes. What differs between the two ReplicaSets is shown. "
    "It is a symptom of whatever the new pods suffer from; `kubectl rollout undo` brings the old ones back. Only a "
    "warning while old pods are available.",
)
def rollout_stuck(state: ClusterState) -> Iterator[Fault]:
    """Deployments whose newest ReplicaSet does not get ready."""
    for deployment in state.of("Deployment"):
        if deployment.deleted is not None or wanted_replicas(deployment) == 0 or deployment.boolean("spec", "paused"):
            continue
        newest = next(iter(replica_sets_newest_first(state, deployment)), None)
        stuck = _stuck_for(state, deployment, newest)
        if stuck is None:
            continue
        what, since, proof = stuck
        rollout = last_rollout(state, deployment)
        differences = rollout[2] if rollout is not None else ()
        yield Fault(
            subject=deployment.ref,
            role="symptom",
            severity="warning" if deployment.integer("status", "availableReplicas") else "critical",
            cause=f"the rollout of {deployment.ref} is stuck: {what}{_in_words(differences)}",
            evidence=(*difference_evidence(deployment, differences), *proof),
            next_check=f"kubectl -n {deployment.namespace} rollout status deployment/{deployment.name} --timeout=5s",
            because=sick_pods(state, deployment),
            since=since,
        )


def _stuck_for(
    state: ClusterState, deployment: ClusterObject, newest: ClusterObject | None
) -> tuple[str, float, tuple[Evidence, ...]] | None:
    progressing = deployment.condition("Progressing")
    if text(progressing, "status") == "False" and text(progressing, "reason") == "ProgressDeadlineExceeded":
        message = text(progressing, "message").rstrip(".")
        since = newest.created if newest is not None else moment(text(progressing, "lastTransitionTime"))
        told = evidence.value(deployment, "status.conditions[type=Progressing].message", message)
        return message, since or deployment.created, (told,)
    if newest is None or state.age_seconds(newest) < ROLLOUT_GRACES * state.grace_seconds:
        return None
    wanted, ready = newest.integer("spec", "replicas"), newest.integer("status", "readyReplicas")
    others = [each for each in state.owned_by(deployment, "ReplicaSet") if each is not newest]
    if ready or not wanted or not any(each.integer("status", "replicas") for each in others):
        return None
    proof = (
        evidence.value(newest, "status.readyReplicas", ready),
        evidence.field(newest, "spec", "replicas"),
    )
    return f"no pod of {newest.ref} is ready while older ones still run", newest.created, proof


@Row(
    id="W01b",
    title="Controller does not act on a change",
    severity="critical",
    kinds=("Deployment", "StatefulSet", "DaemonSet"),
    reads=("metadata.generation", "status.observedGeneration", "metadata.managedFields[].time"),
    explanation="The workload was changed minutes ago and its controller has not even looked at the change. Usually "
    "the kube-controller-manager does not run or cannot reach the API.",
)
def controller_lags(state: ClusterState) -> Iterator[Fault]:
    """Workloads whose newest generation no controller has seen."""
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        for workload in state.of(kind):
            generation, seen = (
                workload.integer("metadata", "generation"),
                workload.integer("status", "observedGeneration"),
            )
            changed = max(workload.created, *_edits(workload), 0.0)
            old = state.now - changed > ROLLOUT_GRACES * state.grace_seconds
            if workload.deleted is None and generation > seen and old:
                yield Fault(
                    subject=workload.ref,
                    cause=f"no controller has acted on the last change of {workload.ref}: its generation is "
                    f"{generation}, status.observedGeneration is {seen}; the kube-controller-manager may be down",
                    evidence=(
                        evidence.value(workload, "status.observedGeneration", seen),
                        evidence.value(workload, "metadata.generation", generation),
                    ),
                    next_check="kubectl -n kube-system get pods,leases",
                    since=changed,
                )


def _edits(each: ClusterObject) -> Iterator[float]:
    for entry in each.children("metadata", "managedFields"):
        yield moment(text(entry, "time")) or 0.0


@Row(
    id="W02",
    title="Deployment is not available",
    severity="critical",
    kinds=("Deployment",),
    reads=("status.conditions[Available]", "status.availableReplicas", "spec.replicas"),
    explanation="Fewer pods are ready than the Deployment needs. It is a symptom: the cause lies with the pods or with "
    "what keeps them from being made. Only a warning while some pods are available.",
)
def unavailable(state: ClusterState) -> Iterator[Fault]:
    """Deployments without minimum availability, for longer than the grace."""
    for deployment in state.of("Deployment"):
        condition = deployment.condition("Available")
        wanted = wanted_replicas(deployment)
        since = moment(text(condition, "lastTransitionTime")) or deployment.created
        if deployment.deleted is not None or text(condition, "status") != "False" or not wanted:
            continue
        if state.now - since < state.grace_seconds + _waits_seconds(deployment, wanted):
            continue
        available = deployment.integer("status", "availableReplicas")
        yield Fault(
            subject=deployment.ref,
            role="symptom",
            severity="warning" if available else "critical",
            cause=f"{available} of {wanted} pods of {deployment.ref} are available",
            evidence=(
                evidence.value(deployment, "status.availableReplicas", available),
                evidence.value(deployment, "spec.replicas", wanted),
                evidence.value(deployment, "status.conditions[type=Available].reason", text(condition, "reason")),
            ),
            next_check=f"kubectl -n {deployment.namespace} describe deployment {deployment.name}",
            because=sick_pods(state, deployment),
            since=since,
        )


def _waits_seconds(deployment: ClusterObject, wanted: int) -> int:
    """How long ready pods have to be ready until they count as available."""
    return (
        deployment.integer("spec", "minReadySeconds") if deployment.integer("status", "readyReplicas") >= wanted else 0
    )


@Row(
    id="W05",
    title="Rollout is paused while a change waits",
    severity="warning",
    kinds=("Deployment", "ReplicaSet"),
    reads=("spec.paused", "spec.template", "ReplicaSet spec.template"),
    explanation="The Deployment is paused, and its template is newer than its newest ReplicaSet: the change reaches no "
    "pod until `kubectl rollout resume`. A paused Deployment without a waiting change is only worth knowing.",
)
def paused(state: ClusterState) -> Iterator[Fault]:
    """Paused Deployments."""
    for deployment in state.of("Deployment"):
        if not deployment.boolean("spec", "paused") or deployment.deleted is not None:
            continue
        newest = next(iter(replica_sets_newest_first(state, deployment)), None)
        differences = _waiting_changes(deployment, newest)
        never = newest is None and wanted_replicas(deployment) > 0 and state.covers("ReplicaSet", deployment.namespace)
        waits = bool(differences) or never
        what = "it was paused before its first rollout, so it has no pods" if never else "nothing waits for it"
        if differences:
            what = f"this change reaches no pod: {'; '.join(map(str, differences[:_SHOWN_DIFFERENCES]))}"
        yield Fault(
            subject=deployment.ref,
            title=None if waits else "Rollouts are paused",
            severity="critical" if never else "warning" if waits else "info",
            cause=f"{deployment.ref} is paused (spec.paused is true); {what}",
            evidence=(evidence.field(deployment, "spec", "paused"), *difference_evidence(deployment, differences)),
            next_check=f"kubectl -n {deployment.namespace} rollout history deployment/{deployment.name}",
        )


def _waiting_changes(deployment: ClusterObject, newest: ClusterObject | None) -> tuple[Difference, ...]:
    if newest is None:
        return ()
    return template_differences(newest.child("spec", "template"), deployment.child("spec", "template"))
