"""Rules for nodes that are not ready, under pressure, without network, cordoned or restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.actors import who_changed
from holmes.diagnosis.facts.node_users import largest_user, logs_of_users
from holmes.diagnosis.facts.nodes import CORDON_TAINT, events_by_node, standing_nodes
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.unscheduled import is_kept_away, unscheduled_for
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.node_users import Shortage
    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_LEASES: Final = "kube-node-lease"
_LATE_GRACES: Final = 3
_SHUTDOWN_GRACES: Final = 10
_HOUR: Final = 3600.0
_MOST: Final = 5
_PRESSURES: Final = {"MemoryPressure": "memory", "DiskPressure": "disk", "PIDPressure": "process IDs"}
_SHORTAGES: Final[dict[str, Shortage]] = {"MemoryPressure": "memory", "DiskPressure": "disk"}
_PRESSURE_EVENTS: Final = ("EvictionThresholdMet", "FreeDiskSpaceFailed", "ImageGCFailed", "SystemOOM", "OOMKilling")
_BAD: Final = frozenset(
    {
        "KernelDeadlock",
        "ReadonlyFilesystem",
        "CorruptDockerOverlay2",
        "FrequentKubeletRestart",
        "FrequentDockerRestart",
        "FrequentContainerdRestart",
        "FrequentUnregisterNetDevice",
        "XfsShutdown",
        "CperHardwareErrorFatal",
        "KubeletProblem",
        "KubeletUnhealthy",
        "ContainerRuntimeProblem",
        "ContainerRuntimeUnhealthy",
        "FilesystemCorruptionProblem",
        "NTPProblem",
    }
)
"""Conditions of the node problem detector that report a fault when they are True."""
_BAD_WORDS: Final = expression(
    r"(?:Errors?|Fail(?:ed|ures?|ing)|Faults?|Faulty|Problems?|Deadlock|Corrupt\w*|Readonly\w*|ReadOnly\w*|Unhealthy|Hung"
    r"|Hang|Shutdown|Degraded|Stalled|Throttled|Overheat\w*|Down)$"
)
"""The ends of types of conditions that report a fault, of detectors that a cluster added."""
_GOOD_WORDS: Final = expression(r"^(?:No|Not|Without)[A-Z]")
_KERNEL_EVENTS: Final = (
    "TaskHung", "KernelOops", "IOError", "Ext4Error", "XfsHasShutDown", "MemoryReadError", "FilesystemIsReadOnly",
    "UnregisterNetDevice", "CperHardwareErrorFatal",
)  # fmt: skip
"""Events of the node problem detector about the kernel or the hardware."""


def _look(node: ClusterObject) -> str:
    return f"kubectl describe node {node.name}"


def _condition(node: ClusterObject, kind: str) -> tuple[Evidence, ...]:
    condition = node.condition(kind)
    path = f"status.conditions[type={kind}]"
    return tuple(
        evidence.value(node, f"{path}.{key}", condition.get(key))
        for key in ("status", "reason", "message")
        if condition.get(key)
    )


def _changed(node: ClusterObject, kind: str) -> float | None:
    return moment(text(node.condition(kind), "lastTransitionTime"))


@Row(
    id="N01",
    title="Node is not ready",
    severity="critical",
    kinds=("Node",),
    needs=("Lease",),
    reads=("status.conditions[Ready]", "Lease spec.renewTime", "spec.taints"),
    explanation="When Ready is False, the kubelet gives the reason. For example, the container runtime is down, or "
    "the network plugin is not configured. When Ready is Unknown, the kubelet no longer reports its status "
    "because the machine, "
    "the kubelet or the network is down. Kubernetes evicts the node's pods after a few minutes. The rule ignores "
    "nodes that are joining the cluster, or that an autoscaler is removing. If the node is Ready but its lease is not "
    "renewed, the severity is warning.",
)
def not_ready(state: ClusterState) -> Iterator[Fault]:
    for node in standing_nodes(state):
        ready = node.condition("Ready")
        status = text(ready, "status")
        if status == "False" and _is_shutting_down(state, node):
            continue
        if status in {"False", "Unknown"}:
            why = text(ready, "message") or text(ready, "reason")
            silent = "its kubelet no longer reports its status; " if status == "Unknown" else ""
            yield Fault(
                subject=node.ref,
                cause=f"{node.ref} is not ready (Ready {status}, {text(ready, 'reason')}): {silent}{why}",
                evidence=(*_condition(node, "Ready"), *_lease_evidence(state, node)),
                next_check=_look(node),
                because=producers_of(state, node.ref),
                since=_changed(node, "Ready"),
            )
            continue
        late = _lateness(state, node)
        if late is not None and status == "True":
            yield Fault(
                subject=node.ref,
                title="Node does not renew its lease",
                severity="warning",
                cause=f"{node.ref} is Ready, but its kubelet has not renewed its lease for {duration(late)}",
                evidence=(*_lease_evidence(state, node), *_condition(node, "Ready")),
                next_check=_look(node),
            )


def _is_shutting_down(state: ClusterState, node: ClusterObject) -> bool:
    """Return whether the node recently started a graceful shutdown, which is common for spot instances."""
    said, since = text(node.condition("Ready"), "message"), _changed(node, "Ready") or 0.0
    return "shutting down" in said and state.now - since < _SHUTDOWN_GRACES * state.patience_seconds


def _lateness(state: ClusterState, node: ClusterObject) -> float | None:
    """Return the time since the last lease renewal in seconds, or None if the renewal is not overdue."""
    lease = state.get("Lease", _LEASES, node.name)
    renewed = moment(lease.text("spec", "renewTime")) if lease is not None else None
    if lease is None or renewed is None:
        return None
    period = lease.integer("spec", "leaseDurationSeconds") or 40
    late = state.now - renewed
    return late if late > period + _LATE_GRACES * state.patience_seconds else None


def _lease_evidence(state: ClusterState, node: ClusterObject) -> tuple[Evidence, ...]:
    lease = state.get("Lease", _LEASES, node.name)
    return () if lease is None else (evidence.field(lease, "spec", "renewTime"),)


@Row(
    id="N02",
    title="Node is short of memory, disk or process IDs",
    severity="warning",
    kinds=("Node",),
    reads=(
        "status.conditions[MemoryPressure|DiskPressure|PIDPressure]",
        *(f"event {each}" for each in _PRESSURE_EVENTS),
    ),
    explanation="When a node is under pressure, its kubelet evicts pods and rejects new pods. Find out what uses the "
    "memory or disk, for example containers without limits, images or logs. The culprit is the workload that uses most "
    "of it, if an eviction message of the kubelet or the log of a container on the node tells how much. The rule also "
    "reports events of the last hour, because pressure is often temporary. SystemOOM means that the kernel killed "
    "processes because the node had no memory left.",
)
def under_pressure(state: ClusterState) -> Iterator[Fault]:
    """Report current pressure, or the pressure events of the last hour if the node is not under pressure now."""
    events = events_by_node(state, *_PRESSURE_EVENTS)
    for node in standing_nodes(state):
        recent = [each for each in events.get(node.name, ()) if state.now - each.last <= _HOUR]
        pressed = [kind for kind in _PRESSURES if text(node.condition(kind), "status") == "True"]
        for kind in pressed:
            shortage = _SHORTAGES.get(kind)
            user = largest_user(state, node, shortage) if shortage is not None else None
            yield Fault(
                subject=node.ref,
                culprit=state.workload_of(user.pod).ref if user is not None else None,
                title=f"Node has {kind}",
                cause=f"{node.ref} is short of {_PRESSURES[kind]} ({kind}): {text(node.condition(kind), 'message')}"
                f"{f'; {user.words}' if user is not None else ''}",
                evidence=(
                    *_condition(node, kind)[:1],
                    *((user.evidence,) if user is not None else ()),
                    *_condition(node, kind)[1:],
                    *map(evidence.event, recent[-2:]),
                ),
                next_check=_look(node),
                since=_changed(node, kind),
                logs=logs_of_users(state, node, shortage) if shortage is not None else (),
            )
        if recent and not pressed:
            last = recent[-1]
            yield Fault(
                subject=node.ref,
                title=f"Node was short of a resource: {last.reason}",
                cause=f"{node.ref} reported {last.reason} {duration(state.now - last.last)} ago: {last.message}",
                evidence=tuple(map(evidence.event, reversed(recent[-_MOST:]))),
                next_check=_look(node),
                since=recent[0].first or None,
            )


@Row(
    id="N03",
    title="Node reports a problem",
    severity="warning",
    kinds=("Node",),
    reads=("status.conditions[NetworkUnavailable]", *(f"status.conditions[{each}]" for each in sorted(_BAD)[:3])),
    explanation="NetworkUnavailable True means that the node's network was never configured, so its pods have no "
    "network. Other conditions come from the node problem detector or from other detectors. The rule checks conditions "
    "that report a fault when they are True, such as KernelDeadlock, ReadonlyFilesystem and DiskIOErrors. It also "
    "reports events of the last hour about the kernel or the hardware, such as TaskHung.",
)
def problem_condition(state: ClusterState) -> Iterator[Fault]:
    for node in standing_nodes(state):
        for condition in node.children("status", "conditions"):
            kind = text(condition, "type")
            if text(condition, "status") != "True" or not _reports_fault(kind):
                continue
            network = kind == "NetworkUnavailable"
            yield Fault(
                subject=node.ref,
                title="Node has no network" if network else f"Node reports {kind}",
                severity="critical" if network else None,
                cause=f"{node.ref} reports {kind}: {text(condition, 'message') or text(condition, 'reason')}",
                evidence=_condition(node, kind),
                next_check=_look(node),
                because=producers_of(state, node.ref) if network else (),
                since=_changed(node, kind),
            )
        yield from _of_kernel(state, node)


def _reports_fault(kind: str) -> bool:
    """Return whether a condition reports a fault when it is True. Pressure has a rule of its own."""
    if kind in _BAD or kind == "NetworkUnavailable":
        return True
    return _BAD_WORDS.search(kind) is not None and _GOOD_WORDS.match(kind) is None


def _of_kernel(state: ClusterState, node: ClusterObject) -> Iterator[Fault]:
    """Report what the kernel of a node said within the last hour, by the reason of its event."""
    events = events_by_node(state, *_KERNEL_EVENTS).get(node.name, ())
    recent = {each.reason: each for each in events if state.now - each.last <= _HOUR and each.type == "Warning"}
    for reason, last in recent.items():
        times = f" {last.count} times, the last time" if last.count > 1 else ""
        yield Fault(
            subject=node.ref,
            title=f"Kernel of the node reports {reason}",
            severity="warning",
            cause=f"{node.ref} reported {reason}{times} {duration(state.now - last.last)} ago: {last.message}",
            evidence=(evidence.event(last),),
            next_check=_look(node),
            since=last.first or None,
        )


@Row(
    id="N04",
    title="Node is cordoned while pods wait for a node",
    severity="warning",
    kinds=("Node", "Pod"),
    reads=("spec.unschedulable", "Pod status.conditions[PodScheduled]"),
    explanation="The scheduler assigns no new pods to a cordoned node. This is normal during an upgrade, so the node "
    "is reported only if pods cannot be scheduled for this reason. `kubectl uncordon` makes the node schedulable "
    "again.",
)
def cordoned(state: ClusterState) -> Iterator[Fault]:
    nodes = [node for node in standing_nodes(state) if node.boolean("spec", "unschedulable")]
    if not nodes:
        return
    waiting = [
        found.pod
        for found in unscheduled_for(state, "taint")
        if "unschedulable" in found.main.text or CORDON_TAINT in found.main.text
    ]
    for node in nodes:
        pods = [pod for pod in waiting if is_kept_away(state, pod, node)]
        if pods:
            by = who_changed(state, node.ref, _cordoned_at(node), ("cordon", "drain"))
            yield Fault(
                subject=node.ref,
                cause=f"{node.ref} is cordoned (spec.unschedulable true), "
                f"and {state.workload_of(pods[0]).ref} is waiting for a node{f'; {by.words}' if by else ''}",
                evidence=(
                    evidence.field(node, "spec", "unschedulable"),
                    *(by.evidence if by is not None else ()),
                    evidence.value(pods[0], "status.conditions[type=PodScheduled]", pods[0].condition("PodScheduled")),
                ),
                next_check="kubectl get nodes",
            )


def _cordoned_at(node: ClusterObject) -> float | None:
    times = (text(each, "timeAdded") for each in node.children("spec", "taints") if text(each, "key") == CORDON_TAINT)
    return moment(next(times, ""))


@Row(
    id="N05",
    title="Node was restarted or its kubelet fails",
    severity="info",
    kinds=("Node",),
    reads=("event Rebooted", "event Starting", "event ContainerGCFailed", "event InvalidDiskCapacity"),
    explanation="A restart of the machine within the last hour explains the restarts of the containers on the node. A "
    "kubelet that starts repeatedly, or that cannot remove dead containers, is itself faulty. A single "
    "InvalidDiskCapacity event is harmless when a kubelet starts.",
)
def restarted(state: ClusterState) -> Iterator[Fault]:
    events = events_by_node(state, "Rebooted", "Starting", "ContainerGCFailed", "InvalidDiskCapacity")
    for node in standing_nodes(state):
        recent = [each for each in events.get(node.name, ()) if state.now - each.last <= _HOUR]
        for reason, least in (("Rebooted", 1), ("Starting", 4), ("ContainerGCFailed", 3), ("InvalidDiskCapacity", 10)):
            found = [each for each in recent if each.reason == reason and _is_kubelet(each)]
            times = sum(each.count for each in found)
            events_word = "event" if times == 1 else "events"
            if times >= least:
                yield Fault(
                    subject=node.ref,
                    title=_TITLES[reason],
                    severity="info" if reason == "Rebooted" else "warning",
                    cause=f"{node.ref}: {_TITLES[reason].lower()} ({times} {events_word}): {found[-1].message}",
                    evidence=tuple(map(evidence.event, reversed(found[-_MOST:]))),
                    next_check=_look(node),
                    since=found[0].first or None,
                )


_TITLES: Final = {
    "Rebooted": "Node was restarted",
    "Starting": "Kubelet restarts repeatedly",
    "ContainerGCFailed": "Kubelet cannot remove dead containers",
    "InvalidDiskCapacity": "Kubelet cannot determine the size of the disk",
}


def _is_kubelet(event: ClusterEvent) -> bool:
    """Return whether the kubelet wrote the event. kube-proxy also writes `Starting` events for nodes."""
    return event.reason != "Starting" or "kubelet" in f"{event.message} {event.component}".lower()
