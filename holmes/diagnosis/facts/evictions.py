"""Finds workloads whose pods were evicted because they exceeded their own limit, if the limit is still set.

Controllers delete the evicted pods of StatefulSets and DaemonSets. Only events with the pod names remain, and a pod
name identifies its owner.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, field, spec_field
from holmes.diagnosis.facts.pods import container_field, containers_of
from holmes.diagnosis.facts.resources import amount, quantity
from holmes.kubernetes.fields import at, moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef

RECENT_SECONDS: Final = 3600.0
_OWNERS: Final = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job", "ReplicationController")
_DIR: Final = expression(r"emptydir volume \"([^\"]{1,253})\"", re.IGNORECASE)
_CONTAINER: Final = expression(r"container ([a-z0-9-]{1,253}) (?:exceeded its|was using)", re.IGNORECASE)
_PREEMPTED_BY: Final = expression(r"Preempted by (?:pod )?(?:([\w-]{1,63})/)?([\w.-]{1,253}) on node")
_SIZE: Final = expression(r"(?:limit|containers) \"?(\d[\d.]{0,20}\w{0,3})\"?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """An evicted pod.

    `at` is the time of the eviction in seconds since the epoch. `told` is the event or status field that contains the
    message.
    """

    pod: ObjectRef
    uid: str
    message: str
    at: float
    told: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEviction:
    """A workload with several pods that exceeded the same limit within the last hour. The limit is still set.

    `limit` is the field that sets the limit. `evictions` is sorted from newest to oldest.
    """

    workload: ClusterObject
    limit: Evidence
    evictions: tuple[Eviction, ...]


def repeated_evictions(state: ClusterState) -> tuple[RepeatedEviction, ...]:
    """Return the workloads with at least two pods evicted in the last hour for exceeding the same limit."""
    same: dict[tuple[ObjectRef, str], dict[str, Eviction]] = defaultdict(dict)
    for workload, each in _recent(state):
        same[workload.ref, each.message].setdefault(each.uid, each)
    found = []
    for (ref, _), evictions in same.items():
        kept = state.find(ref)
        ordered = sorted(evictions.values(), key=lambda each: (-each.at, each.pod))
        if kept is None or len(ordered) < 2:
            continue
        limit = _standing_limit(kept, ordered[0].message, state)
        if limit is not None:
            found.append(RepeatedEviction(workload=kept, limit=limit, evictions=tuple(ordered)))
    return tuple(found)


def own_limit(pod: ClusterObject, message: str, state: ClusterState) -> Evidence | None:
    """Return the limit that the pod exceeded, or None if it exceeded no limit of its own."""
    if not _is_own(message):
        return None
    volume = _DIR.search(message)
    for index, each in enumerate(pod.children("spec", "volumes")):
        if volume is not None and text(each, "name") == volume[1]:
            return spec_field(pod, state, f"volumes[{index}].emptyDir.sizeLimit")
    named = _CONTAINER.search(message)
    for container in containers_of(pod):
        limited = at(container.spec, "resources", "limits", "ephemeral-storage") is not None
        if limited and (named is None or named[1] == container.name):
            return container_field(container, state, "resources.limits.ephemeral-storage")
    return None


def _is_own(message: str) -> bool:
    """Return whether the pod exceeded its own limit.

    Returns False if the node ran short of the resource, because the pod may have exceeded only its request.
    """
    return "exceed" in message.lower() and "low on resource" not in message.lower()


def ended_at(pod: ClusterObject, state: ClusterState) -> float:
    """Return the termination time of a failed pod, in seconds since the epoch."""
    ends = [moment(text(each.terminated, "finishedAt")) for each in containers_of(pod)]
    known = [each for each in ends if each is not None]
    told = moment(text(pod.condition("DisruptionTarget"), "lastTransitionTime"))
    evicted = max((each.last for each in state.events_of(pod, "Evicted")), default=0.0)
    return max(known) if known else told or evicted or moment(pod.text("status", "startTime")) or pod.created


def _recent(state: ClusterState) -> Iterator[tuple[ClusterObject, Eviction]]:
    """Yield the evictions of the last hour in which a pod exceeded its own limit, with the workload of the pod."""
    for pod in state.of("Pod"):
        if pod.text("status", "reason") != "Evicted" or pod.text("status", "phase") != "Failed":
            continue
        message, ended = pod.text("status", "message").strip(), ended_at(pod, state)
        if _is_own(message) and state.now - ended <= RECENT_SECONDS and pod.owner is not None:
            told = field(pod, "status", "message")
            yield state.workload_of(pod), Eviction(pod=pod.ref, uid=pod.uid, message=message, at=ended, told=told)
    for each in state.events:
        if each.reason != "Evicted" or each.kind != "Pod" or state.now - each.last > RECENT_SECONDS:
            continue
        owner = owner_of_gone(each, state) if _is_own(each.message) else None
        if owner is not None:
            found = Eviction(pod=each.ref, uid=each.uid, message=each.message, at=each.last, told=event(each))
            yield state.workload_of(owner), found


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """The preemption of a pod by the scheduler.

    `victim` is the workload that lost the pod, and `by` the pod that got its place. They are None if they are gone.
    """

    event: ClusterEvent
    victim: ClusterObject | None
    by: ClusterObject | None


def preemptions(state: ClusterState) -> Iterator[Preemption]:
    """Yield the preemptions of the last hour. They are read from events, because the preempted pods no longer exist."""
    for each in state.events:
        if each.reason == "Preempted" and each.kind == "Pod" and state.now - each.last <= RECENT_SECONDS:
            owner = state.find(each.ref) or owner_of_gone(each, state)
            victim = state.workload_of(owner) if owner is not None else None
            yield Preemption(event=each, victim=victim, by=_preemptor(each, state))


def preemptors_of(state: ClusterState, workload: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the workloads for whose pods the scheduler preempted pods of this workload."""
    found = (each.by for each in preemptions(state) if each.victim is workload and each.by is not None)
    return tuple(dict.fromkeys(state.workload_of(by).ref for by in found))


def _preemptor(each: ClusterEvent, state: ClusterState) -> ClusterObject | None:
    named = _PREEMPTED_BY.search(each.message)
    if named is None:
        return None
    place, name = named[1], named[2]
    pods = (pod for pod in state.of("Pod") if name in (pod.name, pod.uid) and place in (None, pod.namespace))
    return next(pods, None)


def owner_of_gone(each: ClusterEvent, state: ClusterState) -> ClusterObject | None:
    """Return the controller of a deleted pod, or None.

    The pod name in the event has the form `<controller>-<suffix>` and identifies the controller.
    """
    prefix, _, _ = each.ref.name.rpartition("-")
    owners = (state.get(kind, each.ref.namespace, prefix) for kind in _OWNERS)
    return next((owner for owner in owners if owner is not None), None)


def _standing_limit(workload: ClusterObject, message: str, state: ClusterState) -> Evidence | None:
    """Return the exceeded limit if the newest replacement pod still has it, otherwise None."""
    alive = [
        pod
        for pod in state.pods_of(workload)
        if pod.deleted is None and pod.text("status", "phase") in {"Pending", "Running"}
    ]
    newest = max(alive, key=lambda pod: (pod.created, pod.name), default=None)
    limit = own_limit(newest, message, state) if newest is not None else None
    size = _SIZE.search(message)
    if newest is None or limit is None or size is None:
        return limit
    of_one = _DIR.search(message) is not None or _CONTAINER.search(message) is not None
    now = quantity(limit.value) if of_one else _total_limit(newest)
    then = quantity(size[1])
    return limit if then is None or now == then else None


def _total_limit(pod: ClusterObject) -> Decimal:
    """Return the sum of the ephemeral storage limits of all containers in a pod, in bytes."""
    limits = (text(each.spec, "resources", "limits", "ephemeral-storage") for each in containers_of(pod))
    return sum((amount(limit) for limit in limits), start=Decimal(0))
