"""Rules for pods that were evicted, rejected or lost, or that do not terminate."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evictions import RECENT_SECONDS, ended_at, own_limit, preemptions, repeated_evictions
from holmes.diagnosis.facts.evidence import event, field, owner_words, pod_words, serves_elsewhere, spec_field, value
from holmes.diagnosis.facts.job_runs import job_recovered
from holmes.diagnosis.facts.node_users import user_behind
from holmes.diagnosis.facts.pods import container_field, containers_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.evictions import Preemption, RepeatedEviction
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity


_SHOWN_EVICTIONS: Final = 3
_OLD_SECONDS: Final = 86_400.0
_LOW: Final = expression(r"low on resource: ?\[?([a-z-]{1,60})", re.IGNORECASE)
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "the scheduler preempted it for a pod of higher priority",
    "DeletionByTaintManager": "its node has a taint that the pod does not tolerate",
    "EvictionByEvictionAPI": "it was evicted through the API, for example by a drain of the node",
    "DeletionByPodGC": "its node was deleted",
    "TerminationByKubelet": "its node was short of resources or was shut down",
}
_REFUSALS: Final = {
    "UnexpectedAdmissionError": "the node could not provide a device or another resource",
    "NodeAffinity": "the node does not have the labels that the pod's nodeSelector or affinity requires",
    "OutOfcpu": "the node does not have enough CPU left",
    "OutOfmemory": "the node does not have enough memory left",
    "OutOfpods": "the node has reached its maximum number of pods",
    "OutOfephemeral-storage": "the node does not have enough ephemeral storage left",
    "NodePorts": "a host port that the pod requires is already in use on the node",
    "PodOSNotSupported": "the node runs a different operating system than the pod requires",
    "SysctlForbidden": "the node does not allow a sysctl that the pod requires",
    "Terminated": "the node was shut down",
    "NodeShutdown": "the node was shut down",
    "Shutdown": "the node was shut down",
    "Preempting": "the kubelet preempted it for a critical pod",
}
_SHUTDOWNS: Final = frozenset({"Terminated", "NodeShutdown", "Shutdown"})


@Row(
    id="P13",
    title="Pod was evicted",
    severity="warning",
    kinds=("Pod",),
    reads=(
        "status.reason, status.message",
        "status.conditions DisruptionTarget",
        "spec.containers[].resources, spec.volumes[].emptyDir.sizeLimit",
        "events Evicted, Preempted",
    ),
    explanation=(
        "A pod was evicted or preempted. The node was low on memory or disk, the pod exceeded its limit for ephemeral "
        "storage, or a pod of higher priority preempted it. The severity is critical while the pod's workload has too "
        "few ready pods, and info after other pods have replaced it. The severity is at least warning when several "
        "pods exceeded the same limit within one hour and the new pods have the same limit."
    ),
)
def evicted(state: ClusterState) -> Iterator[Fault]:
    repeated = repeated_evictions(state)
    yield from (_repeated(each, state) for each in repeated)
    told = {eviction.uid for each in repeated for eviction in each.evictions}
    for pod in state.of("Pod"):
        if pod.uid in told or pod.deleted is not None or pod.text("status", "phase") != "Failed":
            continue
        age_seconds = state.now - ended_at(pod, state)
        if pod.text("status", "reason") == "Evicted":
            if age_seconds <= _OLD_SECONDS or not serves_elsewhere(pod, state):
                yield _eviction(pod, state)
        elif text(pod.condition("DisruptionTarget"), "status") == "True" and age_seconds <= RECENT_SECONDS:
            yield _disruption(pod, state)
    yield from (_preemption(each, state) for each in preemptions(state))


def _severity(pod: ClusterObject, state: ClusterState) -> Severity:
    """Return info if other pods replace the pod, warning if it has no owner or belongs to a Job, otherwise critical."""
    if serves_elsewhere(pod, state) or job_recovered(pod, state) or _is_history(pod, state):
        return "info"
    return "critical" if pod.owner is not None and pod.owner.kind != "Job" else "warning"


def _is_history(pod: ClusterObject, state: ClusterState) -> bool:
    """Return whether the pod ended long ago and a newer pod of its workload is running."""
    ended = ended_at(pod, state)
    if state.now - ended <= RECENT_SECONDS or pod.owner is None:
        return False
    others = state.pods_of(state.workload_of(pod))
    return any(each.created >= ended and each.text("status", "phase") == "Running" for each in others)


def _repeated(found: RepeatedEviction, state: ClusterState) -> Fault:
    workload, limit, newest = found.workload, found.limit, found.evictions[0]
    return Fault(
        subject=workload.ref,
        title="Pods are evicted repeatedly: they exceed their disk limit",
        severity=_severity_of_repeated(workload, state),
        cause=(
            f"{len(found.evictions)} pods of {workload.ref} were evicted within the last hour because they exceeded "
            f"{limit.path} = {limit.value}, and the new pods have the same limit: {newest.message}"
        ),
        evidence=(limit, *(each.told for each in found.evictions[:_SHOWN_EVICTIONS])),
        next_check=f"kubectl -n {workload.namespace} get events --field-selector reason=Evicted",
        since=found.evictions[-1].at,
    )


def _severity_of_repeated(workload: ClusterObject, state: ClusterState) -> Severity:
    """Return critical if a workload other than a Job has fewer ready pods than desired, otherwise warning."""
    if workload.kind in {"Job", "CronJob"}:
        return "warning"
    pods = [pod for pod in state.pods_of(workload) if pod.deleted is None]
    ready = sum(1 for pod in pods if pod_ready(pod))
    replicas = workload.integer("spec", "replicas") if workload.at("spec", "replicas") is not None else 1
    daemons = workload.kind == "DaemonSet"
    return (
        "warning"
        if ready >= (workload.integer("status", "desiredNumberScheduled") if daemons else replicas)
        else "critical"
    )


def _eviction(pod: ClusterObject, state: ClusterState) -> Fault:
    message = pod.text("status", "message")
    low, limit = _LOW.search(message), own_limit(pod, message, state)
    node = ObjectRef(kind="Node", name=pod.text("spec", "nodeName"))
    who, user = pod_words(pod, state), user_behind(state, pod)
    title, cause = "Pod was evicted", f"{who} was evicted from {node}: {message}"
    if limit is not None:
        title = "Pod was evicted: it exceeded its disk limit"
        cause = f"{who} was evicted because it used more disk space than {limit.path} = {limit.value}: {message}"
    elif low is not None:
        title = f"Pod was evicted: the node was low on {low[1]}"
        told = f"{message.strip().rstrip('.')}; {user.words}" if user is not None else message
        cause = f"{who} was evicted because {node} was low on {low[1]}: {told}"
    return Fault(
        subject=pod.ref,
        culprit=state.workload_of(user.pod).ref if user is not None else None,
        title=title,
        severity=_severity(pod, state),
        cause=cause,
        evidence=(*((limit,) if limit else ()), field(pod, "status", "message"), field(pod, "status", "reason")),
        next_check=f"kubectl describe node {node.name}"
        if low
        else f"kubectl -n {pod.namespace} describe pod {pod.name}",
        because=(node,) if low and user is None else (),
        since=ended_at(pod, state),
    )


def _disruption(pod: ClusterObject, state: ClusterState) -> Fault:
    condition = pod.condition("DisruptionTarget")
    why = _DISRUPTIONS.get(text(condition, "reason"), text(condition, "message") or "of an unknown disruption")
    return Fault(
        subject=pod.ref,
        title="Pod was terminated by a disruption",
        severity="info" if serves_elsewhere(pod, state) else "warning",
        cause=f"{pod_words(pod, state)} was terminated because {why}",
        evidence=(field(pod, "status", "conditions"),),
        next_check=f"kubectl -n {pod.namespace} describe pod {pod.name}",
        because=(ObjectRef(kind="Node", name=pod.text("spec", "nodeName")),),
        since=ended_at(pod, state),
    )


def _preemption(found: Preemption, state: ClusterState) -> Fault:
    by, victim = found.by, found.victim
    if by is None or victim is None:
        return Fault(
            subject=found.event.ref,
            title="Pod was preempted",
            severity="info",
            cause=f"{found.event.ref} was preempted by a pod of higher priority: {found.event.message}",
            evidence=(event(found.event),),
            next_check="kubectl get priorityclass",
            since=found.event.first,
        )
    winner, name = state.workload_of(by), by.text("spec", "priorityClassName")
    return Fault(
        subject=victim.ref,
        culprit=winner.ref,
        title="Pod was preempted",
        severity=_severity_of_lost(victim, state),
        cause=f"The scheduler preempted {found.event.ref} of {victim.ref} to make room for {by.ref} of {winner.ref}, "
        f"which has a higher priority{f' (PriorityClass {name})' if name else ''}",
        evidence=(event(found.event), field(by, "spec", "priority")),
        next_check="kubectl get priorityclass",
        since=found.event.first,
    )


def _severity_of_lost(victim: ClusterObject, state: ClusterState) -> Severity:
    """Return info if the victim has all its pods again."""
    waiting = [pod for pod in state.pods_of(victim) if not pod.text("spec", "nodeName") and pod.deleted is None]
    return _severity_of_repeated(victim, state) if waiting else "info"


@Row(
    id="P14",
    title="Pod was rejected by its node",
    severity="warning",
    kinds=("Pod",),
    reads=("status.reason, status.message", "spec.nodeName, spec.nodeSelector, spec.affinity"),
    explanation=(
        "The kubelet rejected a pod that was already assigned to its node (OutOfcpu, NodeAffinity, NodePorts, "
        "UnexpectedAdmissionError and others). Often the pod sets nodeName and bypasses the scheduler, or the node "
        "was shut down. These pods stay in phase Failed and are not started again."
    ),
)
def refused_by_node(state: ClusterState) -> Iterator[Fault]:
    for pod in state.of("Pod"):
        reason = pod.text("status", "reason")
        if pod.deleted is not None or pod.text("status", "phase") != "Failed" or reason not in _REFUSALS:
            continue
        replaced = serves_elsewhere(pod, state)
        if replaced and state.now - ended_at(pod, state) > RECENT_SECONDS:
            continue
        yield _refusal(pod, reason, state, replaced=replaced)


def _refusal(pod: ClusterObject, reason: str, state: ClusterState, *, replaced: bool) -> Fault:
    node = ObjectRef(kind="Node", name=pod.text("spec", "nodeName"))
    message = pod.text("status", "message")
    return Fault(
        subject=pod.ref,
        title="Pod was terminated by a node shutdown" if reason in _SHUTDOWNS else "Pod was rejected by its node",
        severity="info" if replaced else "warning",
        cause=(
            f"{pod_words(pod, state)} was rejected by {node} ({reason}): {_REFUSALS[reason]}"
            f"{': ' + message if message else ''}"
        ),
        evidence=(
            *_placement(pod, reason, state),
            field(pod, "status", "reason"),
            *((field(pod, "status", "message"),) if message else ()),
        ),
        next_check=f"kubectl describe node {node.name}",
        because=(node,),
        since=ended_at(pod, state),
    )


def _placement(pod: ClusterObject, reason: str, state: ClusterState) -> Iterator[Evidence]:
    """Yield the requirements of the pod that its node did not meet."""
    if reason == "NodeAffinity":
        if pod.child("spec", "nodeSelector"):
            yield spec_field(pod, state, "nodeSelector")
        elif pod.child("spec", "affinity", "nodeAffinity"):
            yield spec_field(pod, state, "affinity.nodeAffinity")
    if reason.startswith("OutOf"):
        for container in containers_of(pod):
            if container.kind == "main":
                yield container_field(container, state, "resources.requests")
    yield spec_field(pod, state, "nodeName")


_KILLS: Final = ("FailedKillPod", "FailedPreStopHook", "ExceededGracePeriod")


@Row(
    id="P15",
    title="Pods are lost with their node",
    severity="critical",
    kinds=("Pod",),
    needs=("Node",),
    reads=(
        "status.phase, status.reason",
        "status.conditions Ready of the pod",
        "status.conditions Ready of the node",
        "spec.nodeName",
    ),
    explanation=(
        "The state of these pods is unknown, because their node no longer reports its status or does not exist. Rule "
        "N01 reports the node, and this rule reports the affected workloads."
    ),
)
def lost(state: ClusterState) -> Iterator[Fault]:
    nodes = {node.name: _silence(node, state) for node in state.of("Node")}
    for pod in state.of("Pod"):
        name = pod.text("spec", "nodeName")
        if not name or pod.deleted is not None or pod.text("status", "phase") in {"Succeeded", "Failed"}:
            continue
        if pod_ready(pod) and pod.text("status", "phase") != "Unknown":
            continue
        if name in nodes:
            silent = nodes[name]
            if silent is not None:
                yield _lost_fault(pod, name, "no longer reports its status", silent)
        elif _unknown(pod) or (state.is_missing("Node", "", name) and _had_run(pod)):
            gone = state.is_missing("Node", "", name)
            why = "no longer exists" if gone else "no longer reports its status"
            yield _lost_fault(pod, name, why, field(pod, "spec", "nodeName"))


def _silence(node: ClusterObject, state: ClusterState) -> Evidence | None:
    """Return the Ready condition if the node has not reported for longer than the grace period, otherwise None."""
    ready = node.condition("Ready")
    since = moment(text(ready, "lastTransitionTime")) or node.created
    if text(ready, "status") != "Unknown" or state.now - since < state.patience_seconds:
        return None
    said = f"Ready is Unknown: {text(ready, 'reason')} {text(ready, 'message')}"
    return value(node, "status.conditions[Ready]", said.strip())


def _unknown(pod: ClusterObject) -> bool:
    return pod.text("status", "phase") == "Unknown" or "NodeLost" in (
        pod.text("status", "reason"),
        text(pod.condition("Ready"), "reason"),
    )


def _had_run(pod: ClusterObject) -> bool:
    """Return whether a kubelet has ever accepted the pod. A nonexistent node has no kubelet."""
    return bool(pod.text("status", "startTime"))


def _lost_fault(pod: ClusterObject, name: str, why: str, proof: Evidence) -> Fault:
    node = ObjectRef(kind="Node", name=name)
    return Fault(
        subject=pod.ref,
        culprit=node,
        role="symptom",
        cause=f"{node} {why}, so the state of its pods, for example {pod.ref}, is unknown",
        evidence=(proof, field(pod, "status", "phase")),
        next_check=f"kubectl describe node {name}",
        because=(node,),
        since=moment(text(pod.condition("Ready"), "lastTransitionTime")),
    )


@Row(
    id="P16",
    title="Pod does not terminate",
    severity="warning",
    kinds=("Pod",),
    reads=(
        "metadata.deletionTimestamp, metadata.finalizers",
        "status.conditions Ready of the node",
        "events FailedKillPod, FailedPreStopHook",
    ),
    explanation=(
        "A pod still exists more than one minute after its deletion time. A controller has not removed the pod's "
        "finalizers, the node no longer reports its status, or a container cannot be stopped. A pod within its "
        "termination grace period is not a fault."
    ),
)
def stuck_terminating(state: ClusterState) -> Iterator[Fault]:
    for pod in state.of("Pod"):
        # The deletion time is the end of the grace period, not its start.
        if pod.deleted is not None and state.now - pod.deleted > state.patience_seconds:
            yield _stuck(pod, state)


def _stuck(pod: ClusterObject, state: ClusterState) -> Fault:
    finalizers = texts(pod.body, "metadata", "finalizers")
    node = state.get("Node", "", pod.text("spec", "nodeName"))
    events = state.events_of(pod, *_KILLS)
    silent = node is not None and text(node.condition("Ready"), "status") != "True"
    late = duration(state.now - (pod.deleted or state.now))
    title, why = "Pod does not terminate", "it still exists, and no finalizer, node or event explains why"
    proof: tuple[Evidence, ...] = ()
    if finalizers:
        title = "Pod does not terminate: a finalizer keeps it"
        why = f"no controller has removed the finalizer {finalizers[0]}"
        proof = (value(pod, "metadata.finalizers", list(finalizers)),)
    elif silent and node is not None:
        title, why = (
            "Pod does not terminate: its node no longer reports its status",
            f"{node.ref} does not confirm the pod's termination",
        )
        proof = (value(node, "status.conditions[Ready].status", text(node.condition("Ready"), "status")),)
    elif events:
        title, why = "Pod does not terminate: a container cannot be stopped", events[-1].message
    return Fault(
        subject=pod.ref,
        title=title,
        cause=f"{pod.ref} of {owner_words(pod, state)} should have been deleted {late} ago, but {why}",
        evidence=(*proof, *(event(each) for each in events[-1:]), field(pod, "metadata", "deletionTimestamp")),
        next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o yaml",
        because=(node.ref,) if node is not None and silent else (),
        since=pod.deleted,
    )
