"""Determines which nodes a pod may use, and which nodes are joining or leaving the cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, integer, matches_map, matches_selector, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject


AFFINITY: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
CONTROL_PLANE_TAINTS: Final = frozenset({"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"})
CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
PROBLEM_PREFIX: Final = "node.kubernetes.io/"
_INTEGER: Final = expression(r"-?[0-9]{1,18}")
_AGENT_NOT_READY: Final = "/agent-not-ready"
"""The end of the taint that a node has until the agent of its network or storage runs, for example that of Cilium."""
UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


def chooses(spec: JsonObject, node: ClusterObject) -> bool:
    """Return whether the `nodeSelector` and the required node affinity of a pod's spec allow the node."""
    selector = text_map(spec, "nodeSelector")
    if selector and not matches_map(selector, node.labels):
        return False
    terms = children(spec, *AFFINITY)
    return not terms or matches_terms(terms, node)


def matches_terms(terms: Iterable[JsonObject], node: ClusterObject) -> bool:
    """Return whether any of the node selector terms matches the node. An empty term matches no node."""
    return any(
        (children(term, "matchExpressions") or children(term, "matchFields"))
        and all(expression_holds(each, node.labels) for each in children(term, "matchExpressions"))
        and all(expression_holds(each, {"metadata.name": node.name}) for each in children(term, "matchFields"))
        for term in terms
    )


def expression_holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    """Return whether the labels of a node satisfy one expression. `Gt` and `Lt` compare numbers."""
    operator = text(expression, "operator")
    if operator not in {"Gt", "Lt"}:
        return matches_selector({"matchExpressions": [dict(expression)]}, labels)
    bound, own = next(iter(texts(expression, "values")), ""), labels.get(text(expression, "key"), "")
    if not (_INTEGER.fullmatch(bound) and _INTEGER.fullmatch(own)):
        return False
    return int(own) > int(bound) if operator == "Gt" else int(own) < int(bound)


def repelling_taints(spec: JsonObject, node: ClusterObject) -> Iterator[JsonObject]:
    """Yield the taints of a node that prevent the pod from running there."""
    tolerations = children(spec, "tolerations")
    for taint in node.children("spec", "taints"):
        if text(taint, "effect") in _REPELLING and not any(_tolerates(each, taint) for each in tolerations):
            yield taint


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if text(toleration, "effect") not in {"", text(taint, "effect")}:
        return False
    key, exists = text(toleration, "key"), text(toleration, "operator") == "Exists"
    if not key:
        return exists
    return key == text(taint, "key") and (exists or text(toleration, "value") == text(taint, "value"))


def is_trouble(taint: JsonObject) -> bool:
    """Return whether the taint means that the node has a fault, is cordoned or is not initialized."""
    key = text(taint, "key")
    return key.startswith(PROBLEM_PREFIX) or key == UNINITIALIZED_TAINT or key.endswith(_AGENT_NOT_READY)


def taint_words(taint: JsonObject) -> str:
    """Format a taint in the notation of kubectl, for example `dedicated=gpu:NoSchedule`."""
    value = text(taint, "value")
    return f"{text(taint, 'key')}{f'={value}' if value else ''}:{text(taint, 'effect')}"


def host_ports(spec: JsonObject) -> Iterator[tuple[str, int, str]]:
    """Yield the path, port and protocol of every host port in a pod's spec.

    An example path is `containers[0].ports[0].hostPort`.
    """
    for key in ("containers", "initContainers"):
        for index, container in enumerate(children(spec, key)):
            if key == "initContainers" and text(container, "restartPolicy") != "Always":
                continue
            for position, port in enumerate(children(container, "ports")):
                if integer(port, "hostPort"):
                    where = f"{key}[{index}].ports[{position}].hostPort"
                    yield where, integer(port, "hostPort"), text(port, "protocol") or "TCP"


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
    """Yield the nodes that have joined the cluster and are not being removed from it."""
    for node in state.of("Node"):
        if node.deleted is None and state.age_seconds(node) >= state.grace_seconds and not _leaves(node):
            yield node


def is_virtual(node: ClusterObject) -> bool:
    """Return whether the node is virtual. Virtual nodes follow different rules for versions and pod limits."""
    fargate = node.labels.get("eks.amazonaws.com/compute-type") == "fargate"
    return fargate or node.labels.get("type") == "virtual-kubelet"


def _leaves(node: ClusterObject) -> bool:
    return any(text(taint, "key") in _LEAVING for taint in node.children("spec", "taints"))


def events_by_node(state: ClusterState, *reasons: str) -> dict[str, list[ClusterEvent]]:
    """Return the events with these reasons, grouped by node name, oldest first.

    Matches events by name, because the kubelet writes the node name into the field for the uid.
    """
    found: dict[str, list[ClusterEvent]] = defaultdict(list)
    for event in state.events:
        if event.kind == "Node" and event.reason in reasons:
            found[event.name].append(event)
    for events in found.values():
        events.sort(key=lambda event: event.last)
    return found
