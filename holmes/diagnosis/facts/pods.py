"""Reads the containers of pods with their statuses, and selects the pods that rules judge.

Rules do not judge a pod that is being deleted, has succeeded, or is younger than the grace period.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from holmes.diagnosis.facts.evidence import owner_words, shown, spec_field
from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import at, boolean, child, integer, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

ContainerKind = Literal["init", "main", "ephemeral"]
_KINDS: Final[tuple[tuple[ContainerKind, str, str], ...]] = (
    ("init", "initContainers", "initContainerStatuses"),
    ("main", "containers", "containerStatuses"),
    ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
)
SAYS_NOTHING: Final = expression(r"^(?:Error: \w{1,60}|Back-off pulling image \"[^\"]{1,1000}\")$")
"""A message of the kubelet that repeats the reason of an event and gives no cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container of a pod.

    `spec` is its definition, and `status` is its status, or empty if unknown. `spec_path` and `status_path` are the
    fields of the pod that contain them, for example `spec.containers[0]`. Evidence refers to these fields.
    """

    pod: ClusterObject
    kind: ContainerKind
    spec: JsonObject
    status: JsonObject
    spec_path: str
    status_path: str

    @property
    def name(self) -> str:
        return text(self.spec, "name")

    @property
    def restarts(self) -> int:
        return integer(self.status, "restartCount")

    @property
    def ready(self) -> bool:
        return boolean(self.status, "ready")

    @property
    def sidecar(self) -> bool:
        """Whether the container is an init container that keeps running (a sidecar)."""
        return self.kind == "init" and text(self.spec, "restartPolicy") == "Always"

    @property
    def waiting(self) -> JsonObject:
        """The field `state.waiting`, or an empty object if the container is not waiting."""
        return child(self.status, "state", "waiting")

    @property
    def running(self) -> bool:
        return isinstance(at(self.status, "state", "running"), dict)

    @property
    def terminated(self) -> JsonObject:
        """The field `state.terminated`, or an empty object if the container is not terminated."""
        return child(self.status, "state", "terminated")

    @property
    def last_terminated(self) -> JsonObject:
        """The field `lastState.terminated`, or an empty object if the container has not terminated before."""
        return child(self.status, "lastState", "terminated")

    def evidence(self, *path: str, of: Literal["spec", "status"] = "status") -> Evidence:
        """Return evidence for the field `path` of the status or the spec, with its full path in the pod."""
        base, document = (self.spec_path, self.spec) if of == "spec" else (self.status_path, self.status)
        return Evidence(object=self.pod.ref, path=".".join((base, *path)), value=shown(at(document, *path)))


def containers_of(pod: ClusterObject) -> tuple[Container, ...]:
    """Return all containers in start order: init, main, ephemeral."""
    found: list[Container] = []
    for kind, spec_key, status_key in _KINDS:
        statuses = {
            text(status, "name"): (index, status) for index, status in enumerate(pod.children("status", status_key))
        }
        for index, spec in enumerate(pod.children("spec", spec_key)):
            position, status = statuses.get(text(spec, "name"), (index, {}))
            found.append(
                Container(
                    pod=pod,
                    kind=kind,
                    spec=spec,
                    status=status,
                    spec_path=f"spec.{spec_key}[{index}]",
                    status_path=f"status.{status_key}[{position}]",
                )
            )
    return tuple(found)


@once_per_state
def troubled_pods(state: ClusterState) -> tuple[ClusterObject, ...]:
    """Return the pods that are not ready, or have a container that is waiting, is not ready or has restarted.

    Pods within the grace period are included. Rules about failing containers check only these pods. The result is
    cached for each state.
    """
    return tuple(pod for pod in judged_pods(state, young=True) if not _plain(pod))


def _plain(pod: ClusterObject) -> bool:
    """Return whether the pod and all its containers are ready, and no container is waiting or has restarted."""
    if not pod_ready(pod):
        return False
    statuses = (*pod.children("status", "initContainerStatuses"), *pod.children("status", "containerStatuses"))
    return all(
        boolean(each, "ready") and not integer(each, "restartCount") and "waiting" not in child(each, "state")
        for each in statuses
    )


def judged_pods(state: ClusterState, *, young: bool = False) -> Iterator[ClusterObject]:
    """Yield the pods that rules judge.

    These pods are older than the grace period, have not succeeded and are not being deleted. If `young` is true,
    younger pods are included, for faults that differ clearly from a normal start.
    """
    for pod in state.of("Pod"):
        if pod.deleted is not None or pod.text("status", "phase") == "Succeeded":
            continue
        if young or state.age_seconds(pod) >= state.grace_seconds:
            yield pod


def container_field(container: Container, state: ClusterState, path: str) -> Evidence:
    """Return evidence for the field `path` of a container's spec, for example `livenessProbe`."""
    return spec_field(container.pod, state, f"{container.spec_path.removeprefix('spec.')}.{path}")


def container_words(container: Container, state: ClusterState) -> str:
    """Return a phrase that names the container, for example `container app of Deployment shop/web`."""
    kind = "init container" if container.kind == "init" else "container"
    return f"{kind} {container.name} of {owner_words(container.pod, state)}"


def is_sick(state: ClusterState, workload: ClusterObject) -> bool:
    """Return whether a pod of the workload has restarted, or is not ready after the grace period."""
    for pod in state.pods_of(workload):
        if pod.deleted is not None or pod.text("status", "phase") == "Succeeded":
            continue
        restarted = any(container.restarts for container in containers_of(pod))
        ready = pod_ready(pod)
        if (not ready and state.age_seconds(pod) >= state.grace_seconds) or restarted:
            return True
    return False


def program_of(pod: ClusterObject) -> tuple[tuple[str, ...], ...]:
    """Return the image repository and command of each container, which identify its program in any version."""
    containers = pod.children("spec", "containers")
    return tuple((_repository(text(each, "image")), *texts(each, "command")) for each in containers)


def _repository(image: str) -> str:
    return re.sub(r"(?:@[^/]*|:[^/:@]*)$", "", image.partition("@")[0])
