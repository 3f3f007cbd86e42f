"""Finds the objects that use an object, for example the workloads that refer to a ConfigMap, a claim or a Service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import services_selecting
from holmes.diagnosis.facts.edges import edges, failures
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.templates import pod_templates, template_of
from holmes.kubernetes.fields import child, children, matches_selector, text
from holmes.kubernetes.kinds import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An object that uses another object. `how` describes the reference."""

    object: ClusterObject
    how: str


def users_of(state: ClusterState, used: ClusterObject) -> tuple[User, ...]:
    """Return the objects that refer to `used`, sorted by kind and name."""
    found = {user.object.ref: user for user in reversed(tuple(_users(state, used)))}
    return tuple(sorted(found.values(), key=lambda user: (user.object.kind, user.object.namespace, user.object.name)))


def keys_used(state: ClusterState, used: ClusterObject) -> tuple[str, ...]:
    """Return the keys of a ConfigMap, or those of a Secret to which pod templates refer, because it is read without."""
    if used.kind == "ConfigMap":
        return (*used.child("data"), *used.child("binaryData"))
    found: dict[str, None] = {}
    for template in pod_templates(state):
        if template.workload.namespace == used.namespace:
            for reference in references_of(template.spec):
                if reference.key and (reference.kind, reference.name) == (used.kind, used.name):
                    found[reference.key] = None
    return tuple(found)


def ingresses_to(state: ClusterState, used: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the Ingresses that lead to the Services of a workload or a pod."""
    services = (user.object for user in users_of(state, used) if user.object.kind == "Service")
    for user in (user for service in services for user in users_of(state, service)):
        if user.object.kind == "Ingress":
            yield user.object


def _users(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    yield from _templates(state, used)
    for finder in _FINDERS.get(used.kind, ()):
        yield from finder(state, used)
    for scaler in state.of("HorizontalPodAutoscaler", used.namespace) if used.namespace else ():
        target = scaler.child("spec", "scaleTargetRef")
        if (text(target, "kind"), text(target, "name")) == (used.kind, used.name):
            yield User(object=scaler, how="spec.scaleTargetRef")


def _of_service(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    for edge in edges(state).get(used.ref, ()):
        yield User(object=edge.consumer, how=f"{edge.named.path} of {edge.named.object}")
    for failure in failures(state).get(used.ref, ()):
        yield User(object=failure.consumer, how=f"its log names {used.name}")
    for ingress in state.of("Ingress", used.namespace):
        if used.name in backends_of(ingress):
            yield User(object=ingress, how="backend")


def _of_pods(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    """Yield the Services and policies that select the pods of a workload, and the clients of these Services."""
    labels = used.labels if used.kind == "Pod" else template_of(used).labels
    for service in services_selecting(state, used.namespace, labels):
        yield User(object=service, how="spec.selector")
        for edge in edges(state).get(service.ref, ()):
            yield User(object=edge.consumer, how=f"through {service.ref}")
    for kind, field in (("NetworkPolicy", "podSelector"), ("PodDisruptionBudget", "selector")):
        for each in state.of(kind, used.namespace):
            if matches_selector(each.child("spec", field), labels):
                yield User(object=each, how=f"spec.{field}")


def _of_access(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in state.of(kind):
            if _binds(binding, used):
                yield User(object=binding, how="roleRef" if "Role" in used.kind else "subjects")


def _of_storage(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    field = "storageClassName" if used.kind == "StorageClass" else "volumeName"
    for claim in state.of("PersistentVolumeClaim"):
        if claim.text("spec", field) == used.name:
            yield User(object=claim, how=f"spec.{field}")


def _of_claim(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    """Yield the StatefulSets whose templates made the claim, and the workloads of pods that mount it."""
    for each in state.of("StatefulSet", used.namespace):
        for template in each.children("spec", "volumeClaimTemplates"):
            if used.name.startswith(f"{text(template, 'metadata', 'name')}-{each.name}-"):
                yield User(object=each, how="spec.volumeClaimTemplates")
    for pod in state.of("Pod", used.namespace):
        if used.name in claims_of(pod):
            yield User(object=state.workload_of(pod), how=f"a volume of {pod.ref}")


def claims_of(pod: ClusterObject) -> tuple[str, ...]:
    """Return the names of the claims that a pod mounts."""
    return tuple(text(each, "persistentVolumeClaim", "claimName") for each in pod.children("spec", "volumes"))


def _of_pod_specs(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    """Yield the workloads whose pods refer to an object that their template does not name, for example a token."""
    for pod in state.of("Pod", used.namespace):
        if any((each.kind, each.name) == (used.kind, used.name) for each in references_of(child(pod.body, "spec"))):
            yield User(object=state.workload_of(pod), how=f"a volume of {pod.ref}")


def _of_class(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    for ingress in state.of("Ingress"):
        if ingress.text("spec", "ingressClassName") == used.name:
            yield User(object=ingress, how="spec.ingressClassName")


def _of_secret(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    for ingress in state.of("Ingress", used.namespace):
        if any(text(each, "secretName") == used.name for each in ingress.children("spec", "tls")):
            yield User(object=ingress, how="spec.tls")


def _templates(state: ClusterState, used: ClusterObject) -> Iterator[User]:
    for template in pod_templates(state):
        workload = template.workload
        if used.namespace and workload.namespace != used.namespace:
            continue
        for reference in references_of(template.spec):
            if (reference.kind, reference.name) == (used.kind, used.name):
                yield User(object=workload, how=reference.user)
        claims = [text(volume, "persistentVolumeClaim", "claimName") for volume in children(template.spec, "volumes")]
        if used.kind == "PersistentVolumeClaim" and used.name in claims:
            yield User(object=workload, how="volume")
        if used.kind == "ServiceAccount" and used.name == "default" and not text(template.spec, "serviceAccountName"):
            yield User(object=workload, how="the default ServiceAccount")


def backends_of(ingress: ClusterObject) -> set[str]:
    """Return the names of the Services that an Ingress leads to."""
    names = {ingress.text("spec", "defaultBackend", "service", "name")}
    for rule in ingress.children("spec", "rules"):
        names |= {text(path, "backend", "service", "name") for path in children(rule, "http", "paths")}
    return names - {""}


def _binds(binding: ClusterObject, used: ClusterObject) -> bool:
    if used.kind in ("Role", "ClusterRole"):
        reference = child(binding.body, "roleRef")
        same_place = used.kind == "ClusterRole" or binding.namespace == used.namespace
        return (text(reference, "kind"), text(reference, "name")) == (used.kind, used.name) and same_place
    return any(
        (text(each, "kind"), text(each, "name")) == (used.kind, used.name)
        and text(each, "namespace") in ("", used.namespace)
        for each in binding.children("subjects")
    )


_FINDERS: Final[Mapping[str, tuple[Callable[[ClusterState, ClusterObject], Iterator[User]], ...]]] = {
    "Service": (_of_service,),
    **dict.fromkeys((*WORKLOADS, "Pod"), (_of_pods,)),
    **dict.fromkeys(("ServiceAccount", "Role", "ClusterRole"), (_of_access,)),
    **dict.fromkeys(("StorageClass", "PersistentVolume"), (_of_storage,)),
    "IngressClass": (_of_class,),
    "ConfigMap": (_of_pod_specs,),
    "Secret": (_of_secret, _of_pod_specs),
    "PersistentVolumeClaim": (_of_claim,),
}
"""For each kind, the functions that find users other than pod templates and autoscalers."""
