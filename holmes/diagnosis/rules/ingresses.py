"""Rules for Ingresses without a controller, and for Ingresses with a missing or unavailable Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import field, value
from holmes.diagnosis.facts.fixes import changed, corrected, exposed
from holmes.diagnosis.facts.network import backends_of, has_address, ingress_class, service_ports
from holmes.diagnosis.facts.services import (
    edited_at,
    has_ready_endpoints,
    pods_behind,
    selector_of,
    unready_seconds,
    was_edited,
)
from holmes.diagnosis.facts.templates import labels_of
from holmes.diagnosis.facts.typos import hint, intended_service, meant, nearest, workload_named
from holmes.diagnosis.rule import Fault, Row
from holmes.values.findings import Evidence, FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.network import Backend
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


@Row(
    id="I01",
    title="Ingress has no controller because its class does not exist",
    severity="critical",
    kinds=("Ingress", "IngressClass"),
    reads=("spec.ingressClassName", "annotation kubernetes.io/ingress.class", "status.loadBalancer.ingress"),
    explanation=(
        "No controller handles the Ingress. Its class does not exist, or the Ingress names no class and the cluster "
        "has no default class. An Ingress that has an address is treated as handled. It is still reported if its "
        "class is clearly misspelled, because the address may be outdated. An Ingress without a class has severity "
        "info, because some controllers require no class. The severity is warning if the cluster has classes and "
        "another Ingress has an address. Correct the class name, or install an ingress controller."
    ),
)
def class_is_missing(state: ClusterState) -> Iterator[Fault]:
    if not state.covers("IngressClass"):
        return
    classes = {each.name: each for each in state.of("IngressClass")}
    served = any(has_address(each) for each in state.of("Ingress"))
    has_default = any(each.annotations.get(_DEFAULT_CLASS) == "true" for each in classes.values())
    for ingress in state.of("Ingress"):
        name = ingress_class(ingress)
        if ingress.deleted is not None or name in classes or state.age_seconds(ingress) < state.grace_seconds:
            continue
        if name:
            yield from _named_class(ingress, name, tuple(classes))
        elif not has_default and not has_address(ingress):
            yield Fault(
                subject=ingress.ref,
                title="Ingress has no controller because it has no class",
                cause=(
                    f"{ingress.ref} has no spec.ingressClassName, and "
                    + ("no IngressClass is the default" if classes else "no IngressClass exists")
                    + ", so no controller handles the Ingress"
                ),
                evidence=(field(ingress, "spec", "ingressClassName"), field(ingress, "status", "loadBalancer")),
                next_check="kubectl get ingressclasses",
                severity="warning" if classes and served else "info",
            )


def _named_class(ingress: ClusterObject, name: str, classes: tuple[str, ...]) -> Iterator[Fault]:
    """Report a class that does not exist, unless a controller seems to handle the Ingress without an IngressClass."""
    near, right = nearest(name, classes), meant(name, classes)
    by_annotation = not ingress.text("spec", "ingressClassName")
    if (has_address(ingress) and near is None) or (by_annotation and not classes):
        return
    path = "metadata.annotations[kubernetes.io/ingress.class]" if by_annotation else "spec.ingressClassName"
    yield Fault(
        subject=ingress.ref,
        cause=(
            (
                f"{ingress.ref} names the class {name!r} in {path}, but this IngressClass does not "
                f"exist{hint(name, classes)}"
            )
            + ("" if classes else ", and the cluster has no IngressClass")
        ),
        evidence=(value(ingress, path, name), field(ingress, "status", "loadBalancer")),
        next_check="kubectl get ingressclasses",
        severity="critical" if classes else "warning",
        fix=(changed(ingress.ref, "spec.ingressClassName", right) if right and not by_annotation else None,),
    )


@Row(
    id="I02a",
    title="Service of the Ingress does not exist",
    severity="critical",
    kinds=("Ingress", "Service"),
    reads=("spec.defaultBackend", "spec.rules[].http.paths[].backend.service.name"),
    explanation=(
        "Requests to a path of the Ingress fail with status 503 because the Service of this path does not exist. If an "
        "existing Service has a similar name, correct the Ingress. If a workload with this name exists, or no Service "
        "has a similar name, create the Service."
    ),
)
def backend_is_missing(state: ClusterState) -> Iterator[Fault]:
    for backend in _distinct_backends(state):
        ingress = backend.ingress
        if not state.is_missing("Service", ingress.namespace, backend.service):
            continue
        existing = [each.name for each in state.of("Service", ingress.namespace)]
        ref = ObjectRef(kind="Service", namespace=ingress.namespace, name=backend.service)
        orphan = workload_named(state, ref)
        right = intended_service(state, ref, edited=was_edited(ingress))
        proof = value(ingress, f"{backend.path}.name", backend.service)
        yield Fault(
            subject=ingress.ref,
            culprit=ingress.ref if right else ref,
            cause=(
                f"{ingress.ref} sends requests to Service {backend.service!r} ({backend.path}.name), "
                f"but {ref} does not exist"
                + (f"; {orphan.ref} exists, but no Service with this name selects it" if orphan else "")
                + ("" if orphan else hint(backend.service, existing))
            ),
            evidence=(proof,),
            next_check=f"kubectl -n {ingress.namespace} get services",
            because=(ref,),
            fix=(corrected(proof, right) if right else exposed(ref, orphan) if orphan else None,),
        )


@Row(
    id="I02b",
    title="Ingress names a port that the Service does not have",
    severity="critical",
    kinds=("Ingress", "Service"),
    reads=("spec.rules[].http.paths[].backend.service.port", "spec.ports of the Service"),
    explanation=(
        "The Service does not have the port number or port name that the Ingress backend names. A backend must name "
        "the Service's `port`, not its `targetPort`. If the Service was edited after the Ingress, the Service is the "
        "culprit."
    ),
)
def backend_port_is_wrong(state: ClusterState) -> Iterator[Fault]:
    for backend in _distinct_backends(state):
        ingress = backend.ingress
        service = state.get("Service", ingress.namespace, backend.service)
        if service is None or not backend.port or not service_ports(service):
            continue
        if any(backend.port in {port.port, port.name} for port in service_ports(service)):
            continue
        blame_service = was_edited(service) and edited_at(service) > edited_at(ingress)
        known = ", ".join(f"{port.port}{f' ({port.name})' if port.name else ''}" for port in service_ports(service))
        proof = (
            value(ingress, backend.port_path, backend.port),
            value(service, "spec.ports", service.at("spec", "ports")),
        )
        yield Fault(
            subject=ingress.ref,
            culprit=service.ref if blame_service else ingress.ref,
            cause=(
                f"{ingress.ref} sends requests to port {backend.port} of {service.ref} ({backend.port_path}), "
                f"but the Service has only {known}"
            ),
            evidence=proof[::-1] if blame_service else proof,
            fix=(_port_fix(service, proof[0]) if not blame_service else None,),
            next_check=f"kubectl -n {ingress.namespace} get service {service.name} -o yaml",
        )


def _port_fix(service: ClusterObject, proof: Evidence) -> FixStep | None:
    """Use the only port of the Service. With several ports, the right one is unknown."""
    ports = service_ports(service)
    if len(ports) != 1 or (proof.path.endswith(".name") and not ports[0].name):
        return None
    return corrected(proof, ports[0].name if proof.path.endswith(".name") else ports[0].port)


@Row(
    id="I02c",
    title="Service of the Ingress has no ready endpoints",
    severity="critical",
    kinds=("Ingress", "Service", "Pod"),
    reads=("spec.rules[].http.paths[].backend.service", "EndpointSlices and pods of the Service"),
    explanation=(
        "Requests to a path of the Ingress fail with status 503 because no pod behind the Service is ready. This fault "
        "is a symptom. Its cause is in the Service or in the workload behind the Service."
    ),
)
def backend_without_endpoints(state: ClusterState) -> Iterator[Fault]:
    for backend in _distinct_backends(state):
        ingress = backend.ingress
        service = state.get("Service", ingress.namespace, backend.service)
        if service is None or has_ready_endpoints(state, service):
            continue
        selector = selector_of(service)
        pods = pods_behind(state, service)
        workloads = [each.workload for each in labels_of(state).templates.selected(service.namespace, selector)]
        young = any(state.age_seconds(each) < state.grace_seconds for each in (service, *workloads))
        if young or (pods and not any(unready_seconds(state, pod) >= state.patience_seconds for pod in pods)):
            continue
        yield Fault(
            subject=ingress.ref,
            culprit=service.ref,
            cause=f"{ingress.ref} sends requests to {service.ref} ({backend.path}), which has no ready endpoints",
            evidence=(value(ingress, f"{backend.path}.name", backend.service), field(service, "spec", "selector")),
            next_check=f"kubectl -n {ingress.namespace} describe service {service.name}",
            role="symptom",
            because=(service.ref, *(each.ref for each in workloads)),
        )


def _distinct_backends(state: ClusterState) -> Iterator[Backend]:
    """Yield one backend for each combination of Ingress, Service and port."""
    for ingress in state.of("Ingress"):
        if ingress.deleted is not None:
            continue
        seen: set[tuple[str, int | str]] = set()
        for backend in backends_of(ingress):
            if (backend.service, backend.port) not in seen:
                seen.add((backend.service, backend.port))
                yield backend
