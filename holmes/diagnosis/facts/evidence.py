"""Builds evidence (a value with its path) and the phrases that name pods and workloads in causes.

If a field has the same value in a pod and in the template of its workload, the evidence refers to the template.
Otherwise it refers to the pod.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import at, boolean, child, children, moment, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.redaction.names import strength_of
from holmes.values.expressions import expression
from holmes.values.findings import Evidence
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject, JsonValue


_LONGEST_CHARACTERS = 600


def shown(value: object) -> str:
    """Format a value for evidence in at most 600 characters. Values other than strings are formatted as JSON."""
    written = value if isinstance(value, str) else json.dumps(value, default=str)
    return excerpt(written, _LONGEST_CHARACTERS)


def has_secret_name(name: str) -> bool:
    """Return whether the name indicates a secret value.

    Causes must not quote a secret value, because masking cannot recognise the value in a sentence.
    """
    return strength_of(name) != "none"


def field(each: ClusterObject, *path: str) -> Evidence:
    """Return evidence for a field of an object, for example `field(pod, "status", "phase")`."""
    return Evidence(object=each.ref, path=".".join(path), value=shown(each.at(*path)))


def value(each: ClusterObject, path: str, found: object) -> Evidence:
    """Return evidence for a value at a path, for example `value(pod, "spec.volumes[2].configMap.name", name)`."""
    return Evidence(object=each.ref, path=path, value=shown(found))


def event(found: ClusterEvent) -> Evidence:
    times = f" (x{found.count})" if found.count > 1 else ""
    return Evidence(object=found.ref, path=f"event {found.reason}{times}", value=shown(found.message))


def log_line(pod: ClusterObject, container: str, line: str, *, previous: bool) -> Evidence:
    instance = " (previous)" if previous else ""
    return Evidence(object=pod.ref, path=f"log of container {container}{instance}", value=shown(line))


_STEP: Final = expression(r"([^.\[\]]+)|\[(\d+)\]")


def keys_of(path: str) -> tuple[str, ...]:
    """Return the keys and list positions of a path (`containers[0].image`)."""
    return tuple(key or position for key, position in _STEP.findall(path))


def resolved(value_at: JsonValue, path: str) -> JsonValue:
    """Return the value at a path with list positions (`containers[0].image`), or None."""
    for key, position in _STEP.findall(path):
        if position:
            index = int(position)
            value_at = value_at[index] if isinstance(value_at, list) and index < len(value_at) else None
        else:
            value_at = at(value_at, key)
    return value_at


def spec_field(pod: ClusterObject, state: ClusterState, path: str) -> Evidence:
    """Return evidence for a field of a pod's spec, for example `spec_field(pod, state, "containers[0].image")`."""
    found = resolved(pod.at("spec"), path)
    workload = state.workload_of(pod)
    if workload.kind in WORKLOADS:
        template = template_of(workload)
        if found == resolved(template.spec, path):
            return value(workload, f"{template.path}.{path}", _or_not_set(found))
    return value(pod, f"spec.{path}", _or_not_set(found))


def owner_words(pod: ClusterObject, state: ClusterState) -> str:
    """Return a phrase that names the workload of a pod, for example `Deployment shop/web`."""
    return str(state.workload_of(pod).ref)


def pod_words(pod: ClusterObject, state: ClusterState) -> str:
    """Return a phrase that names the pod: `A pod of Deployment shop/web`, or `Pod shop/web` if the pod has no owner."""
    workload = state.workload_of(pod)
    return str(pod.ref) if workload is pod else f"A pod of {workload.ref}"


def serves_elsewhere(pod: ClusterObject, state: ClusterState) -> bool:
    """Return whether the workload of a pod has its desired number of ready pods, not counting this pod."""
    workload = state.workload_of(pod)
    if workload.kind not in WORKLOADS:
        return False
    wanted = workload.integer("spec", "replicas") if at(workload.body, "spec", "replicas") is not None else 1
    others = [each for each in state.pods_of(workload) if each is not pod and each.deleted is None]
    if workload.kind == "DaemonSet":
        others = [each for each in others if each.text("spec", "nodeName") == pod.text("spec", "nodeName")]
    ready = sum(1 for each in others if pod_ready(each))
    return ready >= max(1, wanted)


def edited_at(each: ClusterObject) -> float:
    """Return the time of the last change outside of status, labels and annotations, in seconds since the epoch.

    Returns the creation time if no such change is recorded.
    """
    entries = children(each.body, "metadata", "managedFields")
    content = (entry for entry in entries if text(entry, "subresource") != "status" and not _is_of_metadata(entry))
    times = (moment(text(entry, "time")) for entry in content)
    return max((found for found in times if found is not None), default=each.created)


def _is_of_metadata(entry: JsonObject) -> bool:
    """Return whether an entry of managedFields only contains labels, annotations and the like."""
    return set(child(entry, "fieldsV1")) == {"f:metadata"}


def is_optional(reference: JsonValue) -> bool:
    return boolean(reference, "optional")


def _or_not_set(found: JsonValue) -> object:
    return "(not set)" if found is None else found
