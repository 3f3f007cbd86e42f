"""What a pod template refers to: ConfigMaps, Secrets, claims, accounts and classes, with whether they exist.

Called by `related.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import child, children, text
from holmes.kubernetes.kinds import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject


def references_of(state: ClusterState, about: ClusterObject) -> tuple[str, ...]:
    """A line for each object that the workload's or pod's template names: `ConfigMap shop/settings: missing`."""
    if about.kind not in (*WORKLOADS, "Pod"):
        return ()
    named = dict.fromkeys(_named(template_of(about).spec))
    return tuple(f"{kind} {about.namespace}/{name}: {_standing(state, kind, about, name)}" for kind, name in named)


def _standing(state: ClusterState, kind: str, about: ClusterObject, name: str) -> str:
    if state.get(kind, about.namespace, name) is not None:
        return "present"
    return "missing" if state.is_missing(kind, about.namespace, name) else "not checked"


def _named(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Kind and name of everything in the namespace that a pod's spec refers to."""
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
