"""Small typed views of the objects that Holmes reads.

A view holds what is needed to explain a state, and never the object itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.kubernetes.fields import boolean, child, children, integer, text

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

ContainerRole: TypeAlias = Literal["init", "container", "ephemeral"]

_ROLES: tuple[tuple[ContainerRole, str, str], ...] = (
    ("init", "initContainers", "initContainerStatuses"),
    ("container", "containers", "containerStatuses"),
    ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """What a container does or did. Times are RFC 3339 as Kubernetes writes them, empty when unknown."""

    status: Literal["waiting", "running", "terminated", "unknown"]
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_at: str = ""
    finished_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """A container of a pod. `last` is the instance before the current one, when Kubernetes still knows it."""

    name: str
    role: ContainerRole
    image: str
    ready: bool
    restarts: int
    state: ContainerState
    last: ContainerState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """The object that made this one."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod. `containers` are in the order in which they start: init, main, ephemeral.

    `problem` is why it does not run as a whole (not scheduled, evicted), empty when there is no such reason.
    """

    name: str
    namespace: str
    phase: str
    node: str
    problem: str
    containers: tuple[ContainerView, ...]

    @property
    def ready(self) -> bool:
        """Whether every main container is ready, or the pod has done its work."""
        return self.phase == "Succeeded" or all(
            container.ready for container in self.containers if container.role == "container"
        )

    @property
    def restarts(self) -> int:
        """The restarts of all containers together."""
        return sum(container.restarts for container in self.containers)


def pod_view(pod: JsonObject) -> PodView:
    """The view of a Pod object."""
    metadata, spec, status = child(pod, "metadata"), child(pod, "spec"), child(pod, "status")
    containers = [
        _container(role, container, statuses.get(text(container, "name"), {}))
        for role, spec_key, status_key in _ROLES
        for statuses in ({text(entry, "name"): entry for entry in children(status, status_key)},)
        for container in children(spec, spec_key)
    ]
    return PodView(
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        phase=text(status, "phase"),
        node=text(spec, "nodeName"),
        problem=_problem(status),
        containers=tuple(containers),
    )


def owner_of(document: JsonObject) -> OwnerView | None:
    """The controller among the owner references."""
    for reference in children(document, "metadata", "ownerReferences"):
        if boolean(reference, "controller"):
            return OwnerView(kind=text(reference, "kind"), name=text(reference, "name"), uid=text(reference, "uid"))
    return None


def _problem(status: JsonObject) -> str:
    if text(status, "reason") or text(status, "message"):
        return _joined(text(status, "reason"), text(status, "message"))
    for condition in children(status, "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return _joined("not scheduled", text(condition, "message"))
    return ""


def _container(role: ContainerRole, container: JsonObject, status: JsonObject) -> ContainerView:
    last = _state(child(status, "lastState"))
    return ContainerView(
        name=text(container, "name"),
        role=role,
        image=text(container, "image"),
        ready=boolean(status, "ready"),
        restarts=integer(status, "restartCount"),
        state=_state(child(status, "state")),
        last=last if last.status == "terminated" else None,
    )


def _state(state: JsonObject) -> ContainerState:
    if "running" in state:
        return ContainerState(status="running", started_at=text(state, "running", "startedAt"))
    if "terminated" in state:
        ended = child(state, "terminated")
        return ContainerState(
            status="terminated",
            reason=text(ended, "reason"),
            message=" ".join(text(ended, "message").split()),
            exit_code=integer(ended, "exitCode"),
            started_at=text(ended, "startedAt"),
            finished_at=text(ended, "finishedAt"),
        )
    if "waiting" in state:
        waiting = child(state, "waiting")
        message = " ".join(text(waiting, "message").split())
        return ContainerState(status="waiting", reason=text(waiting, "reason"), message=message)
    return ContainerState(status="unknown")


def _joined(reason: str, message: str) -> str:
    return ": ".join(part for part in (reason, " ".join(message.split())) if part)
