"""Says where a field of a pod was written: in the template of its workload, or in the pod itself.

Called by rules about pods. A field that the live pod has otherwise than the template is shown at the pod.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import at, boolean, children, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.kubernetes.moments import moment

if TYPE_CHECKING:
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonValue

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def resolved(value_at: JsonValue, path: str) -> JsonValue:
    """What lies under a path with list positions (`containers[0].image`), or None."""
    for key, position in _STEP.findall(path):
        if position:
            index = int(position)
            value_at = value_at[index] if isinstance(value_at, list) and index < len(value_at) else None
        else:
            value_at = at(value_at, key)
    return value_at


def spec_field(pod: ClusterObject, state: ClusterState, path: str) -> Evidence:
    """A field of a pod's spec with its value: `spec_field(pod, state, "containers[0].image")`."""
    found = resolved(pod.at("spec"), path)
    workload = state.workload_of(pod)
    if workload.kind in WORKLOADS:
        template = template_of(workload)
        if found == resolved(template.spec, path):
            return value(workload, f"{template.path}.{path}", _written(found))
    return value(pod, f"spec.{path}", _written(found))


def container_field(container: Container, state: ClusterState, path: str) -> Evidence:
    """A field of a container's spec with its value: `container_field(container, state, "livenessProbe")`."""
    return spec_field(container.pod, state, f"{container.spec_path.removeprefix('spec.')}.{path}")


def owner_words(pod: ClusterObject, state: ClusterState) -> str:
    """The workload as causes name it: `Deployment shop/web`."""
    return str(state.workload_of(pod).ref)


def pod_words(pod: ClusterObject, state: ClusterState) -> str:
    """The pod as causes name it: `A pod of Deployment shop/web`, or `Pod shop/web` when nothing owns it."""
    workload = state.workload_of(pod)
    return str(pod.ref) if workload is pod else f"A pod of {workload.ref}"


def container_words(container: Container, state: ClusterState) -> str:
    """The container as causes name it: `container app of Deployment shop/web`."""
    kind = "init container" if container.kind == "init" else "container"
    return f"{kind} {container.name} of {owner_words(container.pod, state)}"


def serves_elsewhere(pod: ClusterObject, state: ClusterState) -> bool:
    """Whether the workload of a pod has as many ready pods as it wants without this one."""
    workload = state.workload_of(pod)
    if workload.kind not in WORKLOADS:
        return False
    wanted = workload.integer("spec", "replicas") if at(workload.body, "spec", "replicas") is not None else 1
    others = [each for each in state.pods_of(workload) if each is not pod and each.deleted is None]
    if workload.kind == "DaemonSet":
        others = [each for each in others if each.text("spec", "nodeName") == pod.text("spec", "nodeName")]
    ready = sum(1 for each in others if text(each.condition("Ready"), "status") == "True")
    return ready >= max(1, wanted)


def edited_at(each: ClusterObject) -> float:
    """When somebody last changed an object apart from its status, in seconds since the epoch; its creation at least."""
    entries = children(each.body, "metadata", "managedFields")
    times = (moment(text(entry, "time")) for entry in entries if text(entry, "subresource") != "status")
    return max((found for found in times if found is not None), default=each.created)


def is_optional(reference: JsonValue) -> bool:
    """Whether a reference says `optional: true`."""
    return boolean(reference, "optional")


def _written(found: JsonValue) -> object:
    return "(not set)" if found is None else found
