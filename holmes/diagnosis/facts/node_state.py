"""Reads nodes for rules: their events, whether they leave on purpose, which pods they hold up. Called by the rules."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_LEAVING: Final = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "aws-node-termination-handler/rebalance-recommendation",
    }
)


def standing_nodes(state: ClusterState) -> Iterator[ClusterObject]:
    """The nodes that are neither joining nor being removed by whoever scales the cluster."""
    for node in state.of("Node"):
        if node.deleted is None and state.age_seconds(node) >= state.grace_seconds and not _leaves(node):
            yield node


def is_virtual(node: ClusterObject) -> bool:
    """Whether a program pretends to be a node: its version and its number of places are its own affair."""
    fargate = node.labels.get("eks.amazonaws.com/compute-type") == "fargate"
    return fargate or node.labels.get("type") == "virtual-kubelet"


def _leaves(node: ClusterObject) -> bool:
    return any(text(taint, "key") in _LEAVING for taint in node.children("spec", "taints"))


def events_by_node(state: ClusterState, *reasons: str) -> dict[str, list[ClusterEvent]]:
    """The events of each node with these reasons, oldest first.

    By name: a kubelet writes the node's name where other events have the uid.
    """
    found: dict[str, list[ClusterEvent]] = defaultdict(list)
    for event in state.events:
        if event.kind == "Node" and event.reason in reasons:
            found[event.name].append(event)
    for events in found.values():
        events.sort(key=lambda event: event.last)
    return found
