"""Reads why a container ended: by itself, for want of memory, killed by a probe, or because it could not start.

Called by the rules about crashes and probes, so that one end has one reason and one rule that tells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.pods import containers_of, troubled_pods
from holmes.kubernetes.fields import at, child, integer, text
from holmes.kubernetes.moments import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

Ending: TypeAlias = Literal["memory", "liveness", "startup", "hook", "start", "lost", "application"]
HEALED_SECONDS: Final = 3600.0
START_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_KILL_SLACK_SECONDS: Final = 150.0
_SHORT_RUN_SECONDS: Final = 600.0
_LOST_EXIT_CODE: Final = 255
_KILLED: Final = frozenset({137, 143})
_CRASHES: Final[WeakKeyDictionary[ClusterState, tuple[Crash, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """An end of a container. `ended` is the terminated state, `path` where it lies in the container's status.

    `again` says that it will or did happen again: the container waits for its next start, or fails over and over.
    """

    container: Container
    ended: JsonObject
    path: tuple[str, str]
    ending: Ending
    again: bool

    @property
    def pod(self) -> ClusterObject:
        """The pod."""
        return self.container.pod

    @property
    def exit_code(self) -> int:
        """The exit code, -1 when it is not known."""
        return integer(self.ended, "exitCode") if "exitCode" in self.ended else -1

    @property
    def finished(self) -> float | None:
        """When it ended, in seconds since the epoch."""
        return moment(text(self.ended, "finishedAt"))

    @property
    def ran_seconds(self) -> float:
        """How long it had run."""
        began = moment(text(self.ended, "startedAt"))
        return max(0.0, self.finished - began) if self.finished is not None and began else 0.0

    def evidence(self, *path: str) -> Evidence:
        """A field of the terminated state."""
        return self.container.evidence(*self.path, *path)


def crashes_of(state: ClusterState) -> tuple[Crash, ...]:
    """The ends of containers in all pods that matter now, in the order of the pods. Found once for each state."""
    known = _CRASHES.get(state)
    if known is None:
        known = _CRASHES[state] = tuple(_crashes(state))
    return known


def _crashes(state: ClusterState) -> Iterator[Crash]:
    for pod in troubled_pods(state):
        if pod.text("status", "reason"):
            continue
        for container in containers_of(pod):
            crash = crash_of(container, state)
            if crash is not None:
                yield crash


def crash_of(container: Container, state: ClusterState) -> Crash | None:
    """How the container ended, None when it did not, as it should have, or longer than an hour ago."""
    ended, path = container.terminated, ("state", "terminated")
    if not ended:
        ended, path = container.last_terminated, ("lastState", "terminated")
    looping = text(container.waiting, "reason") == "CrashLoopBackOff"
    if container.kind == "ephemeral" or not (ended or looping):
        return None
    ending = _ending(container, ended, state)
    again = _fails_again(container, ended, state)
    crash = Crash(container=container, ended=ended, path=path, ending=ending, again=again)
    if again:
        return crash
    if container.terminated:
        return None if crash.exit_code == 0 else crash
    recent = crash.finished is not None and state.now - crash.finished <= HEALED_SECONDS
    return crash if container.running and recent and container.restarts else None


def _fails_again(container: Container, ended: JsonObject, state: ClusterState) -> bool:
    reason = text(container.waiting, "reason")
    if reason:
        return reason in {"CrashLoopBackOff", *START_REASONS}
    policy = text(container.spec, "restartPolicy") or container.pod.text("spec", "restartPolicy") or "Always"
    failed = integer(ended, "exitCode") != 0
    if container.terminated:
        once = container.kind == "init" and not container.sidecar
        return failed and policy != "Never" if once else policy == "Always" or (failed and policy == "OnFailure")
    return container.running and container.restarts >= 2 and _still_in_the_loop(container, ended, state)


def _still_in_the_loop(container: Container, ended: JsonObject, state: ClusterState) -> bool:
    """Runs between two crashes: it is not ready, or has not run longer than it did the last time."""
    finished, began = moment(text(ended, "finishedAt")), moment(text(ended, "startedAt"))
    now_began = moment(text(container.status, "state", "running", "startedAt"))
    if finished is None or began is None or now_began is None:
        return False
    ran = finished - began
    if ran > _SHORT_RUN_SECONDS or state.now - finished > _SHORT_RUN_SECONDS:
        return False
    return not container.ready or state.now - now_began <= ran + 30


def _ending(container: Container, ended: JsonObject, state: ClusterState) -> Ending:
    reason, exit_code = text(ended, "reason"), integer(ended, "exitCode")
    if reason == "OOMKilled":
        return "memory"
    if reason in START_REASONS or text(container.waiting, "reason") in START_REASONS:
        return "start"
    # What the runtime reports for containers that it found gone after a restart of the node.
    if reason == "ContainerStatusUnknown" or (reason == "Unknown" and exit_code == _LOST_EXIT_CODE):
        return "lost"
    finished = moment(text(ended, "finishedAt"))
    slack = _KILL_SLACK_SECONDS + container.pod.integer("spec", "terminationGracePeriodSeconds")
    # The kubelet drops events when it has many: what it once wrote explains a kill at any later time.
    earliest = 0.0 if exit_code in _KILLED or finished is None else finished - slack
    killed = _killed_by(container, earliest, state)
    if killed is not None or exit_code not in _KILLED:
        return killed or "application"
    probes = [event.message.lower() for event in unhealthy(container, state)]
    if any("liveness probe failed" in message for message in probes):
        return "liveness"
    never_started = at(container.status, "started") is False
    startup = never_started and any("startup probe" in message for message in probes)
    return "startup" if startup else "application"


def _killed_by(container: Container, earliest: float, state: ClusterState) -> Ending | None:
    for event in reversed(state.events_of(container.pod, "Killing")):
        if not about_container(event, container) or event.last < earliest:
            continue
        message = event.message.lower()
        if "liveness probe" in message:
            return "liveness"
        if "startup probe" in message:
            return "startup"
        if "poststarthook" in message:
            return "hook"
    return None


def about_container(event: ClusterEvent, container: Container) -> bool:
    """Whether an event of the pod is about this container; true when it does not say which."""
    return not event.field_path or event.field_path.endswith(f"{{{container.name}}}")


def unhealthy(container: Container, state: ClusterState) -> tuple[ClusterEvent, ...]:
    """The events of failed probes of the container, oldest first."""
    events = state.events_of(container.pod, "Unhealthy", "ProbeError")
    return tuple(event for event in events if about_container(event, container))


def began(crash: Crash, state: ClusterState) -> float | None:
    """When the trouble began as far as it is known, in seconds since the epoch: events reach back further."""
    events = state.events_of(crash.pod, "BackOff", "Unhealthy", "FailedPostStartHook")
    times = [event.first for event in events if about_container(event, crash.container) and event.first]
    return min((*times, *((crash.finished,) if crash.finished else ())), default=None)


def job_recovered(pod: ClusterObject, state: ClusterState) -> bool:
    """Whether the Job of a failed pod has succeeded in the meantime, or a later Job of the same CronJob has."""
    job = state.by_uid(pod.owner.uid) if pod.owner is not None else None
    if job is None or job.kind != "Job":
        return False
    if _complete(job):
        return True
    parent = state.by_uid(job.owner.uid) if job.owner is not None else None
    later = state.owned_by(parent, "Job") if parent is not None else ()
    return any(each.created > job.created and _complete(each) for each in later)


def _complete(job: ClusterObject) -> bool:
    done = text(job.condition("Complete"), "status") == "True" or text(job.condition("SuccessCriteriaMet"), "status")
    wanted = at(job.body, "spec", "completions")
    enough = isinstance(wanted, int) and integer(child(job.body, "status"), "succeeded") >= wanted > 0
    return bool(done) or enough
