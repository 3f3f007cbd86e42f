"""Words the fault of a reference whose object or key does not exist, and decides what must be changed.

Called by the rules about configuration and volumes, before and after the kubelet stumbles over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.nearest import nearest
from holmes.diagnosis.facts.spec_places import edited_at
from holmes.diagnosis.facts.typos import meant
from holmes.kubernetes.fields import child
from holmes.kubernetes.moments import written
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from holmes.diagnosis.facts.config_references import Reference
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

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
    """What is missing. `path` is the wrong field below the pod's spec.

    `culprit` is None when the workload that refers is wrong; `proof` shows what exists instead.
    """

    title: str
    path: str
    culprit: ObjectRef | None
    what: str
    hint: str
    proof: tuple[Evidence, ...]
    next_check: str


def missing_object(reference: Reference, namespace: str, state: ClusterState) -> Missing:
    """The fault of an object that does not exist."""
    place = namespace if reference.namespaced else ""
    ref = ObjectRef(kind=reference.kind, namespace=place, name=reference.name)
    existing = [each.name for each in state.of(reference.kind, place)]
    typo, near = meant(reference.name, existing), nearest(reference.name, existing)
    option = f" -n {namespace}" if reference.namespaced else ""
    return Missing(
        title=f"{reference.kind} is missing",
        path=reference.path,
        culprit=None if typo else ref,
        what=f"{ref} does not exist",
        hint=f"; the name is probably a misspelling of {typo}" if typo else f"; the nearest is {near}" if near else "",
        proof=(),
        next_check=f"kubectl{option} get {_RESOURCES[reference.kind]}",
    )


def missing_key(reference: Reference, workload: ClusterObject, state: ClusterState) -> Missing:
    """The fault of a key that the object does not have. Keys of a Secret are not known."""
    namespace = workload.namespace
    ref = ObjectRef(kind=reference.kind, namespace=namespace, name=reference.name)
    found = state.get(reference.kind, namespace, reference.name)
    keys = config_keys(found) if found is not None and reference.kind == "ConfigMap" else ()
    near = nearest(reference.key, keys)
    proof: tuple[Evidence, ...] = ()
    if found is not None and reference.kind == "ConfigMap":
        shown = ", ".join(keys[:_MOST_KEYS]) + (", …" if len(keys) > _MOST_KEYS else "")
        proof = (value(found, "data keys", shown or "(none)"),)
    changed = found is not None and edited_at(found) > _template_changed(workload, state) + _SLACK_SECONDS
    typo = meant(reference.key, keys) is not None and not changed
    hint = f"; the nearest existing key is {near}" if near else ""
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
    )


def just_repaired(reference: Reference, namespace: str, state: ClusterState) -> bool:
    """Whether what the kubelet misses is there by now, and so new that it may not have tried again."""
    found = state.get(reference.kind, namespace, reference.name)
    unknown = reference.kind == "Secret" and bool(reference.key)
    if found is None or unknown or lacks_key(reference, namespace, state):
        return False
    return state.now - edited_at(found) <= _RETRY_GRACES * state.grace_seconds


def config_keys(config_map: ClusterObject) -> tuple[str, ...]:
    """The keys of a ConfigMap."""
    return tuple(sorted({**child(config_map.body, "data"), **child(config_map.body, "binaryData")}))


def lacks_key(reference: Reference, namespace: str, state: ClusterState) -> bool:
    """Whether the ConfigMap exists and has certainly not the key of the reference."""
    if reference.kind != "ConfigMap" or not reference.key:
        return False
    found = state.get("ConfigMap", namespace, reference.name)
    return found is not None and reference.key not in config_keys(found)


def _template_changed(workload: ClusterObject, state: ClusterState) -> float:
    """When the workload's template got its present form: the newest ReplicaSet of a Deployment."""
    newest = max((each.created for each in state.owned_by(workload, "ReplicaSet")), default=None)
    return edited_at(workload) if newest is None else newest
