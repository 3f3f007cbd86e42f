"""Finds who uses most of the disk or memory of a node, from what its kubelet and the pods themselves report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.evictions import ended_at
from holmes.diagnosis.facts.evidence import log_line, value
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.resources import amount
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.fields import at, child, children, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonValue

Shortage: TypeAlias = Literal["memory", "disk"]

_WAS_USING: Final = expression(
    r"Container (?P<container>[\w-]{1,253}) was using (?P<size>\d[\d.]{0,20}\w{0,3}), request is (?P<request>[\d.]*\w*)"
)
_SIZE: Final = expression(r"(?<![\w.])(?P<number>\d{1,9}(?:\.\d{1,3})?) ?(?P<unit>[KMGT])i?(?:B|b|ytes)\b")
_WORDS: Final[dict[Shortage, re.Pattern[str]]] = {
    "disk": expression(
        r"(?i)\bdisk|\bbuffer|\bspool|\bbacklog|\bcache|\bwal\b|\bchunk|\bsegment|\bdump|\bscratch|\btmp\b|\btemp\w*\b|\bfile"
        r"|\bwrote\b|\bwritten\b|\bstor(?:e[ds]?|age)\b|(?<![\w/])/[a-z][\w/.-]+"
    ),
    "memory": expression(r"(?i)\bmem(?:ory)?\b|\brss\b|\bheap\b|\bcache\b|\ballocat"),
}
_RESOURCES: Final[dict[Shortage, str]] = {"disk": "ephemeral-storage", "memory": "memory"}
_ON_NODE: Final = frozenset({"hostPath", "emptyDir"})
_LEAST_BYTES: Final = Decimal(1024) ** 3
_LEAST_SHARE: Final = Decimal("0.05")
_POWERS: Final = {"K": 1, "M": 2, "G": 3, "T": 4}
_SAME_SECONDS: Final = 900.0
_MOST_LINES: Final = 400
_MOST_LOGS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUser:
    """A pod that uses much of a node's disk or memory. `words` is a clause for a cause."""

    pod: ClusterObject
    size: Decimal
    words: str
    evidence: Evidence


def largest_user(state: ClusterState, node: ClusterObject, shortage: Shortage) -> NodeUser | None:
    """Return the pod that reports the largest use of the disk or memory of the node, or None if none is large."""
    found = [
        each
        for pod in pods_on(state, node)
        for each in (*_told_by_kubelet(state, pod, shortage), *_told_by_log(state, pod, shortage))
    ]
    capacity = amount(node.at("status", "capacity", _RESOURCES[shortage]))
    large = [each for each in found if each.size >= max(_LEAST_BYTES, capacity * _LEAST_SHARE)]
    return max(large, key=lambda each: each.size, default=None)


def user_behind(state: ClusterState, evicted: ClusterObject) -> NodeUser | None:
    """Return the other workload that used most of what the node lacked, by the evictions of the same minutes."""
    at_same_time = [
        pod
        for pod in state.of("Pod")
        if pod.text("spec", "nodeName") == evicted.text("spec", "nodeName")
        and pod.text("status", "reason") == "Evicted"
        and abs(ended_at(pod, state) - ended_at(evicted, state)) <= _SAME_SECONDS
    ]
    for shortage in _RESOURCES:
        if not any(_told_by_kubelet(state, evicted, shortage)):
            continue
        found = (each for pod in at_same_time for each in _told_by_kubelet(state, pod, shortage))
        user = max(found, key=lambda each: each.size, default=None)
        if user is not None and user.size >= _LEAST_BYTES:
            return user if state.workload_of(user.pod) is not state.workload_of(evicted) else None
    return None


def pods_on(state: ClusterState, node: ClusterObject) -> Iterator[ClusterObject]:
    return (pod for pod in state.of("Pod") if pod.text("spec", "nodeName") == node.name)


def _told_by_kubelet(state: ClusterState, pod: ClusterObject, shortage: Shortage) -> Iterator[NodeUser]:
    """Yield the use that the kubelet noted when it evicted the pod."""
    message = pod.text("status", "message")
    if pod.text("status", "reason") != "Evicted" or f"resource: {_RESOURCES[shortage]}" not in message:
        return
    for match in _WAS_USING.finditer(message):
        owner = state.workload_of(pod)
        yield NodeUser(
            pod=pod,
            size=_beyond(amount(match["size"]), match["request"]),
            words=f"container {match['container']} of {owner.ref} used {match['size']} of it",
            evidence=value(pod, "status.message", message),
        )


def _told_by_log(state: ClusterState, pod: ClusterObject, shortage: Shortage) -> Iterator[NodeUser]:
    """Yield the size that a running container without a limit reports in its newest line about it."""
    for container in containers_of(pod):
        if not container.running or _is_limited(container, shortage):
            continue
        log = state.log_of(pod, container.name, previous=False) or ""
        for line in reversed(log.splitlines()[-_MOST_LINES:]):
            told = _WORDS[shortage].search(line) and not (shortage == "disk" and _is_elsewhere(container, line))
            sizes = [_bytes(match) for match in _SIZE.finditer(line)] if told else []
            if sizes:
                owner = state.workload_of(pod)
                yield NodeUser(
                    pod=pod,
                    size=_beyond(max(sizes), at(container.spec, "resources", "requests", _RESOURCES[shortage])),
                    words=f"container {container.name} of {owner.ref} reports: {line.strip()}",
                    evidence=log_line(pod, container.name, line.strip(), previous=False),
                )
                break


def _is_elsewhere(container: Container, line: str) -> bool:
    """Return whether a line is about an address, or about a path in a volume that is not on the node's disk."""
    remote = {
        text(volume, "name")
        for volume in container.pod.children("spec", "volumes")
        if not _ON_NODE.intersection(volume)
    }
    mounts = children(container.spec, "volumeMounts")
    paths = (text(mount, "mountPath") for mount in mounts if text(mount, "name") in remote)
    return "://" in line or any(re.search(rf"(?<![\w/]){re.escape(path)}(?![\w-])", line) for path in paths if path)


def _beyond(size: Decimal, request: JsonValue) -> Decimal:
    """Return the size, or 0 if it was requested, because the scheduler then reserved it."""
    return size if amount(request) < size else Decimal(0)


def _bytes(match: re.Match[str]) -> Decimal:
    return Decimal(match["number"]) * Decimal(1024) ** _POWERS[match["unit"]]


def _is_limited(container: Container, shortage: Shortage) -> bool:
    """Return whether a limit keeps the container from using the whole node."""
    return at(container.spec, "resources", "limits", _RESOURCES[shortage]) is not None


def logs_of_users(state: ClusterState, node: ClusterObject, shortage: Shortage) -> tuple[LogKey, ...]:
    """Return the logs of the containers without a limit on a node, those with volumes on its disk first."""
    found = [
        (not _writes_to_disk(pod, container), LogKey(pod=pod.ref, container=container.name, previous=False))
        for pod in pods_on(state, node)
        for container in containers_of(pod)
        if container.running and not _is_limited(container, shortage)
    ]
    found.sort(key=lambda each: each[0])
    return tuple(key for _, key in found)[:_MOST_LOGS]


def _writes_to_disk(pod: ClusterObject, container: Container) -> bool:
    mounts = {text(mount, "name") for mount in children(container.spec, "volumeMounts")}
    return any(
        text(volume, "name") in mounts
        and ("hostPath" in volume or ("emptyDir" in volume and child(volume, "emptyDir").get("medium") != "Memory"))
        for volume in pod.children("spec", "volumes")
    )
