"""The Gateway API: classes, gateways and routes that were not accepted, or lead to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.nearest import hint
from holmes.diagnosis.facts.service_backends import has_ready_endpoints
from holmes.diagnosis.facts.service_ports import service_ports
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, integer, text
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Severity
    from holmes.values.json_types import JsonObject

GROUP: Final = "gateway.networking.k8s.io"
_ROUTES: Final = tuple(f"{kind}.{GROUP}" for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"))
_GATEWAY: Final = f"Gateway.{GROUP}"
_CLASS: Final = f"GatewayClass.{GROUP}"
_GOOD: Final = frozenset({"Accepted", "Programmed", "ResolvedRefs"})
_BAD: Final = frozenset({"Conflicted"})


@Row(
    id="I05a",
    title="Gateway is not accepted",
    severity="critical",
    kinds=(_GATEWAY, _CLASS),
    reads=("spec.gatewayClassName", "status.conditions", "status.listeners[].conditions"),
    explanation=(
        "The controller of the gateway's class refuses the class, the gateway or one of its listeners (a missing "
        "certificate, a conflict, an unknown protocol), or the class does not exist. Conditions of an older generation "
        "and young objects do not count."
    ),
)
def gateway_is_not_accepted(state: ClusterState) -> Iterator[Fault]:
    """Classes and gateways with conditions that say no, and gateways of a missing class."""
    for each in (*state.of(_CLASS), *state.of(_GATEWAY)):
        if each.deleted is not None or state.age_seconds(each) < state.grace_seconds:
            continue
        yield from _refused(each, each.children("status", "conditions"), "status.conditions", "critical")
        for index, listener in enumerate(each.children("status", "listeners")):
            path = f"status.listeners[{index}].conditions"
            yield from _refused(each, children(listener, "conditions"), path, "warning", text(listener, "name"))
        name = each.text("spec", "gatewayClassName")
        if each.kind == "Gateway" and state.is_missing(_CLASS, "", name):
            existing = [other.name for other in state.of(_CLASS)]
            yield Fault(
                subject=each.ref,
                title="Class of the Gateway does not exist",
                cause=f"{each.ref} names the GatewayClass {name!r}, which does not exist{hint(name, existing)}",
                evidence=(value(each, "spec.gatewayClassName", name),),
                next_check="kubectl get gatewayclasses",
            )


def _refused(
    each: ClusterObject, conditions: tuple[JsonObject, ...], path: str, severity: Severity, part: str = ""
) -> Iterator[Fault]:
    for condition in conditions:
        kind, status = text(condition, "type"), text(condition, "status")
        wrong = (kind in _GOOD and status == "False") or (kind in _BAD and status == "True")
        if not wrong or _is_outdated(each, condition):
            continue
        where = f" (listener {part})" if part else ""
        yield Fault(
            subject=each.ref,
            title=f"{each.kind} is refused: {kind} is {status}",
            cause=f"{each.ref}{where} has {kind} = {status}, {text(condition, 'reason')}: {text(condition, 'message')}",
            evidence=(value(each, f"{path}[type={kind}]", f"{status}: {text(condition, 'message')}"),),
            next_check=_describe(each),
            severity=severity,
        )


def _is_outdated(each: ClusterObject, condition: JsonObject) -> bool:
    observed = integer(condition, "observedGeneration")
    return bool(observed) and observed < each.integer("metadata", "generation")


def _describe(each: ClusterObject) -> str:
    place = f"-n {each.namespace} " if each.namespace else ""
    return f"kubectl {place}describe {each.kind.lower()}.{GROUP} {each.name}"


@Row(
    id="I05b",
    title="Route is not attached to its Gateway",
    severity="critical",
    kinds=_ROUTES,
    needs=(_GATEWAY,),
    reads=("spec.parentRefs", "status.parents[].conditions"),
    explanation=(
        "The gateway does not exist, or its controller says that it does not accept the route (no matching listener or "
        "host name, not allowed from this namespace) or cannot resolve what the route refers to."
    ),
)
def route_is_not_attached(state: ClusterState) -> Iterator[Fault]:
    """Routes that their gateways refuse, and those whose gateway is missing."""
    for route in _routes(state):
        for index, parent in enumerate(route.children("status", "parents")):
            path = f"status.parents[{index}].conditions"
            yield from _refused(route, children(parent, "conditions"), path, "critical")
        for index, parent in enumerate(route.children("spec", "parentRefs")):
            name, namespace = text(parent, "name"), text(parent, "namespace") or route.namespace
            if text(parent, "kind") in {"", "Gateway"} and state.is_missing(_GATEWAY, namespace, name):
                existing = [each.name for each in state.of(_GATEWAY, namespace)]
                gateway = ObjectRef(kind="Gateway", group=GROUP, namespace=namespace, name=name)
                yield Fault(
                    subject=route.ref,
                    title="Gateway of the route does not exist",
                    culprit=route.ref if meant(name, existing) else gateway,
                    cause=f"{route.ref} belongs to {gateway}, which does not exist{hint(name, existing)}",
                    evidence=(value(route, f"spec.parentRefs[{index}].name", name),),
                    next_check=f"kubectl -n {namespace} get gateways.{GROUP}",
                )


@Row(
    id="I05c",
    title="Route leads to a Service that does not serve it",
    severity="critical",
    kinds=_ROUTES,
    needs=("Service", "Pod"),
    reads=("spec.rules[].backendRefs", "spec.ports of the Service", "EndpointSlices"),
    explanation=(
        "The Service of a backend does not exist, or has not the port that the route names: requests end in an error. "
        "A Service without ready endpoints is a symptom of what is behind it."
    ),
)
def route_backend_is_wrong(state: ClusterState) -> Iterator[Fault]:
    """Backends of routes that do not exist, lack the port or have no endpoints."""
    for route in _routes(state):
        for index, rule in enumerate(route.children("spec", "rules")):
            for position, backend in enumerate(children(rule, "backendRefs")):
                if text(backend, "kind") in {"", "Service"} and not text(backend, "group"):
                    yield from _backend(state, route, backend, f"spec.rules[{index}].backendRefs[{position}]")


def _backend(state: ClusterState, route: ClusterObject, backend: JsonObject, path: str) -> Iterator[Fault]:
    name, namespace = text(backend, "name"), text(backend, "namespace") or route.namespace
    ref = ObjectRef(kind="Service", namespace=namespace, name=name)
    service, port = state.find(ref), integer(backend, "port")
    check = f"kubectl -n {namespace} get services"
    if service is None:
        existing = [each.name for each in state.of("Service", namespace)]
        if state.is_missing("Service", namespace, name):
            yield Fault(
                subject=route.ref,
                culprit=route.ref if meant(name, existing) else ref,
                cause=f"{route.ref} sends to {ref} ({path}), which does not exist{hint(name, existing)}",
                evidence=(value(route, f"{path}.name", name),),
                next_check=check,
                because=(ref,),
            )
        return
    known = [each.port for each in service_ports(service)]
    if port and known and port not in known:
        yield Fault(
            subject=route.ref,
            title="Route names a port that the Service does not have",
            cause=f"{route.ref} sends to port {port} of {ref}, which has only {', '.join(map(str, known))}",
            evidence=(value(route, f"{path}.port", port), value(service, "spec.ports", service.at("spec", "ports"))),
            next_check=check,
        )
    elif not has_ready_endpoints(state, service) and state.age_seconds(service) >= state.grace_seconds:
        yield Fault(
            subject=route.ref,
            title="Route leads to a Service without ready endpoints",
            culprit=ref,
            cause=f"{route.ref} sends to {ref} ({path}), which has no ready endpoints",
            evidence=(value(route, f"{path}.name", name),),
            next_check=f"kubectl -n {namespace} describe service {name}",
            role="symptom",
            because=(ref,),
        )


def _routes(state: ClusterState) -> Iterator[ClusterObject]:
    for kind in _ROUTES:
        for route in state.of(kind):
            if route.deleted is None and state.age_seconds(route) >= state.grace_seconds:
                yield route
