"""Rules for TLS, hosts and addresses of Ingresses, and for the Gateway API."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, field, value
from holmes.diagnosis.facts.fixes import corrected, provided
from holmes.diagnosis.facts.network import backends_of, has_address, ingress_class, service_ports
from holmes.diagnosis.facts.services import has_ready_endpoints
from holmes.diagnosis.facts.typos import hint, meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, integer, text, texts
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Severity
    from holmes.values.json_types import JsonObject


_ADDRESS_GRACES: Final = 5
_CERT_MANAGER: Final = "cert-manager.io"
_MERGED_ON_PURPOSE: Final = ("/canary", "mergeable-ingress-type", "canary-weight")


@Row(
    id="I03a",
    title="TLS Secret of the Ingress is missing",
    severity="warning",
    kinds=("Ingress", "Secret"),
    reads=("spec.tls[].secretName", "Secret names"),
    explanation=(
        "Without the Secret, the controller serves the Ingress with a certificate that browsers do not trust, or does "
        "not serve it. If the Ingress has a cert-manager annotation, cert-manager creates the Secret. The status of "
        "the Certificate then shows why the Secret does not exist yet. Only the names of Secrets are read. Namespaces "
        "whose Secrets cannot be listed are skipped."
    ),
)
def tls_secret_is_missing(state: ClusterState) -> Iterator[Fault]:
    for ingress in state.of("Ingress"):
        for index, entry in enumerate(ingress.children("spec", "tls")):
            name = text(entry, "secretName")
            if ingress.deleted is None and name and state.is_missing("Secret", ingress.namespace, name):
                yield from _missing_secret(state, ingress, index, name)


def _missing_secret(state: ClusterState, ingress: ClusterObject, index: int, name: str) -> Iterator[Fault]:
    managed = any(key.startswith(_CERT_MANAGER) or "acme" in key for key in ingress.annotations)
    grace = _ADDRESS_GRACES * state.patience_seconds if managed else state.grace_seconds
    if state.age_seconds(ingress) < grace:
        return
    existing = [each.name for each in state.of("Secret", ingress.namespace)]
    missing = ObjectRef(kind="Secret", namespace=ingress.namespace, name=name)
    certificates = [
        each.ref
        for each in state.of("Certificate.cert-manager.io", ingress.namespace)
        if each.text("spec", "secretName") == name
    ]
    path = f"spec.tls[{index}].secretName"
    right = meant(name, existing)
    proof = value(ingress, path, name)
    yield Fault(
        subject=ingress.ref,
        culprit=ingress.ref if right else missing,
        cause=(
            f"{ingress.ref} uses the certificate in Secret {name!r} ({path}), but {missing} does not "
            f"exist{hint(name, existing)}"
        ),
        evidence=(proof,),
        next_check=f"kubectl -n {ingress.namespace} get secrets",
        role="symptom" if certificates else "cause",
        because=tuple(certificates),
        fix=() if certificates else (corrected(proof, right) if right else provided(missing, ingress.ref),),
    )


@Row(
    id="I03b",
    title="Host of the Ingress has no TLS",
    severity="info",
    kinds=("Ingress",),
    reads=("spec.rules[].host", "spec.tls[].hosts"),
    explanation=(
        "The Ingress has TLS for some hosts, and rules for other hosts that its certificate does not cover. This may "
        "be intended."
    ),
)
def host_without_tls(state: ClusterState) -> Iterator[Fault]:
    for ingress in state.of("Ingress"):
        covered = [host for entry in ingress.children("spec", "tls") for host in texts(entry, "hosts")]
        if not covered or ingress.deleted is not None:
            continue
        for index, rule in enumerate(ingress.children("spec", "rules")):
            host = text(rule, "host")
            wildcard = f"*.{host.partition('.')[2]}"
            if host and host not in covered and wildcard not in covered:
                yield Fault(
                    subject=ingress.ref,
                    cause=f"{ingress.ref} has a rule for host {host!r}, but TLS only for {', '.join(covered)}",
                    evidence=(
                        value(ingress, f"spec.rules[{index}].host", host),
                        value(ingress, "spec.tls", ingress.at("spec", "tls")),
                    ),
                    next_check=f"kubectl -n {ingress.namespace} get ingress {ingress.name} -o yaml",
                )


@Row(
    id="I04a",
    title="Two Ingresses claim the same host and path",
    severity="warning",
    kinds=("Ingress",),
    reads=("spec.rules[].host", "spec.rules[].http.paths[].path", "spec.ingressClassName"),
    explanation=(
        "The controller decides which Ingress receives the requests. It often chooses the older Ingress. The rule "
        "compares only Ingresses that have the same class and different backends. Canary Ingresses and mergeable "
        "Ingresses are ignored."
    ),
)
def same_host_and_path(state: ClusterState) -> Iterator[Fault]:
    claims: dict[tuple[str, str, str, str], list[tuple[ClusterObject, str, str]]] = defaultdict(list)
    for ingress in sorted(state.of("Ingress"), key=lambda each: (each.created, each.namespace, each.name)):
        if ingress.deleted is not None or _is_merged_on_purpose(ingress):
            continue
        for path, key, backend in _claims(ingress):
            claims[key].append((ingress, path, backend))
    for (_, host, route, _), found in sorted(claims.items()):
        first, *others = found
        for ingress, path, backend in others:
            if ingress is not first[0] and backend != first[2]:
                older = "the older " if first[0].created < ingress.created else ""
                for subject in (ingress, first[0]):
                    yield Fault(
                        subject=subject.ref,
                        culprit=ingress.ref,
                        cause=f"{ingress.ref} sends requests for {host or 'every host'}{route} to {backend}, but "
                        f"{older}{first[0].ref} {'already' if older else 'also'} sends them to {first[2]}",
                        evidence=(value(ingress, path, route), value(first[0], first[1], route)),
                        next_check="kubectl get ingresses --all-namespaces",
                    )


def _is_merged_on_purpose(ingress: ClusterObject) -> bool:
    return any(word in key for key in ingress.annotations for word in _MERGED_ON_PURPOSE)


def _claims(ingress: ClusterObject) -> Iterator[tuple[str, tuple[str, str, str, str], str]]:
    """For each path, yield its field, its key (class, host, path and path type) and its backend."""
    backends = {backend.path: backend for backend in backends_of(ingress)}
    for index, rule in enumerate(ingress.children("spec", "rules")):
        for position, entry in enumerate(children(rule, "http", "paths")):
            place = f"spec.rules[{index}].http.paths[{position}]"
            backend = backends.get(f"{place}.backend.service")
            if backend is not None:
                route = text(entry, "path") or "/"
                key = (ingress_class(ingress), text(rule, "host"), route, text(entry, "pathType"))
                yield f"{place}.path", key, f"{ingress.namespace}/{backend.service}:{backend.port}"


@Row(
    id="I04b",
    title="Controller rejects the Ingress",
    severity="warning",
    kinds=("Ingress",),
    reads=("warning events of the Ingress",),
    explanation=(
        "The ingress controller reports in an event that it cannot use the Ingress. A later normal event from the "
        "same controller clears the fault."
    ),
)
def rejected(state: ClusterState) -> Iterator[Fault]:
    for ingress in state.of("Ingress"):
        newest = {found.component: found for found in state.events_of(ingress)}
        for found in newest.values():
            if found.type == "Warning" and ingress.deleted is None:
                yield Fault(
                    subject=ingress.ref,
                    title=f"Controller rejects the Ingress: {found.reason}",
                    cause=f"{found.component or 'The controller'} reports for {ingress.ref}: {found.message}",
                    evidence=(event(found),),
                    next_check=f"kubectl -n {ingress.namespace} describe ingress {ingress.name}",
                    since=found.first,
                )


@Row(
    id="I04c",
    title="Ingress has no address",
    severity="warning",
    kinds=("Ingress", "IngressClass"),
    reads=("status.loadBalancer.ingress", "other Ingresses of the same class"),
    explanation=(
        "Five grace periods after its creation, the Ingress has no address, although other Ingresses of the same class "
        "have one. If no Ingress of the class has an address, the severity is info. The controller is then probably "
        "not running, or it does not set addresses."
    ),
)
def no_address(state: ClusterState) -> Iterator[Fault]:
    served = {ingress_class(each) for each in state.of("Ingress") if has_address(each)}
    for ingress in state.of("Ingress"):
        name = ingress_class(ingress)
        old = state.age_seconds(ingress) >= _ADDRESS_GRACES * state.patience_seconds
        if has_address(ingress) or ingress.deleted is not None or not old:
            continue
        if state.get("IngressClass", "", name) is not None:
            others = name in served
            yield Fault(
                subject=ingress.ref,
                cause=(
                    f"{ingress.ref} of class {name!r} has no address"
                    + (
                        ", although other Ingresses of its class have one"
                        if others
                        else (", and no controller seems to handle the class")
                    )
                ),
                evidence=(field(ingress, "status", "loadBalancer"), field(ingress, "spec", "ingressClassName")),
                next_check=f"kubectl -n {ingress.namespace} describe ingress {ingress.name}",
                severity="warning" if others else "info",
            )


_GROUP: Final = "gateway.networking.k8s.io"
_ROUTES: Final = tuple(f"{kind}.{_GROUP}" for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"))
_GATEWAY: Final = f"Gateway.{_GROUP}"
_CLASS: Final = f"GatewayClass.{_GROUP}"
_GOOD: Final = frozenset({"Accepted", "Programmed", "ResolvedRefs"})
_BAD: Final = frozenset({"Conflicted"})


@Row(
    id="I05a",
    title="Gateway is not accepted",
    severity="critical",
    kinds=(_GATEWAY, _CLASS),
    reads=("spec.gatewayClassName", "status.conditions", "status.listeners[].conditions"),
    explanation=(
        "The GatewayClass does not exist, or its controller rejects the class, the Gateway or a listener. Common "
        "causes are a missing certificate, a conflict or an unknown protocol. The rule ignores new objects, and "
        "conditions of an older generation."
    ),
)
def gateway_is_not_accepted(state: ClusterState) -> Iterator[Fault]:
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
            proof, right = value(each, "spec.gatewayClassName", name), meant(name, existing)
            yield Fault(
                subject=each.ref,
                title="Class of the Gateway does not exist",
                cause=f"{each.ref} names the GatewayClass {name!r}, which does not exist{hint(name, existing)}",
                evidence=(proof,),
                next_check="kubectl get gatewayclasses",
                fix=(corrected(proof, right) if right else None,),
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
            title=f"{each.kind} is rejected: {kind} is {status}",
            cause=f"{each.ref}{where} has {kind} {status} ({text(condition, 'reason')}): {text(condition, 'message')}",
            evidence=(value(each, f"{path}[type={kind}]", f"{status}: {text(condition, 'message')}"),),
            next_check=_describe(each),
            severity=severity,
        )


def _is_outdated(each: ClusterObject, condition: JsonObject) -> bool:
    observed = integer(condition, "observedGeneration")
    return bool(observed) and observed < each.integer("metadata", "generation")


def _describe(each: ClusterObject) -> str:
    place = f"-n {each.namespace} " if each.namespace else ""
    return f"kubectl {place}describe {each.kind.lower()}.{_GROUP} {each.name}"


@Row(
    id="I05b",
    title="Route is not attached to its Gateway",
    severity="critical",
    kinds=_ROUTES,
    needs=(_GATEWAY,),
    reads=("spec.parentRefs", "status.parents[].conditions"),
    explanation=(
        "The Gateway does not exist, or its controller does not accept the route. For example, no listener or host "
        "name matches, or the namespace is not allowed. The controller may also be unable to resolve a reference of "
        "the route."
    ),
)
def route_is_not_attached(state: ClusterState) -> Iterator[Fault]:
    for route in _routes(state):
        for index, parent in enumerate(route.children("status", "parents")):
            path = f"status.parents[{index}].conditions"
            yield from _refused(route, children(parent, "conditions"), path, "critical")
        for index, parent in enumerate(route.children("spec", "parentRefs")):
            name, namespace = text(parent, "name"), text(parent, "namespace") or route.namespace
            if text(parent, "kind") in {"", "Gateway"} and state.is_missing(_GATEWAY, namespace, name):
                existing = [each.name for each in state.of(_GATEWAY, namespace)]
                gateway = ObjectRef(kind="Gateway", group=_GROUP, namespace=namespace, name=name)
                yield Fault(
                    subject=route.ref,
                    title="Gateway of the route does not exist",
                    culprit=route.ref if meant(name, existing) else gateway,
                    cause=f"{route.ref} refers to {gateway}, which does not exist{hint(name, existing)}",
                    evidence=(value(route, f"spec.parentRefs[{index}].name", name),),
                    next_check=f"kubectl -n {namespace} get gateways.{_GROUP}",
                )


@Row(
    id="I05c",
    title="Service of the route does not exist or cannot respond",
    severity="critical",
    kinds=_ROUTES,
    needs=("Service", "Pod"),
    reads=("spec.rules[].backendRefs", "spec.ports of the Service", "EndpointSlices"),
    explanation=(
        "Requests fail because the Service of a backend does not exist or lacks the port that the route names. A "
        "Service without ready endpoints is reported as a symptom of another fault."
    ),
)
def route_backend_is_wrong(state: ClusterState) -> Iterator[Fault]:
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
        proof, right = value(route, f"{path}.name", name), meant(name, existing)
        if state.is_missing("Service", namespace, name):
            yield Fault(
                subject=route.ref,
                title="Service of the route does not exist",
                culprit=route.ref if right else ref,
                cause=f"{route.ref} sends requests to {ref} ({path}), which does not exist{hint(name, existing)}",
                evidence=(proof,),
                next_check=check,
                because=(ref,),
                fix=(corrected(proof, right) if right else None,),
            )
        return
    known = [each.port for each in service_ports(service)]
    if port and known and port not in known:
        proof = value(route, f"{path}.port", port)
        yield Fault(
            subject=route.ref,
            title="Route names a port that the Service does not have",
            cause=f"{route.ref} sends requests to port {port} of {ref}, which has only {', '.join(map(str, known))}",
            evidence=(proof, value(service, "spec.ports", service.at("spec", "ports"))),
            next_check=check,
            fix=(corrected(proof, known[0]) if len(known) == 1 else None,),
        )
    elif not has_ready_endpoints(state, service) and state.age_seconds(service) >= state.grace_seconds:
        yield Fault(
            subject=route.ref,
            title="Service of the route has no ready endpoints",
            culprit=ref,
            cause=f"{route.ref} sends requests to {ref} ({path}), which has no ready endpoints",
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
