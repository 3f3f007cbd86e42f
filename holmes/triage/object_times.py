"""The times that objects have: one table for all kinds.

A time is known by its topic, for example `ended`, and by a label that an answer shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.changes import all_changes, autoscalers_of
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.schedules import next_run
from holmes.kubernetes.fields import integer, moment, text
from holmes.kubernetes.kinds import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.changes import Sort
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

Topic: TypeAlias = Literal[
    "created", "started", "ended", "ready", "unready", "scaled", "rolled out", "changed", "run", "succeeded", "failed",
    "next run", "completed", "cordoned", "expires", "issued", "renewal", "deletion", "phase", "broken",
]  # fmt: skip

_STATUS_TIMES: Final[tuple[tuple[Topic, str, tuple[str, ...]], ...]] = (
    ("run", "last run", ("status", "lastScheduleTime")),
    ("succeeded", "last successful run", ("status", "lastSuccessfulTime")),
    ("started", "started", ("status", "startTime")),
    ("completed", "completed", ("status", "completionTime")),
    ("scaled", "last scaling", ("status", "lastScaleTime")),
    ("phase", "entered its phase", ("status", "lastPhaseTransitionTime")),
    ("expires", "expires", ("status", "notAfter")),
    ("issued", "valid since", ("status", "notBefore")),
    ("renewal", "renewal", ("status", "renewalTime")),
    ("run", "last run", ("status", "lastBackup")),
    ("started", "started", ("status", "startTimestamp")),
    ("completed", "completed", ("status", "completionTimestamp")),
    ("changed", "renewed", ("spec", "renewTime")),
)
"""Fields of the status that are times, for built-in kinds and for well-known custom resources."""
_READY: Final = ("Ready", "Available", "Healthy", "Established", "ScalingActive")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTime:
    """A time of an object. `what` is its label, for example `last end, OOMKilled`."""

    object: ClusterObject
    topic: Topic
    what: str
    at: float


def times_of(state: ClusterState, each: ClusterObject) -> Iterator[ObjectTime]:
    """Yield the times of an object and of its pods, jobs and autoscalers."""
    seen: set[str] = set()
    for one in (each, *state.owned_by(each, "Job"), *state.pods_of(each), *autoscalers_of(state, each)):
        if one.uid not in seen:
            seen.add(one.uid)
            for topic, what, at in (*_of_kind(state, one), *_of_any(one)):
                if at:
                    yield ObjectTime(object=one, topic=topic, what=what, at=at)
    topics: dict[Sort, Topic] = {"rollout": "rolled out", "scaling": "scaled", "edit": "changed"}
    for dated in all_changes(state, each):
        if dated.change.object == each.ref and dated.sort in topics:
            yield ObjectTime(object=each, topic=topics[dated.sort], what=dated.change.what, at=dated.at)


def duration_of_run(job: ClusterObject) -> float | None:
    """Return how long a finished Job took in seconds."""
    start, end = moment(job.text("status", "startTime")), moment(job.text("status", "completionTime"))
    return end - start if job.kind == "Job" and start and end else None


def _of_any(each: ClusterObject) -> Iterator[tuple[Topic, str, float]]:
    yield "created", "created", each.created
    yield "deletion", "deletion requested", each.deleted or 0.0
    for topic, what, path in _STATUS_TIMES:
        if each.kind != "Pod" or topic != "started":
            yield topic, what, moment(each.text(*path)) or 0.0
    for name in _READY:
        condition = each.condition(name)
        at = moment(text(condition, "lastTransitionTime")) or 0.0
        ready = text(condition, "status") == "True"
        yield ("ready", f"{name.lower()} since", at) if ready else ("unready", f"not {name.lower()} since", at)


def _of_kind(state: ClusterState, each: ClusterObject) -> Iterator[tuple[Topic, str, float]]:
    if each.kind == "Pod":
        yield from _of_containers(each)
    elif each.kind in WORKLOADS and each.kind not in ("Deployment", "Job", "CronJob", "ReplicaSet"):
        pods = state.pods_of(each)
        yield "rolled out", "newest pod created", max((pod.created for pod in pods), default=0.0)
    elif each.kind == "CronJob":
        yield "next run", "next run", next_run(each, state.now) or 0.0
    elif each.kind == "Job":
        condition = each.condition("Failed")
        if text(condition, "status") == "True":
            reason = text(condition, "reason")
            yield (
                "failed",
                f"failed{f', {reason}' if reason else ''}",
                moment(text(condition, "lastTransitionTime")) or 0.0,
            )
    for taint in each.children("spec", "taints") if each.kind == "Node" else ():
        if text(taint, "key") == "node.kubernetes.io/unschedulable":
            yield "cordoned", "cordoned", moment(text(taint, "timeAdded")) or 0.0


def _of_containers(pod: ClusterObject) -> Iterator[tuple[Topic, str, float]]:
    for container in containers_of(pod):
        yield "started", "started", moment(text(container.status, "state", "running", "startedAt")) or 0.0
        failed = container.terminated if integer(container.terminated, "exitCode") else {}
        for ended in (container.last_terminated, failed):
            reason = text(ended, "reason")
            yield "ended", f"last end{f', {reason}' if reason else ''}", moment(text(ended, "finishedAt")) or 0.0
