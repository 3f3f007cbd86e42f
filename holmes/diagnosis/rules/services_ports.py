"""Rules for Service ports without a matching container port."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import replica_sets_newest_first
from holmes.diagnosis.facts.edges import consumer_logs, edges, failures
from holmes.diagnosis.facts.evidence import field, log_line, value
from holmes.diagnosis.facts.fixes import corrected, retargeted
from holmes.diagnosis.facts.network import container_ports, service_ports
from holmes.diagnosis.facts.services import is_headless, pods_behind, selecting_services
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, child, children
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.network import ContainerPort, ServicePort
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, FixStep

_MOST_PROOFS: Final = 2
_DNS: Final = 53
_UDP: Final = expression(r"(?i)(?<![a-z])(?:udp[46]?|datagrams?|quic)(?![a-z])")
_TCP: Final = expression(r"(?i)(?<![a-z])(?:tcp[46]?|https?)(?![a-z])")
_LISTENS: Final = expression(r"(?i)\b(?:listen(?:ing|s)?|bound|serving)\b.{0,60}?(?<![a-z])tcp[46]?(?![a-z])")


@Row(
    id="N-S03",
    title="Service sends requests to a port that its pods do not have",
    severity="critical",
    kinds=("Service", "Pod"),
    reads=("spec.ports[].targetPort", "spec.containers[].ports of the pods", "probe ports", "logs of clients and pods"),
    explanation=(
        "A container must declare a named target port with the same name and protocol. Otherwise the port has no "
        "endpoints, which is critical. A numeric target port works without a declaration. It is suspicious if the "
        "containers declare other ports, and only these ports appear in their commands, variables and probes."
    ),
)
def target_port_is_wrong(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state, young=True):
        pods = pods_behind(state, service)
        if not pods or is_headless(service):
            continue
        kinds = {pod.owner.uid if pod.owner else pod.uid: pod for pod in pods}
        declared = tuple(each for pod in kinds.values() for each in container_ports(pod.child("spec")))
        for port in service_ports(service):
            if isinstance(port.target, str):
                yield from _named(state, service, port, pods, declared)
            elif (port.target, port.protocol) not in {(each.number, each.protocol) for each in declared}:
                yield from _numbered(state, service, port, pods, declared)


def _named(
    state: ClusterState,
    service: ClusterObject,
    port: ServicePort,
    pods: tuple[ClusterObject, ...],
    declared: tuple[ContainerPort, ...],
) -> Iterator[Fault]:
    target = str(port.target)
    if any(each.name == target and each.protocol == port.protocol for each in declared):
        return
    workload = state.workload_of(pods[0])
    renamed = _had_port_before(state, workload, target)
    names = sorted({f"{each.name or 'without a name'} ({each.number}/{each.protocol})" for each in declared})
    chosen = _target(service, port)
    has = value(workload, f"{template_of(workload).path}.containers[0].ports", declared_ports(workload))
    yield Fault(
        subject=service.ref,
        culprit=workload.ref if renamed else service.ref,
        cause=(
            f"{service.ref} forwards port {port.port} to the container port named {target!r} ({port.protocol}), but no "
            f"container of {workload.ref} has a port with this name"
            + (" since its last rollout" if renamed else "")
            + f"; declared ports: {', '.join(names) or 'none'}"
        ),
        evidence=(has, chosen) if renamed else (chosen, has),
        fix=() if renamed else (retargeted(chosen, port.protocol, declared),),
        next_check=f"kubectl -n {service.namespace} get endpointslices -l kubernetes.io/service-name={service.name}",
    )


def declared_ports(workload: ClusterObject) -> object:
    containers = children(template_of(workload).spec, "containers")
    return at(containers[0], "ports") if containers else None


def _had_port_before(state: ClusterState, workload: ClusterObject, target: str) -> bool:
    """Return whether the previous ReplicaSet declared the port."""
    before = replica_sets_newest_first(state, workload)[1:2] if workload.kind == "Deployment" else ()
    return any(
        port.name == target for each in before for port in container_ports(each.child("spec", "template", "spec"))
    )


def _numbered(
    state: ClusterState,
    service: ClusterObject,
    port: ServicePort,
    pods: tuple[ClusterObject, ...],
    ports: tuple[ContainerPort, ...],
) -> Iterator[Fault]:
    workload, target = state.workload_of(pods[0]), int(port.target)
    protocols = {each.protocol for each in ports if each.number == target}
    if protocols and protocols.isdisjoint(each.protocol for each in service_ports(service) if each.target == target):
        only = "/".join(sorted(protocols))
        spoken = _tcp_lines(state, service, port, pods) if port.protocol == "UDP" else ()
        if port.protocol != "UDP" or (spoken and port.port != _DNS):
            yield _other_protocol(service, port, workload, only, spoken)
        return
    declared = {(each.number, each.protocol) for each in ports}
    known = declared or {(number, "TCP") for number in _probe_ports(pods[0])}
    if not known or (target, port.protocol) in known or speaks_of(pods[0], target):
        return
    proofs = _refusals(state, service, port, pods)
    others = [each for each in service_ports(service) if each is not port]
    serves = any((each.target, each.protocol) in known or isinstance(each.target, str) for each in others)
    if not proofs and (serves or not declared or _has_other_service(state, service, pods[0], declared)):
        return
    listens_elsewhere = any(speaks_of(pods[0], number) for number, _ in known)
    written = ", ".join(f"{number}/{protocol}" for number, protocol in sorted(known))
    where = "declares only" if declared else "is probed at"
    yield Fault(
        subject=service.ref,
        culprit=service.ref,
        cause=(
            f"{service.ref} forwards port {port.port} to port {target} of its pods, but {workload.ref} {where} "
            f"{written}{', and client connections are refused' if proofs else ''}"
        ),
        evidence=(
            _target(service, port),
            value(workload, f"{template_of(workload).path}.containers[0].ports", declared_ports(workload)),
            *proofs,
        ),
        next_check=f"kubectl -n {service.namespace} get service {service.name} -o jsonpath='{{.spec.ports}}'",
        severity="critical" if proofs else "warning" if listens_elsewhere else "info",
        fix=(retargeted(_target(service, port), port.protocol, ports) if proofs or listens_elsewhere else None,),
        logs=consumer_logs(state, [edge.consumer for edge in edges(state).get(service.ref, ())]),
    )


def _tcp_lines(
    state: ClusterState, service: ClusterObject, port: ServicePort, pods: tuple[ClusterObject, ...]
) -> tuple[Evidence, ...]:
    """Return the lines that show TCP: of pods that listen, and of clients that failed. Pods that use UDP refute it.

    A container port without a protocol counts as TCP and is only information, so it proves nothing about the program.
    """
    logs = [(pod, key.container, log) for pod in pods for key, log in state.logs.items() if key.pod == pod.ref]
    settings = json.dumps(pods[0].children("spec", "containers"), default=str)
    if any(_UDP.search(each) for each in (settings, *(log for *_, log in logs))):
        return ()
    heard = [
        log_line(pod, name, line.strip(), previous=False)
        for pod, name, log in logs
        for line in log.splitlines()
        if _LISTENS.search(line)
    ]
    failed = (each for each in failures(state).get(service.ref, ()) if each.use.port == port.port)
    refused = [each.line for each in failed if _TCP.search(each.line.value)]
    return (*heard[-1:], *refused[:1])


def _other_protocol(
    service: ClusterObject, port: ServicePort, workload: ClusterObject, only: str, spoken: tuple[Evidence, ...]
) -> Fault:
    ports = value(workload, f"{template_of(workload).path}.containers[0].ports", declared_ports(workload))
    return Fault(
        subject=service.ref,
        culprit=service.ref,
        cause=f"{service.ref} forwards {port.protocol} port {port.port} to port {port.target} of its pods, which "
        f"{workload.ref} declares for {only} only",
        evidence=(_target(service, port), ports, *spoken),
        next_check=f"kubectl -n {service.namespace} get service {service.name} -o jsonpath='{{.spec.ports}}'",
        severity="warning",
        fix=(_protocol_fix(service, port, only),),
    )


def _protocol_fix(service: ClusterObject, port: ServicePort, only: str) -> FixStep | None:
    """Use the only protocol of the container port, unless the Service has the same port with this protocol already."""
    taken = any(each.port == port.port and each.index != port.index for each in service_ports(service))
    path = f"spec.ports[{port.index}].protocol"
    return None if taken or "/" in only else corrected(value(service, path, port.protocol), only)


def _target(service: ClusterObject, port: ServicePort) -> Evidence:
    found = at(service.children("spec", "ports")[port.index], "targetPort")
    key = "port" if found is None else "targetPort"
    return value(service, f"spec.ports[{port.index}].{key}", port.target if found is None else found)


def _probe_ports(pod: ClusterObject) -> set[int]:
    """Return the numeric ports at which the probes of a ready pod succeed."""
    if not pod_ready(pod):
        return set()
    probes = (
        at(container, probe, how, "port")
        for container in pod.children("spec", "containers")
        for probe in ("readinessProbe", "livenessProbe", "startupProbe")
        for how in ("httpGet", "tcpSocket", "grpc")
    )
    return {port for port in probes if isinstance(port, int)}


def speaks_of(pod: ClusterObject, port: int) -> bool:
    """Return whether the port number appears in a command, a variable or a probe of the pod's containers."""
    word = re.compile(rf"(?<!\d){port}(?!\d)")
    return any(
        word.search(json.dumps(at(container, key), default=str))
        for container in (*pod.children("spec", "containers"), *pod.children("spec", "initContainers"))
        for key in ("command", "args", "env", "readinessProbe", "livenessProbe", "startupProbe")
    )


def _refusals(
    state: ClusterState, service: ClusterObject, port: ServicePort, pods: tuple[ClusterObject, ...]
) -> tuple[Evidence, ...]:
    """Return the log lines of clients whose requests to this port failed.

    Returns no lines if no pod is ready, because requests then fail at every port.
    """
    if not any(pod_ready(pod) for pod in pods):
        return ()
    found = failures(state).get(service.ref, ())
    lines = [each.line for each in found if each.kind in {"refused", "failed"} and each.use.port in {port.port, None}]
    return tuple(lines[:_MOST_PROOFS])


def _has_other_service(
    state: ClusterState, service: ClusterObject, pod: ClusterObject, declared: set[tuple[int, str]]
) -> bool:
    """Return whether another Service uses a declared port of the pod.

    In this case, `service` may be intended for an undeclared port.
    """
    numbers = {number for number, _ in declared} | {each.name for each in container_ports(pod.child("spec"))}
    return any(
        each is not service and any(port.target in numbers for port in service_ports(each))
        for each in state.services_of(pod)
    )


@Row(
    id="N-S08",
    title="Headless Service does not translate ports",
    severity="warning",
    kinds=("Service", "Pod"),
    reads=("spec.clusterIP", "spec.ports[].port and targetPort", "settings and logs of clients"),
    explanation=(
        "Clients of a Service without a cluster IP connect directly to the pods, so targetPort has no effect for "
        "these clients. They must use the port at which the pods listen. The severity is critical when a client's log "
        "shows the failure."
    ),
)
def headless_ports(state: ClusterState) -> Iterator[Fault]:
    for service in selecting_services(state):
        pods = pods_behind(state, service)
        if not is_headless(service) or not pods:
            continue
        declared = [each for pod in pods[:1] for each in container_ports(pod.child("spec"))]
        names = {each.name: each.number for each in declared if each.name}
        numbers = {each.number for each in declared}
        for port in service_ports(service):
            target = names.get(port.target, 0) if isinstance(port.target, str) else port.target
            if target and target != port.port and port.port not in numbers and not speaks_of(pods[0], port.port):
                yield from _untranslated(state, service, port, target)


def _untranslated(state: ClusterState, service: ClusterObject, port: ServicePort, target: int) -> Iterator[Fault]:
    proofs = [
        each.line
        for each in failures(state).get(service.ref, ())
        if each.kind in {"refused", "failed"} and each.use.port in {port.port, None}
    ]
    for edge in edges(state).get(service.ref, ()):
        if edge.use.port != port.port:
            continue
        yield Fault(
            subject=service.ref,
            culprit=edge.named.object,
            cause=(
                f"{edge.consumer.ref} uses port {port.port} of {service.ref} ({edge.named.path}), which is "
                f"headless: its targetPort {target} has no effect, so clients must connect to port {target}"
            ),
            evidence=(
                edge.named,
                field(service, "spec", "clusterIP"),
                value(service, f"spec.ports[{port.index}]", dict(child(service.children("spec", "ports")[port.index]))),
                *proofs[:_MOST_PROOFS],
            ),
            next_check=f"kubectl -n {service.namespace} get service {service.name} -o yaml",
            severity="critical" if proofs else "warning",
            logs=consumer_logs(state, [edge.consumer]),
        )
