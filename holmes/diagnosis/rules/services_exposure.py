"""Services that are to be reached from outside or lead outside: load balancers, addresses, external names."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges, failures, is_ready
from holmes.diagnosis.facts.evidence import event, field
from holmes.diagnosis.facts.nearest import hint
from holmes.diagnosis.facts.service_backends import pods_behind, selecting_services
from holmes.diagnosis.rule import Fault, Row
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

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
_IN_CLUSTER: Final = re.compile(r"^(?P<name>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(?:\..*)?$")


@Row(
    id="N-S06",
    title="Load balancer has no address",
    severity="warning",
    kinds=("Service",),
    reads=("spec.type", "status.loadBalancer.ingress", "event SyncLoadBalancerFailed"),
    explanation=(
        "A Service of type LoadBalancer has got no address: nothing in the cluster makes load balancers (no cloud "
        "controller, no MetalLB), or it failed, which its event says. Inside of the cluster the Service works all the "
        "same. A Service that is younger than two graces is still waiting."
    ),
)
def load_balancer_pending(state: ClusterState) -> Iterator[Fault]:
    """Load balancers without an address."""
    for service in state.of("Service"):
        if service.text("spec", "type") != "LoadBalancer" or service.deleted is not None:
            continue
        failed = state.events_of(service, "SyncLoadBalancerFailed", "CreatingLoadBalancerFailed", "AllocationFailed")
        has_address = bool(service.children("status", "loadBalancer", "ingress"))
        if has_address or state.age_seconds(service) < _PENDING_GRACES * state.grace_seconds:
            continue
        why = f": {failed[-1].message}" if failed else ": nothing in the cluster has given it one"
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
"""So often the control plane may repair an address, which it also does when it is only busy."""


@Row(
    id="N-S07a",
    title="Service cannot get its address or port",
    severity="critical",
    kinds=("Service",),
    reads=("events ClusterIP... and Port... of the Service",),
    explanation=(
        "The control plane reports that the Service's cluster IP or node port is out of range, used twice or not "
        "registered. Usually the Service is made anew, or the number in its spec is changed."
    ),
)
def allocation_failed(state: ClusterState) -> Iterator[Fault]:
    """Services with an allocation error in their events."""
    for service in state.of("Service"):
        found = state.events_of(service, *_ALLOCATION_REASONS)
        if not found or service.deleted is not None:
            continue
        newest = found[-1]
        key = "ports" if newest.reason.startswith(("Port", "Failed")) else "clusterIP"
        yield Fault(
            subject=service.ref,
            cause=f"{service.ref} has a problem with its spec.{key}: {newest.message}",
            evidence=(field(service, "spec", key), event(newest)),
            next_check=f"kubectl -n {service.namespace} describe service {service.name}",
            # Repaired by the control plane itself, unless it goes on.
            severity="info" if newest.count <= _REPAIRED else "critical",
            since=newest.first,
        )


@Row(
    id="N-S07b",
    title="External name leads nowhere",
    severity="critical",
    kinds=("Service",),
    reads=("spec.externalName", "Services of the cluster", "logs of consumers"),
    explanation=(
        "A Service of type ExternalName is an alias in DNS. It fails when it names a Service of the cluster that does "
        "not exist, or an IP address, which is no name. A name outside of the cluster is only judged when the log of a "
        "client shows that it cannot be resolved."
    ),
)
def external_name_wrong(state: ClusterState) -> Iterator[Fault]:
    """External names that are addresses, or that name a missing Service."""
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
        )


def _why_external_name_fails(state: ClusterState, name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return "which is an IP address and no name"
    if not _IN_CLUSTER.match(name):
        return ""
    ref = _target_service(name)
    if not state.is_missing("Service", ref.namespace, ref.name):
        return ""
    return f"but {ref} does not exist{hint(ref.name, [each.name for each in state.of('Service', ref.namespace)])}"


def _target_service(name: str) -> ObjectRef:
    match = _IN_CLUSTER.match(name)
    assert match is not None  # noqa: S101  callers have looked
    return ObjectRef(kind="Service", namespace=match["namespace"], name=match["name"])


@Row(
    id="N-S07c",
    title="Service keeps requests on the node, but a client's node has no endpoint",
    severity="warning",
    kinds=("Service", "Pod"),
    reads=("spec.internalTrafficPolicy", "spec.nodeName of pods behind the Service and of its clients"),
    explanation=(
        "With internalTrafficPolicy: Local a request is only sent to pods on the client's own node; where none is "
        "ready it is dropped. Judged for clients that are known from settings. Usually the policy is removed, or the "
        "workload runs on every node (DaemonSet)."
    ),
)
def local_policy_without_endpoint(state: ClusterState) -> Iterator[Fault]:
    """Clients on nodes without an endpoint of a Service that keeps requests on the node."""
    for service in selecting_services(state):
        if service.text("spec", "internalTrafficPolicy") != "Local":
            continue
        served = {pod.text("spec", "nodeName") for pod in pods_behind(state, service) if is_ready(pod)}
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
            f"{service.ref} has internalTrafficPolicy: Local and no ready pod on node {pod.text('spec', 'nodeName')}, "
            f"where {consumer.ref}, which uses it, runs: its requests are dropped"
        ),
        evidence=(field(service, "spec", "internalTrafficPolicy"), field(pod, "spec", "nodeName")),
        next_check=f"kubectl -n {service.namespace} describe service {service.name}",
    )
