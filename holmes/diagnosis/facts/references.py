"""Finds the references of pod templates to ConfigMaps, Secrets and other objects, and describes missing objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.actors import who_changed
from holmes.diagnosis.facts.evidence import edited_at, is_optional, value
from holmes.diagnosis.facts.fixes import corrected, instruction, provided
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.facts.typos import meant, nearest
from holmes.kubernetes.fields import child, children, text, written
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Finding
    from holmes.values.json_types import JsonObject


Use: TypeAlias = Literal["variable", "variables", "volume", "account", "pull secret", "class"]
OBJECT_NOT_FOUND: Final = expression(r"(configmap|secret)s? \"([^\"]{1,253})\" not found", re.IGNORECASE)
"""Matches a kubelet message about a missing object. The groups are the object's kind and name."""
_ENV: Final = (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret"))
_ENV_FROM: Final = (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))
_FIELDS: Final[tuple[tuple[str, str, Use], ...]] = (
    ("serviceAccountName", "ServiceAccount", "account"),
    ("priorityClassName", "PriorityClass", "class"),
    ("runtimeClassName", "RuntimeClass", "class"),
)
DATA_KEYS: Final = "data keys"
"""The path of evidence that lists the keys of a ConfigMap."""
_CLUSTER_WIDE: Final = frozenset({"PriorityClass", "RuntimeClass"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference from a pod's spec to an object, or to one of its keys.

    `path` is the field with the name of the object. `key_path` is the field with the key, or empty. Both are relative
    to the pod's spec. `user` describes the part of the spec that refers to the object, for example `variable PORT of
    container web` or `volume settings`.
    """

    kind: str
    name: str
    path: str
    use: Use
    user: str
    optional: bool = False
    key: str = ""
    key_path: str = ""
    container: str = ""

    @property
    def namespaced(self) -> bool:
        """Whether the object is in the pod's namespace. Otherwise it is cluster-wide."""
        return self.kind not in _CLUSTER_WIDE


def references_of(spec: JsonObject) -> Iterator[Reference]:
    """Yield every reference in a pod's spec, in document order. References without a name are omitted."""
    for each in _references(spec):
        if each.name:
            yield each


def _references(spec: JsonObject) -> Iterator[Reference]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(children(spec, kind)):
            yield from _of_container(container, f"{kind}[{index}]")
    for index, volume in enumerate(children(spec, "volumes")):
        yield from _of_volume(volume, f"volumes[{index}]")
    for index, secret in enumerate(children(spec, "imagePullSecrets")):
        path = f"imagePullSecrets[{index}].name"
        yield Reference(kind="Secret", name=text(secret, "name"), path=path, use="pull secret", user="the pull secrets")
    for field, kind, use in _FIELDS:
        yield Reference(kind=kind, name=text(spec, field), path=field, use=use, user=f"the field {field}")


def _of_container(container: JsonObject, path: str) -> Iterator[Reference]:
    name = text(container, "name")
    for index, variable in enumerate(children(container, "env")):
        for field, kind in _ENV:
            source = child(variable, "valueFrom", field)
            place = f"{path}.env[{index}].valueFrom.{field}"
            yield Reference(
                kind=kind,
                name=text(source, "name"),
                path=f"{place}.name",
                use="variable",
                user=f"variable {text(variable, 'name')} of container {name}",
                optional=is_optional(source),
                key=text(source, "key"),
                key_path=f"{place}.key",
                container=name,
            )
    for index, entry in enumerate(children(container, "envFrom")):
        for field, kind in _ENV_FROM:
            source = child(entry, field)
            yield Reference(
                kind=kind,
                name=text(source, "name"),
                path=f"{path}.envFrom[{index}].{field}.name",
                use="variables",
                user=f"container {name}",
                optional=is_optional(source),
                container=name,
            )


def _of_volume(volume: JsonObject, path: str) -> Iterator[Reference]:
    user = f"volume {text(volume, 'name')}"
    yield from _of_source(child(volume, "configMap"), "ConfigMap", "name", (f"{path}.configMap", user))
    yield from _of_source(child(volume, "secret"), "Secret", "secretName", (f"{path}.secret", user))
    for index, source in enumerate(children(volume, "projected", "sources")):
        place = f"{path}.projected.sources[{index}]"
        yield from _of_source(child(source, "configMap"), "ConfigMap", "name", (f"{place}.configMap", user))
        yield from _of_source(child(source, "secret"), "Secret", "name", (f"{place}.secret", user))
    yield Reference(
        kind="PersistentVolumeClaim",
        name=text(volume, "persistentVolumeClaim", "claimName"),
        path=f"{path}.persistentVolumeClaim.claimName",
        use="volume",
        user=user,
    )


def _of_source(source: JsonObject, kind: str, name_field: str, place: tuple[str, str]) -> Iterator[Reference]:
    """Yield the reference of a volume to its object, and one reference for each key that the volume selects."""
    path, user = place
    name, optional = text(source, name_field), is_optional(source)
    where = f"{path}.{name_field}"
    yield Reference(kind=kind, name=name, path=where, use="volume", user=user, optional=optional)
    for index, item in enumerate(children(source, "items")):
        yield Reference(
            kind=kind,
            name=name,
            path=where,
            use="volume",
            user=user,
            optional=optional,
            key=text(item, "key"),
            key_path=f"{path}.items[{index}].key",
        )


_RESOURCES: Final = {
    "ConfigMap": "configmap",
    "Secret": "secret",
    "PersistentVolumeClaim": "persistentvolumeclaim",
    "ServiceAccount": "serviceaccount",
    "PriorityClass": "priorityclass",
    "RuntimeClass": "runtimeclass",
}
_MOST_KEYS: Final = 12
_RETRY_GRACES: Final = 3
_SLACK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A missing object or key.

    `path` is the field of the pod's spec that refers to the object or key. `culprit` is None if the referring workload
    must be changed, and `right` is then the name or key that was meant. `proof` contains the keys that exist, or what
    shows who deleted the object.
    """

    title: str
    path: str
    culprit: ObjectRef | None
    what: str
    hint: str
    proof: tuple[Evidence, ...]
    next_check: str
    right: str | None = None

    def fix(self, wrong: Evidence, user: ObjectRef) -> FixStep | None:
        """Return the step that corrects the reference, or that provides the object. `wrong` is the field `path`."""
        if self.culprit is None:
            return corrected(wrong, self.right)
        if "key" in self.title.lower():
            return instruction(self.culprit, f"Add the key {wrong.value} to {self.culprit}, or correct it in {user}.")
        return provided(self.culprit, user)


def missing_object(reference: Reference, namespace: str, state: ClusterState) -> Missing:
    """Describe an object that does not exist, and the object that the reference probably means."""
    place = namespace if reference.namespaced else ""
    ref = ObjectRef(kind=reference.kind, namespace=place, name=reference.name)
    existing = [each.name for each in state.of(reference.kind, place)]
    typo, near = meant(reference.name, existing), nearest(reference.name, existing)
    option = f" -n {namespace}" if reference.namespaced else ""
    actor = who_changed(state, ref, None, ("delete", "replace"))
    hint = f"; the closest existing name is {near}" if near else ""
    hint = f"; the name is probably a misspelling of {typo}" if typo else hint
    return Missing(
        title=f"{reference.kind} is missing",
        path=reference.path,
        culprit=None if typo else ref,
        what=f"{ref} does not exist",
        hint=f"; {actor.words}" if actor is not None else hint,
        proof=actor.evidence if actor is not None else (),
        next_check=f"kubectl{option} get {_RESOURCES[reference.kind]}",
        right=typo,
    )


def missing_key(reference: Reference, workload: ClusterObject, state: ClusterState) -> Missing:
    """Describe a key that the object does not have.

    For a ConfigMap, the description includes the existing keys. The keys of Secrets are unknown.
    """
    namespace = workload.namespace
    ref = ObjectRef(kind=reference.kind, namespace=namespace, name=reference.name)
    found = state.get(reference.kind, namespace, reference.name)
    keys = _config_keys(found) if found is not None and reference.kind == "ConfigMap" else ()
    near = nearest(reference.key, keys)
    proof: tuple[Evidence, ...] = ()
    if found is not None and reference.kind == "ConfigMap":
        shown = ", ".join(keys[:_MOST_KEYS]) + (", …" if len(keys) > _MOST_KEYS else "")
        proof = (value(found, DATA_KEYS, shown or "(none)"),)
    changed = found is not None and edited_at(found) > _template_changed(workload, state) + _SLACK_SECONDS
    typo = meant(reference.key, keys) if not changed else None
    hint = f"; the closest existing key is {near}" if near else ""
    if found is not None and changed:
        hint += f"; {ref} was changed at {written(edited_at(found))}, after the workload"
    return Missing(
        title=f"Key is missing in {reference.kind}",
        path=reference.key_path,
        culprit=None if typo else ref,
        what=f"{ref} has no key {reference.key}",
        hint=hint,
        proof=proof,
        next_check=f"kubectl -n {namespace} describe {_RESOURCES[reference.kind]} {reference.name}",
        right=typo,
    )


def lacks_only_key(finding: Finding) -> bool:
    """Return whether the decisive field of a finding is a reference to a key, or the list of the keys that exist."""
    path = finding.evidence[0].path if finding.evidence else ""
    return path == DATA_KEYS or path.endswith((".key", *(f".{name}" for name, _ in _ENV)))


def just_repaired(reference: Reference, namespace: str, state: ClusterState) -> bool:
    """Return whether the missing object or key was added so recently that the kubelet might not have retried yet."""
    found = state.get(reference.kind, namespace, reference.name)
    unknown = reference.kind == "Secret" and bool(reference.key)
    if found is None or unknown or lacks_key(reference, namespace, state):
        return False
    return state.now - edited_at(found) <= _RETRY_GRACES * state.patience_seconds


def _config_keys(config_map: ClusterObject) -> tuple[str, ...]:
    return tuple(sorted({**child(config_map.body, "data"), **child(config_map.body, "binaryData")}))


def lacks_key(reference: Reference, namespace: str, state: ClusterState) -> bool:
    """Return whether the ConfigMap of the reference exists and does not have the key."""
    if reference.kind != "ConfigMap" or not reference.key:
        return False
    found = state.get("ConfigMap", namespace, reference.name)
    return found is not None and reference.key not in _config_keys(found)


def _template_changed(workload: ClusterObject, state: ClusterState) -> float:
    """Return the time of the last change to the pod template.

    For a Deployment, this is the creation time of the newest ReplicaSet.
    """
    newest = max((each.created for each in state.owned_by(workload, "ReplicaSet")), default=None)
    return edited_at(workload) if newest is None else newest


def account_of(workload: ClusterObject) -> ObjectRef:
    """Return the ServiceAccount of the pods of a workload."""
    name = text(template_of(workload).spec, "serviceAccountName") or "default"
    return ObjectRef(kind="ServiceAccount", namespace=workload.namespace, name=name)
