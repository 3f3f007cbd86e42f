"""Rules for versions and capacity of nodes: incompatible kubelets, full nodes and overcommitted memory."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.nodes import is_virtual, standing_nodes
from holmes.diagnosis.facts.resources import allocatable, pods_by_node, requested, written_amount
from holmes.diagnosis.facts.unscheduled import unscheduled_for
from holmes.diagnosis.rule import Fault, Row
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_VERSION: Final = expression(r"v?(\d{1,9})\.(\d{1,9})", re.ASCII)
_NO_ADDRESS: Final = expression(
    r"no (?:more )?(?:available )?ips?\b|failed to (?:assign|allocate) (?:an )?(?:ip|for range)", re.IGNORECASE
)
_MOST_SKEW: Final = 3
_OVERCOMMIT: Final = Decimal("1.5")


@Row(
    id="N06",
    title="Kubelet is much older than other kubelets",
    severity="warning",
    kinds=("Node",),
    reads=("status.nodeInfo.kubeletVersion",),
    explanation="A kubelet may be at most three minor versions older than the API server. If the versions of the "
    "kubelets differ by more, the oldest nodes are not supported. A smaller difference is normal during an upgrade.",
)
def version_skew(state: ClusterState) -> Iterator[Fault]:
    minors = {node.name: minor for node in state.of("Node") if (minor := _minor(node)) and not is_virtual(node)}
    newest = max(minors.values(), default=(0, 0))
    for node in standing_nodes(state):
        own = minors.get(node.name)
        if own is None or own[0] != newest[0] or newest[1] - own[1] <= _MOST_SKEW:
            continue
        ahead = next(each for each in state.of("Node") if minors.get(each.name) == newest)
        yield Fault(
            subject=node.ref,
            cause=f"{node.ref} has kubelet {_written(node)}, which is {newest[1] - own[1]} minor versions older than "
            f"{_written(ahead)} on {ahead.name}",
            evidence=(
                evidence.field(node, "status", "nodeInfo", "kubeletVersion"),
                evidence.field(ahead, "status", "nodeInfo", "kubeletVersion"),
            ),
            next_check="kubectl get nodes",
        )


def _written(node: ClusterObject) -> str:
    return node.text("status", "nodeInfo", "kubeletVersion")


def _minor(node: ClusterObject) -> tuple[int, int] | None:
    found = _VERSION.match(_written(node))
    return None if found is None else (int(found[1]), int(found[2]))


@Row(
    id="N07",
    title="Node has reached its maximum number of pods",
    severity="info",
    kinds=("Node", "Pod"),
    reads=("status.allocatable.pods", "spec.podCIDR", "Pod spec.nodeName", "event FailedCreatePodSandBox"),
    explanation="A node accepts at most `allocatable.pods` pods, and at most as many as its address range (`podCIDR`) "
    "allows. The severity is warning if the limit prevents scheduling, or if the node runs out of addresses before it "
    "reaches its maximum number of pods.",
)
def full_of_pods(state: ClusterState) -> Iterator[Fault]:
    if state.reading.namespaces or not state.covers("Pod"):
        return
    placed = pods_by_node(state)
    crowded = any(found.main.resource == "pods" for found in unscheduled_for(state, "resources"))
    starved = _without_address(state)
    for node in standing_nodes(state):
        pods, places = placed.get(node.name, []), int(allocatable(node, "pods"))
        event = starved.get(node.name)
        if event is not None:
            yield Fault(
                subject=node.ref,
                title="Node has no addresses left for pods",
                severity="warning",
                cause=f"{node.ref} has no addresses left for pods "
                f"(podCIDR {node.text('spec', 'podCIDR') or 'unknown'}, {len(pods)} pods)",
                evidence=(evidence.field(node, "spec", "podCIDR"), evidence.event(event)),
                next_check=f"kubectl describe node {node.name}",
            )
        if places and len(pods) >= places and not is_virtual(node):
            yield Fault(
                subject=node.ref,
                severity="warning" if crowded else None,
                cause=f"{node.ref} has {len(pods)} pods; its maximum is {places}",
                evidence=(
                    evidence.field(node, "status", "allocatable", "pods"),
                    evidence.value(node, "pods on the node", len(pods)),
                ),
                next_check=f"kubectl describe node {node.name}",
            )


def _without_address(state: ClusterState) -> dict[str, ClusterEvent]:
    """Return, for each node name, the newest event of a pod that is still waiting for an IP address."""
    found: dict[str, ClusterEvent] = {}
    for event in state.events:
        if event.reason != "FailedCreatePodSandBox" or not _NO_ADDRESS.search(event.message):
            continue
        pod = state.by_uid(event.uid)
        if pod is not None and pod.text("status", "phase") == "Pending":
            found[pod.text("spec", "nodeName")] = event
    return found


@Row(
    id="N08",
    title="Memory limits exceed the memory of the node",
    severity="info",
    kinds=("Node", "Pod"),
    reads=("status.allocatable.memory", "Pod spec.containers[].resources.limits.memory"),
    explanation="The memory limits of the pods add up to more than 1.5 times the memory of the node. If the pods use "
    "as much memory as their limits allow, the node runs out of memory and the kernel kills processes. This is a "
    "risk, not a fault.",
)
def overcommitted(state: ClusterState) -> Iterator[Fault]:
    if state.reading.namespaces or not state.covers("Pod"):
        return
    placed = pods_by_node(state)
    for node in standing_nodes(state):
        has, promised = allocatable(node, "memory"), _promised(placed.get(node.name, []))
        if has and promised > has * _OVERCOMMIT:
            yield Fault(
                subject=node.ref,
                cause=f"The memory limits on {node.ref} add up to {written_amount(promised, 'memory')}, but the node "
                f"has only {written_amount(has, 'memory')}",
                evidence=(
                    evidence.field(node, "status", "allocatable", "memory"),
                    evidence.value(node, "memory limits of its pods", written_amount(promised, "memory")),
                ),
                next_check=f"kubectl describe node {node.name}",
            )


def _promised(pods: Sequence[ClusterObject]) -> Decimal:
    return sum((requested(pod, "memory", "limits") for pod in pods), Decimal(0))
