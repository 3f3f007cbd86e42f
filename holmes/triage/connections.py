"""Finds the objects that serve a subject: those whose faults can be the cause of the subject's problem.

The search follows owners, selectors, references, nodes, volumes, and the Services that a pod's configuration or log
mentions, from the subject to what it needs. It never follows them back, because an object does not suffer from the
faults of its clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import autoscalers_of
from holmes.diagnosis.facts.custom_links import made_by, named_in
from holmes.diagnosis.facts.edges import failures, workload_hosts
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.templates import template_of, workloads_behind
from holmes.kubernetes.fields import child, children, matches_map, text, text_map
from holmes.kubernetes.kinds import WORKLOADS
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_MOST_HOPS: Final = 8
_MOST_OBJECTS: Final = 2_000
_FREE_HOPS: Final = frozenset({*WORKLOADS, "Pod"})
"""Kinds that are one thing together: a workload, its ReplicaSets and its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An object that serves the subject. `path` contains the objects from the subject to this object."""

    ref: ObjectRef
    path: tuple[ObjectRef, ...]

    @property
    def hops(self) -> int:
        """The number of steps from the subject. A workload and its pods are the same step."""
        return len(self.path) - 1


def connections(
    state: ClusterState,
    subjects: Iterable[ClusterObject],
    without: frozenset[ObjectRef] = frozenset(),
    *,
    most_hops: int = _MOST_HOPS - 1,
) -> dict[ObjectRef, Connection]:
    """Return the objects that serve `subjects`, including the subjects, their owners and their pods.

    Objects that are referred to but do not exist are included. The search does not go through those of `without`.
    """
    found: dict[ObjectRef, Connection] = {}
    waiting: list[Connection] = []

    def add(ref: ObjectRef, path: tuple[ObjectRef, ...]) -> None:
        if ref not in found and ref not in without and len(path) <= most_hops + 1 and len(found) < _MOST_OBJECTS:
            found[ref] = Connection(ref=ref, path=path)
            waiting.append(found[ref])

    for subject in subjects:
        add(subject.ref, (subject.ref,))
    while waiting:
        current = waiting.pop(0)
        for ref in producers_of(state, current.ref):
            add(ref, (*current.path, ref))
        each = state.find(current.ref)
        if each is None:
            continue
        for ref in _same_thing(state, each):
            add(ref, current.path)
        for ref in _needs(state, each):
            add(ref, (*current.path, ref))
    return found


def identity(state: ClusterState, each: ClusterObject) -> frozenset[ObjectRef]:
    """Return the object with its owners and, for a workload, its ReplicaSets, Jobs and pods."""
    if each.kind not in _FREE_HOPS:
        return frozenset((each.ref,))
    outermost = state.workload_of(each)
    members = {each.ref, outermost.ref}
    if each.kind == "Pod":
        owner = state.by_uid(each.owner.uid) if each.owner is not None else None
        return frozenset(members | ({owner.ref} if owner is not None and owner.kind in _FREE_HOPS else set()))
    return frozenset(members | set(_below(state, outermost)))


def _below(state: ClusterState, workload: ClusterObject) -> Iterator[ObjectRef]:
    for owned in state.owned_by(workload):
        if owned.kind in _FREE_HOPS:
            yield owned.ref
            yield from _below(state, owned)


def _same_thing(state: ClusterState, each: ClusterObject) -> Iterable[ObjectRef]:
    return identity(state, each) - {each.ref} if each.kind in _FREE_HOPS else ()


def _needs(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that `each` needs in order to work."""
    found = _NEEDS.get(each.kind)
    if found is not None:
        yield from found(state, each)
    elif each.group:
        yield from _of_custom(state, each)


def _named(kind: str, namespace: str, name: str) -> Iterator[ObjectRef]:
    if kind and name:
        yield ObjectRef(kind=kind, name=name, namespace=namespace)


def _of_workload(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    template = template_of(each)
    spec = child(each.body, "spec") if each.kind == "Pod" else template.spec
    for reference in references_of(spec):
        yield from _named(reference.kind, each.namespace if reference.namespaced else "", reference.name)
    yield from _claims(state, each, spec)
    if each.kind == "Pod":
        yield from _named("Node", "", text(spec, "nodeName"))
    if each.kind == "StatefulSet":
        yield from _named("Service", each.namespace, each.text("spec", "serviceName"))
    for use, _ in workload_hosts(state, each) if each.kind != "ReplicaSet" and each.owner is None else ():
        yield use.service
    yield from _failing_services(state, each)
    yield from _around(state, each, each.labels if each.kind == "Pod" else template.labels)


def _claims(state: ClusterState, each: ClusterObject, spec: JsonObject) -> Iterator[ObjectRef]:
    for volume in children(spec, "volumes"):
        yield from _named("PersistentVolumeClaim", each.namespace, text(volume, "persistentVolumeClaim", "claimName"))
    for claim in children(each.body, "spec", "volumeClaimTemplates"):
        for pod in state.pods_of(each):
            yield from _named("PersistentVolumeClaim", each.namespace, f"{text(claim, 'metadata', 'name')}-{pod.name}")


def _around(state: ClusterState, each: ClusterObject, labels: Mapping[str, str]) -> Iterator[ObjectRef]:
    """Yield the quotas, limits, policies and autoscalers that apply to the workload."""
    for kind in ("ResourceQuota", "LimitRange"):
        yield from (one.ref for one in state.of(kind, each.namespace))
    for policy in state.of("NetworkPolicy", each.namespace):
        if labels and matches_map(text_map(policy.body, "spec", "podSelector", "matchLabels"), labels):
            yield policy.ref
    yield from (scaler.ref for scaler in autoscalers_of(state, each))


def _failing_services(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the Services that the workload's logs report as unreachable."""
    for service, reported in failures(state).items():
        if any(each.uid in (one.consumer.uid, one.pod.uid) for one in reported):
            yield service


def _behind_service(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    yield from (workload.ref for workload in workloads_behind(state, each))
    yield from (pod.ref for pod in state.selected("Pod", each.namespace, text_map(each.body, "spec", "selector")))
    for piece in state.of("EndpointSlice", each.namespace):
        if piece.labels.get("kubernetes.io/service-name") == each.name:
            yield piece.ref


def _of_ingress(_state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    backends = [child(each.body, "spec", "defaultBackend")]
    for rule in each.children("spec", "rules"):
        backends += [child(path, "backend") for path in children(rule, "http", "paths")]
    for backend in backends:
        yield from _named("Service", each.namespace, text(backend, "service", "name"))
    for tls in each.children("spec", "tls"):
        yield from _named("Secret", each.namespace, text(tls, "secretName"))
    yield from _named("IngressClass", "", each.text("spec", "ingressClassName"))


def _of_claim(_state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    yield from _named("PersistentVolume", "", each.text("spec", "volumeName"))
    yield from _named("StorageClass", "", each.text("spec", "storageClassName"))


def _bindings(state: ClusterState, account: ClusterObject) -> Iterator[ObjectRef]:
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in state.of(kind):
            for subject in binding.children("subjects"):
                if (text(subject, "kind"), text(subject, "name")) == ("ServiceAccount", account.name) and text(
                    subject, "namespace"
                ) in ("", account.namespace):
                    yield binding.ref


def _of_custom(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the objects that a custom resource made or names, and its Secret, which may not exist."""
    yield from (owned.ref for owned in state.owned_by(each))
    yield from made_by(state, each)
    yield from named_in(state, each)
    yield from _named("Secret", each.namespace, each.text("spec", "secretName"))


def _of_volume(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    """Yield the StorageClass of a volume, and the object in which its driver keeps the state of the volume."""
    yield from _named("StorageClass", "", each.text("spec", "storageClassName"))
    driver, handle = each.text("spec", "csi", "driver"), each.text("spec", "csi", "volumeHandle")
    product = ".".join(driver.split(".")[-2:])
    kinds = (kind for kind in state.kinds if product and handle and kind.partition(".")[2] == product)
    yield from (one.ref for kind in kinds for one in state.of(kind) if one.name == handle)


def _of_autoscaler(_state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    target = each.child("spec", "scaleTargetRef")
    yield from _named(text(target, "kind"), each.namespace, text(target, "name"))


def _of_binding(_state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    yield from _named(each.text("roleRef", "kind"), each.namespace, each.text("roleRef", "name"))


def _of_api(_state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    yield from _named("Service", each.text("spec", "service", "namespace"), each.text("spec", "service", "name"))


def _of_budget(state: ClusterState, each: ClusterObject) -> Iterator[ObjectRef]:
    for pod in state.matched("Pod", each.namespace, each.child("spec", "selector")):
        yield state.workload_of(pod).ref


_NEEDS: Final[Mapping[str, Callable[[ClusterState, ClusterObject], Iterator[ObjectRef]]]] = {
    **dict.fromkeys(_FREE_HOPS, _of_workload),
    "Service": _behind_service,
    "Ingress": _of_ingress,
    "PersistentVolumeClaim": _of_claim,
    "PersistentVolume": _of_volume,
    "HorizontalPodAutoscaler": _of_autoscaler,
    "RoleBinding": _of_binding,
    "ServiceAccount": _bindings,
    "PodDisruptionBudget": _of_budget,
    "APIService": _of_api,
}
"""For each kind, the function that finds the objects that an object of this kind needs."""


def naming(state: ClusterState, kind: str, name: str) -> tuple[ClusterObject, ...]:
    """Return the objects that need an object with this kind and name, which may not exist, without owned objects."""
    return tuple(
        each
        for one in _NEEDS
        for each in state.of(one)
        if each.owner is None and any((ref.kind, ref.name) == (kind, name) for ref in _NEEDS[one](state, each))
    )
