"""Rules about pods whose node or end is in doubt: P15 lost with their node, P16 stuck while being deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import event, field, value
from holmes.diagnosis.facts.spec_places import owner_words
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import text, texts
from holmes.kubernetes.moments import duration, moment
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

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
        "Nobody knows how these pods are: their node does not report any more, or does not exist. The fault is the "
        "node's (N01); the pods are listed here so that it is plain which workloads it takes down."
    ),
)
def lost(state: ClusterState) -> Iterator[Fault]:
    """Pods that are not ready on a node that does not report, and pods of nodes that are gone."""
    nodes = {node.name: _silence(node, state) for node in state.of("Node")}
    for pod in state.of("Pod"):
        name = pod.text("spec", "nodeName")
        if not name or pod.deleted is not None or pod.text("status", "phase") in {"Succeeded", "Failed"}:
            continue
        if text(pod.condition("Ready"), "status") == "True" and pod.text("status", "phase") != "Unknown":
            continue
        if name in nodes:
            silent = nodes[name]
            if silent is not None:
                yield _lost_fault(pod, name, "does not report any more", silent)
        elif _unknown(pod) or (state.is_missing("Node", "", name) and _had_run(pod)):
            gone = state.is_missing("Node", "", name)
            why = "does not exist any more" if gone else "does not report any more"
            yield _lost_fault(pod, name, why, field(pod, "spec", "nodeName"))


def _silence(node: ClusterObject, state: ClusterState) -> Evidence | None:
    """The condition that says that the node does not report, for longer than the grace."""
    ready = node.condition("Ready")
    since = moment(text(ready, "lastTransitionTime")) or node.created
    if text(ready, "status") != "Unknown" or state.now - since < state.grace_seconds:
        return None
    said = f"Ready is Unknown: {text(ready, 'reason')} {text(ready, 'message')}"
    return value(node, "status.conditions[Ready]", said.strip())


def _unknown(pod: ClusterObject) -> bool:
    return pod.text("status", "phase") == "Unknown" or "NodeLost" in (
        pod.text("status", "reason"),
        text(pod.condition("Ready"), "reason"),
    )


def _had_run(pod: ClusterObject) -> bool:
    """Whether a kubelet ever took the pod: one with a made-up node name was never seen by any."""
    return bool(pod.text("status", "startTime"))


def _lost_fault(pod: ClusterObject, name: str, why: str, proof: Evidence) -> Fault:
    node = ObjectRef(kind="Node", name=name)
    return Fault(
        subject=pod.ref,
        culprit=node,
        role="symptom",
        cause=f"{node} {why}, so that nobody knows how its pods are, such as {pod.ref}",
        evidence=(proof, field(pod, "status", "phase")),
        next_check=f"kubectl describe node {name}",
        because=(node,),
        since=moment(text(pod.condition("Ready"), "lastTransitionTime")),
    )


@Row(
    id="P16",
    title="Pod does not end",
    severity="warning",
    kinds=("Pod",),
    reads=(
        "metadata.deletionTimestamp, metadata.finalizers",
        "status.conditions Ready of the node",
        "events FailedKillPod, FailedPreStopHook",
    ),
    explanation=(
        "A pod should have been gone for more than a minute. Finalizers keep it until a controller takes them off, its "
        "node does not report so that nobody confirms the end, or the container cannot be killed. A pod within its "
        "termination grace period is no fault."
    ),
)
def stuck_terminating(state: ClusterState) -> Iterator[Fault]:
    """Pods past their deletion time."""
    for pod in state.of("Pod"):
        # The API server writes the end of the grace period as the deletion time.
        if pod.deleted is not None and state.now - pod.deleted > state.grace_seconds:
            yield _stuck(pod, state)


def _stuck(pod: ClusterObject, state: ClusterState) -> Fault:
    finalizers = texts(pod.body, "metadata", "finalizers")
    node = state.get("Node", "", pod.text("spec", "nodeName"))
    events = state.events_of(pod, *_KILLS)
    silent = node is not None and text(node.condition("Ready"), "status") != "True"
    late = duration(state.now - (pod.deleted or state.now))
    title, why = "Pod does not end", "no reason is visible"
    proof: tuple[Evidence, ...] = ()
    if finalizers:
        title = "Pod is kept by a finalizer"
        why = f"the finalizer {finalizers[0]} has not been taken off by its controller"
        proof = (value(pod, "metadata.finalizers", list(finalizers)),)
    elif silent and node is not None:
        title, why = "Pod does not end: its node does not report", f"{node.ref} does not confirm its end"
        proof = (value(node, "status.conditions[Ready].status", text(node.condition("Ready"), "status")),)
    elif events:
        title, why = "Container cannot be ended", events[-1].message
    return Fault(
        subject=pod.ref,
        title=title,
        cause=f"{pod.ref} of {owner_words(pod, state)} should have been gone {late} ago, but {why}",
        evidence=(*proof, *(event(each) for each in events[-1:]), field(pod, "metadata", "deletionTimestamp")),
        next_check=f"kubectl -n {pod.namespace} get pod {pod.name} -o yaml",
        because=(node.ref,) if node is not None and silent else (),
        since=pod.deleted,
    )
