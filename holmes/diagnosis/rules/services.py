"""Services without endpoints: the selector matches nothing, or what it matches does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.edges import consumer_logs, edges, is_sick
from holmes.diagnosis.facts.evidence import field, value
from holmes.diagnosis.facts.label_index import labels_of
from holmes.diagnosis.facts.last_words import wanted_logs
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.selector_mismatch import is_dynamic, lost_by_rollout, nearest_workload
from holmes.diagnosis.facts.service_backends import (
    has_ready_endpoints,
    pods_behind,
    selecting_services,
    selector_of,
    unready_seconds,
)
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, text
from holmes.kubernetes.moments import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.selector_mismatch import Mismatch
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Severity


@Row(
    id="N-S01",
    title="Service selects no pods: its selector matches no workload",
    severity="critical",
    kinds=("Service",),
    needs=("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
    reads=("spec.selector", "template labels of workloads", "EndpointSlices"),
    explanation=(
        "No pod and no workload has the labels of the Service's selector, so that the Service has no endpoints. The "
        "workload that was meant is the one whose labels and name come closest; the differing label is named. When an "
        "older ReplicaSet of that workload still had the labels, the workload was changed, not the Service. Services "
        "without a selector, Services whose workload is scaled to zero, Services made by operators and labels that are "
        "set on running pods (leader, role) are no fault. Usually the selector, or the label of the template, is "
        "corrected."
    ),
)
def selector_matches_nothing(state: ClusterState) -> Iterator[Fault]:
    """Services whose selector no pod and no workload has."""
    for service in selecting_services(state):
        selector = selector_of(service)
        if not state.covers("Pod", service.namespace) or pods_behind(state, service):
            continue
        if labels_of(state).templates.selected(service.namespace, selector) or has_ready_endpoints(state, service):
            continue
        mismatch = nearest_workload(state, service.name, service.namespace, selector)
        fault = _without_workload(state, service) if mismatch is None else _mismatched(state, service, mismatch)
        if fault is not None:
            yield fault


def _mismatched(state: ClusterState, service: ClusterObject, mismatch: Mismatch) -> Fault:
    selector = selector_of(service)
    workload = mismatch.workload
    older = lost_by_rollout(state, workload, selector)
    chosen = field(service, "spec", "selector")
    labels = value(workload, mismatch.template.path.removesuffix("spec") + "metadata.labels", mismatch.template.labels)
    lost = f"; the last rollout of {workload.ref} took the label from its pods" if older else ""
    return Fault(
        subject=service.ref,
        culprit=workload.ref if older else service.ref,
        cause=(
            f"{service.ref} selects no pods: its selector differs from the labels of {workload.ref} in "
            f"{mismatch.differences(selector)}{lost}"
        ),
        evidence=(labels, chosen) if older else (chosen, labels),
        next_check=f"kubectl -n {service.namespace} get pods --show-labels",
        severity=_severity(state, service, mismatch),
        since=older.created if older else None,
        logs=consumer_logs(state, _consumers(state, service)),
    )


def _severity(state: ClusterState, service: ClusterObject, mismatch: Mismatch) -> Severity:
    """Previews, canaries and leader Services wait for their pods by design, unless somebody needs them now."""
    consumed = is_consumed(state, service)
    if service.owner is not None and not consumed:
        return "info"
    if is_dynamic(state, mismatch, selector_of(service)):
        return "warning" if any(is_sick(state, each) for each in _consumers(state, service)) else "info"
    if consumed or service.name == mismatch.workload.name:
        return "critical"
    others = [
        each
        for each in state.of("Service", service.namespace)
        if each is not service and selector_of(each).items() <= mismatch.template.labels.items() and selector_of(each)
    ]
    return "info" if others else "critical"


def _without_workload(state: ClusterState, service: ClusterObject) -> Fault | None:
    """The workload is gone, or was never there: only worth a warning when somebody needs it."""
    consumed = is_consumed(state, service)
    return Fault(
        subject=service.ref,
        title="Service selects no pods: no workload looks like its selector",
        cause=(
            f"{service.ref} selects no pods, and no workload of namespace {service.namespace} has labels like its "
            f"selector{' although it is used' if consumed else ''}: the workload behind it does not exist"
        ),
        evidence=(field(service, "spec", "selector"),),
        next_check=f"kubectl -n {service.namespace} get deployments,statefulsets,pods --show-labels",
        severity="critical" if consumed and service.owner is None else "info",
    )


def is_consumed(state: ClusterState, service: ClusterObject) -> bool:
    """Whether a workload or an Ingress names the Service."""
    if service.ref in edges(state):
        return True
    for ingress in state.of("Ingress", service.namespace):
        paths = [path for rule in ingress.children("spec", "rules") for path in children(rule, "http", "paths")]
        backends = [at(path, "backend") for path in paths] + [ingress.at("spec", "defaultBackend")]
        if any(text(backend, "service", "name") == service.name for backend in backends):
            return True
    return False


def _consumers(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    return tuple(edge.consumer for edge in edges(state).get(service.ref, ()))


@Row(
    id="N-S02",
    title="Service has no ready endpoints",
    severity="critical",
    kinds=("Service", "Pod"),
    needs=("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"),
    reads=("spec.selector", "status.conditions[type=Ready] of the pods", "spec.replicas of the workload"),
    explanation=(
        "The selector is right, but no pod behind it is ready, or there is none: the workload is scaled to zero or its "
        "pods cannot be made. This is a symptom; the pods or the workload say why. Services that publish pods that are "
        "not ready, pods that are just starting, and Services of Jobs are no fault. A workload that is scaled to zero "
        "counts only when somebody uses the Service."
    ),
)
def no_ready_endpoints(state: ClusterState) -> Iterator[Fault]:
    """Services whose pods are not ready or not there."""
    for service in selecting_services(state):
        if not state.covers("Pod", service.namespace) or has_ready_endpoints(state, service):
            continue
        pods = pods_behind(state, service)
        fault = _pods_not_ready(state, service, pods) if pods else _no_pods(state, service)
        if fault is not None:
            yield fault


def _pods_not_ready(state: ClusterState, service: ClusterObject, pods: tuple[ClusterObject, ...]) -> Fault | None:
    waiting = [pod for pod in pods if unready_seconds(state, pod) >= state.grace_seconds]
    workloads = tuple(dict.fromkeys(state.workload_of(pod) for pod in pods))
    if not waiting or all(each.kind in {"Job", "CronJob"} for each in workloads):
        return None
    names = ", ".join(str(each.ref) for each in workloads[:3])
    return Fault(
        subject=service.ref,
        culprit=workloads[0].ref,
        cause=f"{service.ref} has no ready endpoints: none of the {len(pods)} pods of {names} is ready",
        evidence=tuple(
            value(pod, "status.conditions[type=Ready].status", text(pod.condition("Ready"), "status") or "missing")
            for pod in waiting[:3]
        ),
        next_check=f"kubectl -n {service.namespace} get pods -o wide",
        role="symptom",
        because=(*(each.ref for each in workloads), *(pod.ref for pod in waiting)),
        since=min(moment(text(pod.condition("Ready"), "lastTransitionTime")) or pod.created for pod in waiting),
        # What is not ready yet may say itself for what it waits, long before its probe has failed for too long.
        logs=tuple(key for each in containers_of(waiting[0]) if each.running for key in wanted_logs(each)),
    )


def _no_pods(state: ClusterState, service: ClusterObject) -> Fault | None:
    templates = labels_of(state).templates.selected(service.namespace, selector_of(service))
    workloads = [each.workload for each in templates if each.workload.kind not in {"Job", "CronJob"}]
    workloads = [each for each in workloads if state.age_seconds(each) >= state.grace_seconds]
    if not workloads or service.owner is not None:
        return None
    workload = workloads[0]
    idle = all(each.at("spec", "replicas") == 0 for each in workloads)
    if workload.kind == "DaemonSet" and not workload.integer("status", "desiredNumberScheduled"):
        return None
    path = ("spec", "replicas") if idle else ("status",)
    return Fault(
        subject=service.ref,
        title="Service has no endpoints: its workload is scaled to zero" if idle else None,
        culprit=workload.ref,
        cause=(
            f"{service.ref} has no endpoints: {workload.ref} "
            + ("is scaled to 0 replicas (spec.replicas = 0)" if idle else "has no pods")
        ),
        evidence=(field(workload, *path), field(service, "spec", "selector")),
        next_check=f"kubectl -n {workload.namespace} describe {workload.kind.lower()} {workload.name}",
        severity=("critical" if is_consumed(state, service) else "info") if idle else None,
        role="symptom",
        because=tuple(each.ref for each in workloads),
    )
