"""Rules for Services without ready endpoints, and for Services that clients cannot reach."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import event, field, value
from holmes.diagnosis.facts.fixes import changed, provided, relabelled, scaled_up
from holmes.diagnosis.facts.logs import wanted_logs
from holmes.diagnosis.facts.pods import containers_of, is_sick
from holmes.diagnosis.facts.services import (
    has_ready_endpoints,
    is_dynamic,
    lost_by_rollout,
    nearest_workload,
    pods_behind,
    selecting_services,
    selector_of,
    unready_seconds,
)
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import labels_of
from holmes.diagnosis.facts.typos import hint
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, moment, text
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.services import Mismatch
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
        "No pod and no workload has the labels of the Service's selector, so the Service has no endpoints. The "
        "workload with the most similar labels and name is probably the intended workload, and the finding names the "
        "label that differs. If an older ReplicaSet of that workload had the labels, the workload is the culprit, not "
        "the Service. Services without a selector, Services whose workload has zero replicas, and Services that "
        "operators created are not faults. Missing labels that software sets on running pods (leader, role) are not "
        "faults either. Usually the selector or the label of the template must be corrected."
    ),
)
def selector_matches_nothing(state: ClusterState) -> Iterator[Fault]:
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
    severity = _severity(state, service, mismatch)
    lost = f"; the last rollout of {workload.ref} removed the label from its pods" if older else ""
    return Fault(
        subject=service.ref,
        culprit=workload.ref if older else service.ref,
        cause=(
            f"{service.ref} selects no pods: its selector differs from the labels of {workload.ref} in "
            f"{mismatch.differences(selector)}{lost}"
        ),
        evidence=(labels, chosen) if older else (chosen, labels),
        next_check=f"kubectl -n {service.namespace} get pods --show-labels",
        severity=severity,
        since=older.created if older else None,
        logs=consumer_logs(state, _consumers(state, service)),
        fix=() if older or severity == "info" else relabelled(chosen, selector, mismatch.template.labels),
    )


def _severity(state: ClusterState, service: ClusterObject, mismatch: Mismatch) -> Severity:
    """Return critical, or a lower severity for preview, canary and leader Services, which may lack pods."""
    consumed = _is_consumed(state, service)
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
    """Report a Service whose workload was deleted or never existed.

    If the Service has no clients, the severity is info.
    """
    consumed = _is_consumed(state, service)
    return Fault(
        subject=service.ref,
        title="Service selects no pods: no workload has similar labels",
        cause=(
            f"{service.ref} {'is used but ' if consumed else ''}selects no pods: no workload in namespace "
            f"{service.namespace} has labels similar to its selector, so the workload behind it does not exist"
        ),
        evidence=(field(service, "spec", "selector"),),
        next_check=f"kubectl -n {service.namespace} get deployments,statefulsets,pods --show-labels",
        severity="critical" if consumed and service.owner is None else "info",
    )


def _is_consumed(state: ClusterState, service: ClusterObject) -> bool:
    """Return whether a workload or an Ingress refers to the Service."""
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
        "The selector is correct, but no pod behind the Service is ready. If no pod exists, the workload has zero "
        "replicas or its pods cannot be created. This is a symptom. The cause is in the pods or the workload. Services "
        "with publishNotReadyAddresses, pods that are just starting, and Services of Jobs are not faults. A workload "
        "with zero replicas is reported only when the Service is used."
    ),
)
def no_ready_endpoints(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        if not state.covers("Pod", service.namespace) or has_ready_endpoints(state, service):
            continue
        pods = pods_behind(state, service)
        fault = _pods_not_ready(state, service, pods) if pods else _no_pods(state, service)
        if fault is not None:
            yield fault


def _pods_not_ready(state: ClusterState, service: ClusterObject, pods: tuple[ClusterObject, ...]) -> Fault | None:
    waiting = [pod for pod in pods if unready_seconds(state, pod) >= state.patience_seconds]
    workloads = tuple(dict.fromkeys(state.workload_of(pod) for pod in pods))
    if not waiting or all(each.kind in {"Job", "CronJob"} for each in workloads):
        return None
    names = ", ".join(str(each.ref) for each in workloads[:3])
    return Fault(
        subject=service.ref,
        culprit=workloads[0].ref,
        cause=f"{service.ref} has no ready endpoints: 0 of {len(pods)} pods of {names} are ready",
        evidence=tuple(
            value(pod, "status.conditions[type=Ready].status", text(pod.condition("Ready"), "status") or "missing")
            for pod in waiting[:3]
        ),
        next_check=f"kubectl -n {service.namespace} get pods -o wide",
        role="symptom",
        because=(*(each.ref for each in workloads), *(pod.ref for pod in waiting)),
        since=min(moment(text(pod.condition("Ready"), "lastTransitionTime")) or pod.created for pod in waiting),
        # Long before its probe fails, a pod may log which Service it waits for.
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
        severity=("critical" if _is_consumed(state, service) else "info") if idle else None,
        role="symptom",
        because=tuple(each.ref for each in workloads),
        fix=(scaled_up(state, workload),) if idle and _is_consumed(state, service) else (),
    )


_PENDING_GRACES: Final = 2
_ALLOCATION_REASONS: Final = (
    "ClusterIPOutOfRange",
    "ClusterIPNotAllocated",
    "ClusterIPAlreadyAllocated",
    "ClusterIPNotValid",
    "ClusterIPOutOfSpace",
    "PortOutOfRange",
    "PortNotAllocated",
    "PortAlreadyAllocated",
    "PortRangeFull",
    "FailedToAllocateNodePort",
)
_IN_CLUSTER: Final = expression(r"^(?P<name>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(?:\..*)?$")


@Row(
    id="N-S06",
    title="Load balancer has no address",
    severity="warning",
    kinds=("Service",),
    reads=("spec.type", "status.loadBalancer.ingress", "event SyncLoadBalancerFailed"),
    explanation=(
        "A Service of type LoadBalancer has no address. The cluster has no load balancer provider (cloud controller "
        "or MetalLB), or the provider failed and its event gives the reason. Inside the cluster, the Service still "
        "works. A Service younger than two grace periods is ignored, because it may still get an address."
    ),
)
def load_balancer_pending(state: ClusterState) -> Iterator[Fault]:
    for service in state.of("Service"):
        if service.text("spec", "type") != "LoadBalancer" or service.deleted is not None:
            continue
        failed = state.events_of(service, "SyncLoadBalancerFailed", "CreatingLoadBalancerFailed", "AllocationFailed")
        has_address = bool(service.children("status", "loadBalancer", "ingress"))
        if has_address or state.age_seconds(service) < _PENDING_GRACES * state.patience_seconds:
            continue
        why = f": {failed[-1].message}" if failed else ": no controller in the cluster has assigned an address"
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref} of type LoadBalancer has no external address{why}",
            evidence=(
                *((event(failed[-1]),) if failed else ()),
                field(service, "status", "loadBalancer"),
                field(service, "spec", "type"),
            ),
            next_check=f"kubectl -n {service.namespace} describe service {service.name}",
            since=service.created,
        )


_REPAIRED: Final = 3
"""Maximum number of repair events at which the severity is still info.

A busy control plane writes a few of these events without a fault.
"""


@Row(
    id="N-S07a",
    title="Service cannot get its address or port",
    severity="critical",
    kinds=("Service",),
    reads=("events ClusterIP... and Port... of the Service",),
    explanation=(
        "The control plane reports that the cluster IP or node port of the Service is out of range, used twice or not "
        "allocated. Usually the Service must be recreated, or the number in its spec must be changed."
    ),
)
def allocation_failed(state: ClusterState) -> Iterator[Fault]:
    for service in state.of("Service"):
        found = state.events_of(service, *_ALLOCATION_REASONS)
        if not found or service.deleted is not None:
            continue
        newest = found[-1]
        key = "ports" if newest.reason.startswith(("Port", "Failed")) else "clusterIP"
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref} has a fault in spec.{key}: {newest.message}",
            evidence=(field(service, "spec", key), event(newest)),
            next_check=f"kubectl -n {service.namespace} describe service {service.name}",
            # If the event does not repeat, the control plane has repaired the fault.
            severity="info" if newest.count <= _REPAIRED else "critical",
            since=newest.first,
        )


@Row(
    id="N-S07b",
    title="External name cannot be resolved",
    severity="critical",
    kinds=("Service",),
    reads=("spec.externalName", "Services of the cluster", "logs of clients"),
    explanation=(
        "A Service of type ExternalName is an alias in DNS. The alias fails when it names a Service of the cluster "
        "that does not exist, or an IP address, which is not a name. A name outside the cluster is reported only when "
        "a client's log shows that the name cannot be resolved."
    ),
)
def external_name_wrong(state: ClusterState) -> Iterator[Fault]:
    for service in state.of("Service"):
        name = service.text("spec", "externalName").rstrip(".")
        if service.text("spec", "type") != "ExternalName" or service.deleted is not None:
            continue
        why = _why_external_name_fails(state, name)
        lines = [each.line for each in failures(state).get(service.ref, ()) if each.kind == "unresolved"]
        if not why and not lines:
            continue
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref} is an alias of {name!r}, {why or 'which cannot be resolved'}",
            evidence=(field(service, "spec", "externalName"), *lines[:2]),
            next_check=f"kubectl -n {service.namespace} get service {service.name} -o yaml",
            severity="critical" if lines or service.ref in edges(state) else "warning",
            because=(_target_service(name),) if _IN_CLUSTER.match(name) else (),
            fix=(provided(_target_service(name), service.ref),) if why and _IN_CLUSTER.match(name) else (),
        )


def _why_external_name_fails(state: ClusterState, name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return "which is an IP address, not a name"
    if not _IN_CLUSTER.match(name):
        return ""
    ref = _target_service(name)
    if not state.is_missing("Service", ref.namespace, ref.name):
        return ""
    return f"but {ref} does not exist{hint(ref.name, [each.name for each in state.of('Service', ref.namespace)])}"


def _target_service(name: str) -> ObjectRef:
    match = _IN_CLUSTER.match(name)
    assert match is not None  # noqa: S101  callers match the name first
    return ObjectRef(kind="Service", namespace=match["namespace"], name=match["name"])


@Row(
    id="N-S07c",
    title="Service uses only endpoints on the client's node, but that node has none",
    severity="warning",
    kinds=("Service", "Pod"),
    reads=("spec.internalTrafficPolicy", "spec.nodeName of pods behind the Service and of its clients"),
    explanation=(
        "With internalTrafficPolicy: Local, requests are sent only to pods on the client's own node. If that node has "
        "no ready pod, the requests are dropped. Only clients whose configuration names the Service are checked. "
        "Usually you must remove the policy, or run the workload on every node (DaemonSet)."
    ),
)
def local_policy_without_endpoint(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        if service.text("spec", "internalTrafficPolicy") != "Local":
            continue
        served = {pod.text("spec", "nodeName") for pod in pods_behind(state, service) if pod_ready(pod)}
        if not served:
            continue
        for edge in edges(state).get(service.ref, ()):
            cut_off = [pod for pod in state.pods_of(edge.consumer) if _runs_outside(pod, served)]
            if cut_off:
                yield _cut_off(service, edge.consumer, cut_off[0])


def _runs_outside(pod: ClusterObject, served: set[str]) -> bool:
    node = pod.text("spec", "nodeName")
    return pod.text("status", "phase") == "Running" and bool(node) and node not in served


def _cut_off(service: ClusterObject, consumer: ClusterObject, pod: ClusterObject) -> Fault:
    return Fault(
        subject=service.ref,
        culprit=service.ref,
        cause=(
            f"{service.ref} has internalTrafficPolicy: Local and no ready pod on node "
            f"{pod.text('spec', 'nodeName')}, so requests of its client {consumer.ref} on this node are dropped"
        ),
        evidence=(field(service, "spec", "internalTrafficPolicy"), field(pod, "spec", "nodeName")),
        next_check=f"kubectl -n {service.namespace} describe service {service.name}",
        fix=(changed(service.ref, "spec.internalTrafficPolicy", "Cluster"),),
    )
