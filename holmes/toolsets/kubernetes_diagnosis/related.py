"""Formats a list of the objects that are related to one object, with one fact per line.

Reads only the given cluster state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import recent_changes
from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.status import status_of
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import nearest
from holmes.diagnosis.reports import plain_kind
from holmes.kubernetes.fields import (
    child,
    children,
    duration,
    matches_map,
    matches_selector,
    text,
    text_map,
)
from holmes.kubernetes.kinds import KINDS, WORKLOADS
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_MOST: Final = 20
_MOST_EVENTS: Final = 15
_CHANGE_WINDOW_SECONDS: Final = 86_400.0
_KIND_NAMES: Final = {kind.name.lower(): kind.name for kind in KINDS}


def related_text(state: ClusterState, resource: str, namespaces: Sequence[str]) -> str:
    """List the objects related to `resource`, as text.

    If `resource` is not found, raises `ToolError` with the most similar name.
    """
    about = _find_object(state, resource, namespaces)
    lines = [f"{about.ref}: {status_of(about)}, age {duration(state.age_seconds(about))}"]
    for title, found in (
        ("owned by", _names([state.workload_of(about)] if state.workload_of(about) is not about else [])),
        ("owns", _names(each for each in state.owned_by(about) if each.kind != "Pod")),
        ("pods", _names(_pods(state, about))),
        ("selected by", _names(_in_front(state, about))),
        ("uses", _references_of(state, about)),
        ("calls", _called(state, about)),
        ("used by", _names(_users(state, about))),
        ("changed in the last 24 h", _changes(state, about)),
        ("events", _events(state, about)),
    ):
        shown = list(found)
        if shown:
            lines.append(f"{title}:")
            lines += [f"  {line}" for line in shown[:_MOST]]
            lines += [f"  … and {len(shown) - _MOST} more"] if len(shown) > _MOST else []
    lines += [f"not checked: {gap.kind}: {gap.why}" for gap in state.reading.gaps]
    return "\n".join(lines)


def _find_object(state: ClusterState, resource: str, namespaces: Sequence[str]) -> ClusterObject:
    """Find an object by `kind/name` or name. Raises `ToolError` if it is not found."""
    kind, slash, name = resource.partition("/")
    kinds = [_kind(kind, state)] if slash else [*WORKLOADS, "Pod", "Service", "Ingress", "Node"]
    kinds += WORKLOADS if kinds == ["Pod"] else ()  # models pass the name of a workload as the name of a pod
    name = name if slash else resource
    candidates = [
        each for one in kinds for each in state.of(one) if not namespaces or each.namespace in {*namespaces, ""}
    ]
    for each in candidates:
        if each.name == name:
            return each
    place = f" in namespace {', '.join(namespaces)}" if namespaces else ""
    unread = [one for one in kinds if not all(state.covers(one, each) for each in namespaces or ("",))]
    if unread:
        message = f"cannot determine whether {resource!r} exists{place}: {', '.join(unread)} could not be read"
        raise ToolError(message)
    near = nearest(name, [each.name for each in candidates])
    message = f"{resource!r} not found{place}" + (f"; did you mean {near!r}?" if near else "")
    raise ToolError(message)


def _kind(written: str, state: ClusterState) -> str:
    plain = plain_kind(written)
    custom = {kind.partition(".")[0].lower(): kind for kind in state.kinds if "." in kind}
    found = _KIND_NAMES.get(plain) or custom.get(plain)
    if found is None:
        message = f"unknown kind {written!r}; use for example deployment, pod, service or node"
        raise ToolError(message)
    return found


def _names(objects: Iterable[ClusterObject]) -> Iterator[str]:
    return (f"{each.ref}: {status_of(each)}" for each in objects)


def _pods(state: ClusterState, about: ClusterObject) -> tuple[ClusterObject, ...]:
    if about.kind in WORKLOADS:
        return state.pods_of(about)
    if about.kind == "Service":
        return state.selected("Pod", about.namespace, text_map(about.body, "spec", "selector"))
    if about.kind == "Node":
        return tuple(pod for pod in state.of("Pod") if pod.text("spec", "nodeName") == about.name)
    return ()


def _in_front(state: ClusterState, about: ClusterObject) -> list[ClusterObject]:
    """Find the Services, Ingresses, policies and autoscalers that refer to the object."""
    labels = about.labels if about.kind == "Pod" else template_of(about).labels if about.kind in WORKLOADS else {}
    found = [
        service
        for service in state.of("Service", about.namespace)
        if labels and matches_map(text_map(service.body, "spec", "selector"), labels)
    ]
    names = {service.name for service in found} | ({about.name} if about.kind == "Service" else set())
    found += [ingress for ingress in state.of("Ingress", about.namespace) if names & set(_backends(ingress.body))]
    for kind, path in (("PodDisruptionBudget", ("spec", "selector")), ("NetworkPolicy", ("spec", "podSelector"))):
        found += [
            each
            for each in state.of(kind, about.namespace)
            if labels and matches_selector(child(each.body, *path), labels)
        ]
    found += [
        scaler
        for scaler in state.of("HorizontalPodAutoscaler", about.namespace)
        if (scaler.text("spec", "scaleTargetRef", "kind"), scaler.text("spec", "scaleTargetRef", "name"))
        == (about.kind, about.name)
    ]
    return found


def _backends(ingress: JsonObject) -> Iterator[str]:
    yield text(ingress, "spec", "defaultBackend", "service", "name")
    for rule in children(ingress, "spec", "rules"):
        for path in children(rule, "http", "paths"):
            yield text(path, "backend", "service", "name")


def _called(state: ClusterState, about: ClusterObject) -> Iterator[str]:
    """Yield a line such as `Service shop/db: StatefulSet shop/db` for each Service that the settings name."""
    if about.kind not in WORKLOADS:
        return
    for service in dict.fromkeys(use.service for use, _ in workload_hosts(state, about)):
        found = state.find(service)
        pods = state.selected("Pod", service.namespace, text_map(found.body, "spec", "selector")) if found else ()
        behind = dict.fromkeys(str(state.workload_of(pod).ref) for pod in pods)
        without = "no pods" if found else _standing(state, service.kind, service.namespace, service.name)
        yield f"{service}: {', '.join(behind) or without}"


def _users(state: ClusterState, about: ClusterObject) -> list[ClusterObject]:
    """Find the workloads with pod templates that refer to a ConfigMap, Secret, claim or service account."""
    if about.kind not in {"ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount"}:
        return []
    wanted = f"{about.ref}:"
    return [
        workload
        for kind in (*WORKLOADS, "Pod")
        for workload in state.of(kind, about.namespace)
        if workload.owner is None and any(line.startswith(wanted) for line in _references_of(state, workload))
    ]


def _changes(state: ClusterState, about: ClusterObject) -> Iterator[str]:
    for change in recent_changes(state, about.ref, None, window_seconds=_CHANGE_WINDOW_SECONDS):
        yield f"{change.at} {change.object}: {change.what}"


def _events(state: ClusterState, about: ClusterObject) -> list[str]:
    """Format the newest events of the object and its dependents, oldest first."""
    family = [about, *state.owned_by(about), *_pods(state, about)]
    uids = {each.uid: each for each in family}
    events = sorted((event for each in uids.values() for event in state.events_of(each)), key=lambda event: event.last)
    return [
        f"{duration(state.now - event.last)} ago {event.type} {event.reason} (x{event.count}) {event.ref}: "
        f"{event.message}"
        for event in events[-_MOST_EVENTS:]
    ]


def _references_of(state: ClusterState, about: ClusterObject) -> tuple[str, ...]:
    """Return a line such as `ConfigMap shop/settings: missing` for each object that the pod template refers to."""
    if about.kind not in (*WORKLOADS, "Pod"):
        return ()
    named = dict.fromkeys(_named(template_of(about).spec))
    return tuple(
        f"{kind} {about.namespace}/{name}: {_standing(state, kind, about.namespace, name)}" for kind, name in named
    )


def _standing(state: ClusterState, kind: str, namespace: str, name: str) -> str:
    if state.get(kind, namespace, name) is not None:
        return "present"
    return "missing" if state.is_missing(kind, namespace, name) else "not checked"


def _named(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of each ConfigMap, Secret, claim and service account that a pod spec refers to."""
    if text(spec, "serviceAccountName"):
        yield "ServiceAccount", text(spec, "serviceAccountName")
    for secret in children(spec, "imagePullSecrets"):
        yield "Secret", text(secret, "name")
    for volume in children(spec, "volumes"):
        yield from _of_source(volume)
        for source in children(volume, "projected", "sources"):
            yield from _of_source(source)
    for container in (*children(spec, "initContainers"), *children(spec, "containers")):
        for source in children(container, "envFrom"):
            yield from _of_environment(source, "configMapRef", "secretRef")
        for variable in children(container, "env"):
            yield from _of_environment(child(variable, "valueFrom"), "configMapKeyRef", "secretKeyRef")


def _of_source(source: JsonObject) -> Iterator[tuple[str, str]]:
    for kind, path in (
        ("ConfigMap", ("configMap", "name")),
        ("Secret", ("secret", "secretName")),
        ("Secret", ("secret", "name")),
        ("PersistentVolumeClaim", ("persistentVolumeClaim", "claimName")),
    ):
        if text(source, *path):
            yield kind, text(source, *path)


def _of_environment(source: JsonObject, config_map: str, secret: str) -> Iterator[tuple[str, str]]:
    for kind, key in (("ConfigMap", config_map), ("Secret", secret)):
        if text(source, key, "name"):
            yield kind, text(source, key, "name")
