"""The pod templates of all workloads, each once: where a wrong name stands, however many pods were made from it.

Called by rules about what templates refer to. A template belongs to the outermost workload; pods without an owner are
their own template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import child, text_map
from holmes.kubernetes.kinds import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_TEMPLATE_PATHS = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Pod": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """A template. `spec` is a pod's spec, `path` where it lies in the workload: `spec.template.spec`."""

    workload: ClusterObject
    spec: JsonObject
    labels: dict[str, str]
    path: str


def pod_templates(state: ClusterState) -> Iterator[PodTemplate]:
    """The templates of all workloads that are not owned themselves, and of pods without an owner."""
    for kind in (*WORKLOADS, "Pod"):
        for workload in state.of(kind):
            if workload.owner is None and workload.deleted is None:
                yield template_of(workload)


def template_of(workload: ClusterObject) -> PodTemplate:
    """The template of one workload or pod."""
    path = _TEMPLATE_PATHS.get(workload.kind, ("spec", "template"))
    template = child(workload.body, *path)
    return PodTemplate(
        workload=workload,
        spec=child(template, "spec"),
        labels=text_map(template, "metadata", "labels"),
        path=".".join((*path, "spec")),
    )
