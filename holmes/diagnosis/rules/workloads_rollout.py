"""Rules for rollouts that do not finish, and for workloads that are unavailable, paused or scaled to zero."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.actors import last_write, scaled_by
from holmes.diagnosis.facts.changes import (
    autoscalers_of,
    last_rollout,
    replica_sets_newest_first,
    services_selecting,
    template_differences,
)
from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.fixes import changed, scaled_up
from holmes.diagnosis.facts.pods import is_sick
from holmes.diagnosis.facts.producers import stopped_component
from holmes.diagnosis.facts.starts import are_starting
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, moment, text, text_map
from holmes.values.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.changes import Difference
    from holmes.diagnosis.facts.edges import Edge
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef


ROLLOUT_GRACES: Final = 5
"""Maximum duration of a rollout, in grace periods."""

_SHOWN_DIFFERENCES: Final = 5
_MOST_PODS: Final = 20


def wanted_replicas(workload: ClusterObject) -> int:
    """Return `spec.replicas`, or 1 if the field is not set."""
    written = workload.at("spec", "replicas")
    return written if isinstance(written, int) and not isinstance(written, bool) else 1


def sick_pods(state: ClusterState, workload: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the pods of a workload that are not ready. Their faults explain the fault of the workload."""
    pods = (pod for pod in state.pods_of(workload) if not pod_ready(pod))
    return tuple(pod.ref for pod in islice(pods, _MOST_PODS))


def _difference_evidence(workload: ClusterObject, differences: tuple[Difference, ...]) -> tuple[Evidence, ...]:
    """Return the first differences between two templates: each new value, followed by the old value."""
    return tuple(
        Evidence(object=workload.ref, path=each.path, value=f"{each.new} (before: {each.old})")
        for each in differences[:_SHOWN_DIFFERENCES]
    )


def _in_words(differences: tuple[Difference, ...]) -> str:
    told = "; ".join(map(str, differences[:_SHOWN_DIFFERENCES]))
    return f"; the rollout changed {told}" if told else ""


@Row(
    id="W01",
    title="Rollout is stuck",
    severity="critical",
    kinds=("Deployment", "ReplicaSet"),
    reads=("status.conditions[Progressing]", "ReplicaSet status.readyReplicas", "ReplicaSet spec.template"),
    explanation="The newest ReplicaSet of a Deployment does not become ready. Its progress deadline has passed, or the "
    "older ReplicaSet still has pods after several minutes. The differences between the two ReplicaSets are shown. "
    "This is a symptom of a fault in the new pods. `kubectl rollout undo` restores the previous version. The severity "
    "is warning while old pods are available.",
)
def rollout_stuck(state: ClusterState) -> Iterator[Fault]:
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
            cause=f"The rollout of {deployment.ref} is stuck: {what}{_in_words(differences)}",
            evidence=(*_difference_evidence(deployment, differences), *proof),
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
    if newest is None or state.age_seconds(newest) < ROLLOUT_GRACES * state.patience_seconds:
        return None
    wanted, ready = newest.integer("spec", "replicas"), newest.integer("status", "readyReplicas")
    others = [each for each in state.owned_by(deployment, "ReplicaSet") if each is not newest]
    if ready or not wanted or not any(each.integer("status", "replicas") for each in others):
        return None
    proof = (
        evidence.value(newest, "status.readyReplicas", ready),
        evidence.field(newest, "spec", "replicas"),
    )
    return f"no pod of {newest.ref} is ready while older pods are still running", newest.created, proof


@Row(
    id="W01b",
    title="Controller does not process a change",
    severity="critical",
    kinds=("Deployment", "StatefulSet", "DaemonSet"),
    reads=(
        "metadata.generation",
        "status.observedGeneration",
        "metadata.managedFields[].time",
        "pod and Lease of the kube-controller-manager",
    ),
    explanation="The workload was changed minutes ago, and its controller has not processed the change. Usually the "
    "kube-controller-manager is down or cannot reach the API server.",
)
def controller_lags(state: ClusterState) -> Iterator[Fault]:
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        for workload in state.of(kind):
            generation, seen = (
                workload.integer("metadata", "generation"),
                workload.integer("status", "observedGeneration"),
            )
            edited = max(_edits(workload), default=0.0)
            changed = max(workload.created, edited)
            old = state.now - changed > ROLLOUT_GRACES * state.patience_seconds
            if workload.deleted is None and generation > seen and old:
                manager = stopped_component(state, "kube-controller-manager")
                yield Fault(
                    subject=workload.ref,
                    culprit=manager,
                    cause=f"No controller has processed the last change to {workload.ref}: its generation is "
                    f"{generation}, status.observedGeneration is {seen}; "
                    f"{f'{manager} is not working' if manager else 'the kube-controller-manager may be down'}",
                    evidence=(
                        evidence.value(workload, "status.observedGeneration", seen),
                        evidence.value(workload, "metadata.generation", generation),
                    ),
                    next_check="kubectl -n kube-system get pods,leases",
                    because=(manager,) if manager is not None else (),
                    since=edited or None,
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
    explanation="Fewer pods are ready than the Deployment requires. This is a symptom: the cause affects the pods or "
    "prevents their creation. The severity is warning while some pods are available.",
)
def unavailable(state: ClusterState) -> Iterator[Fault]:
    for deployment in state.of("Deployment"):
        condition = deployment.condition("Available")
        wanted = wanted_replicas(deployment)
        since = moment(text(condition, "lastTransitionTime")) or deployment.created
        if deployment.deleted is not None or text(condition, "status") != "False" or not wanted:
            continue
        if state.now - since < state.patience_seconds + _waits_seconds(deployment, wanted):
            continue
        if are_starting(state, deployment):
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
    """Return `minReadySeconds` if enough pods are ready but might not be available yet, otherwise 0."""
    return (
        deployment.integer("spec", "minReadySeconds") if deployment.integer("status", "readyReplicas") >= wanted else 0
    )


@Row(
    id="W05",
    title="Rollout is paused while a change waits",
    severity="warning",
    kinds=("Deployment", "ReplicaSet"),
    reads=("spec.paused", "spec.template", "ReplicaSet spec.template"),
    explanation=(
        "The Deployment is paused, and its template is newer than its newest ReplicaSet, so the change reaches no pod "
        "until you run `kubectl rollout resume`. The severity is info if no change is waiting."
    ),
)
def paused(state: ClusterState) -> Iterator[Fault]:
    for deployment in state.of("Deployment"):
        if not deployment.boolean("spec", "paused") or deployment.deleted is not None:
            continue
        newest = next(iter(replica_sets_newest_first(state, deployment)), None)
        differences = _waiting_changes(deployment, newest)
        never = newest is None and wanted_replicas(deployment) > 0 and state.covers("ReplicaSet", deployment.namespace)
        waits = bool(differences) or never
        what = "it was paused before its first rollout, so it has no pods" if never else "no change is waiting"
        if differences:
            what = f"this change reaches no pod: {'; '.join(map(str, differences[:_SHOWN_DIFFERENCES]))}"
        yield Fault(
            subject=deployment.ref,
            title=None if waits else "Rollouts are paused",
            severity="critical" if never else "warning" if waits else "info",
            cause=f"{deployment.ref} is paused (spec.paused is true); {what}",
            evidence=(evidence.field(deployment, "spec", "paused"), *_difference_evidence(deployment, differences)),
            next_check=f"kubectl -n {deployment.namespace} rollout history deployment/{deployment.name}",
            fix=(changed(deployment.ref, "spec.paused", right=False),) if waits else (),
        )


def _waiting_changes(deployment: ClusterObject, newest: ClusterObject | None) -> tuple[Difference, ...]:
    if newest is None:
        return ()
    return template_differences(newest.child("spec", "template"), deployment.child("spec", "template"))


_RECENT_SECONDS: Final = 3_600
_MOST_USERS: Final = 3
_SCALE_TO_ZERO: Final = "keda.sh"


@Row(
    id="W04",
    title="Workload is scaled to zero although it is needed",
    severity="critical",
    kinds=("Deployment", "StatefulSet"),
    needs=("Service",),
    reads=(
        "spec.replicas", "Service spec.selector", "Ingress backends", "HorizontalPodAutoscaler spec.scaleTargetRef",
        "settings and logs of clients", "events ScalingReplicaSet, SuccessfulDelete",
    ),
    explanation=(
        "The workload has spec.replicas 0. A Service without other pods selects it, or an autoscaler targets it. The "
        "severity is critical when an Ingress or autoscaler needs the workload, when clients of the Service fail, or "
        "when the workload has clients and was scaled down within the last hour. It is warning when the Service "
        "appears only in the settings of another workload. Otherwise it is info, because the scaling is probably "
        "intended. The rule ignores a workload that has a replacement behind its Service, or that KEDA scales."
    ),
)  # fmt: skip
def scaled_to_zero(state: ClusterState) -> Iterator[Fault]:
    routed = _routed_services(state)
    for workload in (*state.of("Deployment"), *state.of("StatefulSet")):
        if workload.at("spec", "replicas") != 0 or workload.deleted is not None or _is_scaled_by_keda(state, workload):
            continue
        services = _left_alone(state, workload)
        scaler = next(iter(autoscalers_of(state, workload)), None)
        if not services and scaler is None:
            continue
        proof, by = tuple(_scaled_down(state, workload)), scaled_by(state, workload)
        users = [edge for each in services for edge in edges(state).get(each.ref, ())]
        pointed_at = scaler is not None or any((each.namespace, each.name) in routed for each in services)
        severity = "critical" if pointed_at else _severity(state, services, users, recent=bool(proof))
        yield Fault(
            subject=workload.ref,
            culprit=by.ref if by is not None and by.proved and severity != "info" else workload.ref,
            severity=severity,
            title="Workload is scaled to zero and has no known client" if severity == "info" else None,
            cause=f"{workload.ref} is scaled to zero (spec.replicas is 0), "
            + (f"and {services[0].ref} has no other pods" if severity == "info" else _needed(services, scaler, users))
            + (f"; {by.words}" if by is not None else ""),
            evidence=(
                evidence.field(workload, "spec", "replicas"),
                *(evidence.field(each, "spec", "selector") for each in services),
                *((evidence.field(scaler, "spec", "scaleTargetRef"),) if scaler is not None else ()),
                *(by.evidence if by is not None else ()),
                *proof,
                *(edge.named for edge in users[:1]),
            ),
            next_check=f"kubectl -n {workload.namespace} describe {workload.kind.lower()} {workload.name}",
            since=last_write(workload, "f:replicas")[0] or None,
            logs=consumer_logs(state, [edge.consumer for edge in users]),
            fix=(scaled_up(state, workload),) if severity != "info" else (),
        )


def _severity(
    state: ClusterState, services: list[ClusterObject], users: list[Edge], *, recent: bool
) -> Literal["critical", "warning", "info"]:
    """Return the severity for a workload without an Ingress or autoscaler.

    The severity depends on the known clients of the workload's Services.
    """
    fails = any(failures(state).get(each.ref) for each in services)
    if not users:
        return "critical" if fails and recent else "info"
    return "critical" if fails or recent or any(is_sick(state, edge.consumer) for edge in users) else "warning"


def _needed(services: list[ClusterObject], scaler: ClusterObject | None, users: list[Edge]) -> str:
    needed = [*(str(each.ref) for each in services), *([str(scaler.ref)] if scaler is not None else [])]
    used = ", ".join(sorted({str(edge.consumer.ref) for edge in users})[:_MOST_USERS])
    words = f"{' and '.join(needed)} {'needs' if len(needed) == 1 else 'need'} it"
    return f"but {words}, and {used} uses the Service" if used else f"but {words}"


def _left_alone(state: ClusterState, workload: ClusterObject) -> list[ClusterObject]:
    """Return the Services that select the workload and have no other pods."""
    services = services_selecting(state, workload.namespace, template_of(workload).labels)
    return [
        service
        for service in services
        if not state.selected("Pod", workload.namespace, text_map(service.body, "spec", "selector"))
    ]


def _routed_services(state: ClusterState) -> set[tuple[str, str]]:
    """Return the namespace and name of every Service that is a backend of an Ingress."""
    found: set[tuple[str, str]] = set()
    for ingress in state.of("Ingress"):
        backends = [ingress.at("spec", "defaultBackend")]
        for rule in ingress.children("spec", "rules"):
            backends += [at(path, "backend") for path in children(rule, "http", "paths")]
        found |= {(ingress.namespace, text(backend, "service", "name")) for backend in backends}
    return found


def _is_scaled_by_keda(state: ClusterState, workload: ClusterObject) -> bool:
    """Return whether KEDA may scale the workload up when clients need it."""
    return any(
        each.kind == "ScaledObject" and text(each.body, "spec", "scaleTargetRef", "name") == workload.name
        for each in state.of(f"ScaledObject.{_SCALE_TO_ZERO}", workload.namespace)
    )


def _scaled_down(state: ClusterState, workload: ClusterObject) -> Iterator[Evidence]:
    """Yield events that show that the workload ran a short time ago."""
    for event in state.events_of(workload, "ScalingReplicaSet"):
        if (
            "scaled down" in event.message.lower()
            and "to 0" in event.message
            and state.now - event.last <= _RECENT_SECONDS
        ):
            yield evidence.event(event)
    if workload.kind == "StatefulSet":
        yield from (evidence.event(event) for event in state.events_of(workload, "SuccessfulDelete")[-1:])
