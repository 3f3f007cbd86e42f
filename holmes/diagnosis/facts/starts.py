"""Determines what a pod that is not ready is waiting for to start, and until when it may wait.

Only waits that end by themselves count: the time that probes allow, a node that an autoscaler adds, and an image that
is being pulled. A failed attempt is not a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.crashes import unhealthy
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.probes import failures, probe_of, starting_until, verdict
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.unscheduled import NODE_GRACES, coming_node
from holmes.kubernetes.fields import at, duration, moment, text, written

if TYPE_CHECKING:
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_PULL_GRACES: Final = 10
"""A pull has no time limit of its own; after ten minutes by default, a Deployment counts as stuck, too."""
_DEADLINE_SECONDS: Final = 600
_IN_PROGRESS: Final = frozenset({"ReplicaSetUpdated", "NewReplicaSetCreated", "FoundNewReplicaSet"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A wait that ends by itself. `until` is in seconds since the epoch, or 0 if nothing limits the wait."""

    words: str
    until: float = 0.0


def start_of(state: ClusterState, pod: ClusterObject) -> Start | None:
    """Return what the pod is waiting for to start, or None if nothing shows that it is starting."""
    until, node, pull = starting_until(state, pod), coming_node(state, pod), _pull_of(state, pod)
    if until:
        allowed = duration(until - pod.created)
        return Start(
            words=f"the probes of {pod.ref} allow {allowed} for its start, until {written(until)}", until=until
        )
    if node is not None:
        until = node.last + NODE_GRACES * state.patience_seconds
        words = f"{pod.ref} waits for a new node ({node.message}), which may take until {written(until)}"
        return Start(words=words, until=until)
    gate = _absent_gate(state, pod)
    if gate:
        return Start(words=f"all containers of {pod.ref} are ready, but its readiness gate {gate} is not set yet")
    if pull is not None:
        words = f"the node has been pulling the image of {pod.ref} for {duration(state.now - pull.last)}"
        return Start(words=words)
    return None


def _absent_gate(state: ClusterState, pod: ClusterObject) -> str:
    """Return a readiness gate without a condition that a controller may still write, or an empty string."""
    ready = pod.condition("ContainersReady")
    since = moment(text(ready, "lastTransitionTime")) or pod.created
    if text(ready, "status") != "True" or state.now - since >= state.patience_seconds:
        return ""
    gates = (text(each, "conditionType") for each in pod.children("spec", "readinessGates"))
    return next((gate for gate in gates if not pod.condition(gate)), "")


def _pull_of(state: ClusterState, pod: ClusterObject) -> ClusterEvent | None:
    """Return the event with which the pull of an image began that has neither ended nor failed, or None."""
    for container in containers_of(pod):
        told = state.events_of(pod, "Pulling", "Pulled", "Failed", "BackOff")
        own = [each for each in told if each.field_path.endswith(f"{{{container.name}}}") or not each.field_path]
        pulls = bool(own) and own[-1].reason == "Pulling" and text(container.waiting, "reason") in _PULLS
        if pulls and state.now - own[-1].last < _PULL_GRACES * state.patience_seconds:
            return own[-1]
    return None


_PULLS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


def are_starting(state: ClusterState, workload: ClusterObject) -> bool:
    """Return whether all pods of the workload that are not ready wait for something that ends by itself."""
    pods = [pod for pod in state.pods_of(workload) if not pod_ready(pod)]
    return bool(pods) and all(start_of(state, pod) is not None for pod in pods)


def rollout_ends(state: ClusterState, workload: ClusterObject) -> tuple[float, int]:
    """Return when the deadline of a rollout that is in progress ends, and the deadline in seconds. Otherwise zeros."""
    progressing = workload.condition("Progressing")
    deadline = workload.integer("spec", "progressDeadlineSeconds") or _DEADLINE_SECONDS
    updated = moment(text(progressing, "lastUpdateTime")) or moment(text(progressing, "lastTransitionTime")) or 0.0
    if text(progressing, "reason") not in _IN_PROGRESS or updated + deadline <= state.now:
        return 0.0, 0
    return updated + deadline, deadline


def is_not_ready_yet(state: ClusterState, pod: ClusterObject) -> bool:
    """Return whether the pod has only told its probes so far that it is not ready yet, while its rollout may last.

    A container that restarted or was ready before does not count, nor does a probe that no application can answer.
    """
    waiting = [each for each in containers_of(pod) if each.kind == "main" and not each.ready]
    fresh = all(each.running and not each.restarts for each in waiting) and bool(waiting)
    return (
        fresh
        and not _was_ready(pod)
        and rollout_ends(state, state.workload_of(pod))[0] > 0
        and all(_says_not_ready(state, each) for each in waiting)
    )


def unanswered_probe(state: ClusterState, pod: ClusterObject) -> str:
    """Return the newest failure of a readiness probe of a container that is not ready, or an empty string."""
    probes = (probe_of(each, "readinessProbe") for each in containers_of(pod) if each.running and not each.ready)
    failed = (failures(each, unhealthy(each.container, state))[-1:] for each in probes)
    return next((told[0].message for told in failed if told), "")


def _was_ready(pod: ClusterObject) -> bool:
    """Return whether the pod lost its readiness after its containers had started."""
    started = [moment(text(each.status, "state", "running", "startedAt")) or 0.0 for each in containers_of(pod)]
    since = moment(text(pod.condition("Ready"), "lastTransitionTime")) or 0.0
    return since > max(started, default=0.0) + 1


def _says_not_ready(state: ClusterState, container: Container) -> bool:
    probe = probe_of(container, "readinessProbe")
    failed = failures(probe, unhealthy(container, state))
    if not probe.spec or at(container.status, "started") is False:
        return False
    why = verdict(probe, failed[-1].message) if failed else None
    return why is None or (why.depends and not why.probe_is_wrong)
