"""Certificates, hosts and paths of Ingresses, and what their controllers say about them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, field, value
from holmes.diagnosis.facts.ingress_backends import backends_of, has_address, ingress_class
from holmes.diagnosis.facts.nearest import hint
from holmes.diagnosis.facts.typos import meant
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, text, texts
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_ADDRESS_GRACES: Final = 5
_CERT_MANAGER: Final = "cert-manager.io"
_MERGED_ON_PURPOSE: Final = ("/canary", "mergeable-ingress-type", "canary-weight")


@Row(
    id="I03a",
    title="TLS secret of the Ingress is missing",
    severity="warning",
    kinds=("Ingress", "Secret"),
    reads=("spec.tls[].secretName", "names of Secrets"),
    explanation=(
        "The Ingress is served with a certificate that browsers do not trust, or not at all. With an annotation of "
        "cert-manager the Secret is made by it: then its Certificate says why it is not there yet. Only the names of "
        "Secrets are read; where they may not be listed, nothing is said."
    ),
)
def tls_secret_is_missing(state: ClusterState) -> Iterator[Fault]:
    """TLS secrets that do not exist."""
    for ingress in state.of("Ingress"):
        for index, entry in enumerate(ingress.children("spec", "tls")):
            name = text(entry, "secretName")
            if ingress.deleted is None and name and state.is_missing("Secret", ingress.namespace, name):
                yield from _missing_secret(state, ingress, index, name)


def _missing_secret(state: ClusterState, ingress: ClusterObject, index: int, name: str) -> Iterator[Fault]:
    managed = any(key.startswith(_CERT_MANAGER) or "acme" in key for key in ingress.annotations)
    grace = state.grace_seconds * (_ADDRESS_GRACES if managed else 1)
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
    yield Fault(
        subject=ingress.ref,
        culprit=ingress.ref if meant(name, existing) else missing,
        cause=(
            f"{ingress.ref} takes its certificate from the Secret {name!r} ({path}), but {missing} does not exist"
            f"{hint(name, existing)}"
        ),
        evidence=(value(ingress, path, name),),
        next_check=f"kubectl -n {ingress.namespace} get secrets",
        role="symptom" if certificates else "cause",
        because=tuple(certificates),
    )


@Row(
    id="I03b",
    title="Host of the Ingress is not in its TLS hosts",
    severity="info",
    kinds=("Ingress",),
    reads=("spec.rules[].host", "spec.tls[].hosts"),
    explanation=(
        "The Ingress has TLS for some hosts and rules for further ones, which are served without its certificate. That "
        "can be meant so."
    ),
)
def host_without_tls(state: ClusterState) -> Iterator[Fault]:
    """Hosts of rules that no entry of `spec.tls` names."""
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
                    cause=f"{ingress.ref} has a rule for {host!r}, but TLS only for {', '.join(covered)}",
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
        "Which of them gets the requests depends on the controller, often the older one. Only Ingresses of one class "
        "count that send to different backends; canary Ingresses are meant so."
    ),
)
def same_host_and_path(state: ClusterState) -> Iterator[Fault]:
    """Host and path that two Ingresses of a class send to different backends."""
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
                yield Fault(
                    subject=ingress.ref,
                    culprit=ingress.ref,
                    cause=(
                        f"{ingress.ref} sends {host or 'every host'}{route} to {backend}, but the older {first[0].ref} "
                        f"already sends it to {first[2]}"
                    ),
                    evidence=(value(ingress, path, route), value(first[0], first[1], route)),
                    next_check="kubectl get ingresses --all-namespaces",
                )


def _is_merged_on_purpose(ingress: ClusterObject) -> bool:
    return any(word in key for key in ingress.annotations for word in _MERGED_ON_PURPOSE)


def _claims(ingress: ClusterObject) -> Iterator[tuple[str, tuple[str, str, str, str], str]]:
    """Where a path lies, what it claims and where it leads."""
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
        "The ingress controller says in an event that it could not take the Ingress over. An event that is followed by "
        "a normal one of the same controller is over."
    ),
)
def rejected(state: ClusterState) -> Iterator[Fault]:
    """Ingresses whose newest event of a controller is a warning."""
    for ingress in state.of("Ingress"):
        newest = {found.component: found for found in state.events_of(ingress)}
        for found in newest.values():
            if found.type == "Warning" and ingress.deleted is None:
                yield Fault(
                    subject=ingress.ref,
                    title=f"Controller rejects the Ingress: {found.reason}",
                    cause=f"{found.component or 'The controller'} says of {ingress.ref}: {found.message}",
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
        "After five graces no controller has written an address, although other Ingresses of the same class have one. "
        "When none of them has one, the controller does not run or does not write addresses, which is only mentioned."
    ),
)
def no_address(state: ClusterState) -> Iterator[Fault]:
    """Ingresses of an existing class without an address."""
    served = {ingress_class(each) for each in state.of("Ingress") if has_address(each)}
    for ingress in state.of("Ingress"):
        name = ingress_class(ingress)
        old = state.age_seconds(ingress) >= _ADDRESS_GRACES * state.grace_seconds
        if has_address(ingress) or ingress.deleted is not None or not old:
            continue
        if state.get("IngressClass", "", name) is not None:
            others = name in served
            yield Fault(
                subject=ingress.ref,
                cause=(
                    f"{ingress.ref} of class {name!r} has no address"
                    + (", although others of its class have one" if others else ": nothing seems to serve the class")
                ),
                evidence=(field(ingress, "status", "loadBalancer"), field(ingress, "spec", "ingressClassName")),
                next_check=f"kubectl -n {ingress.namespace} describe ingress {ingress.name}",
                severity="warning" if others else "info",
            )
