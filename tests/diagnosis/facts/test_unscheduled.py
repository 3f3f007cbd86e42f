"""The scheduler's message is parsed in all its versions, and the most important reason comes first."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.unscheduled import pieces_of, unscheduled_pods
from tests.diagnosis.row_cases import state_of


@pytest.mark.parametrize(
    ("message", "pieces"),
    [
        (
            (
                "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {dedicated: batch}. "
                "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod."
            ),
            [(1, "resources"), (2, "taint")],
        ),
        (
            (
                "0/4 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, "
                "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."
            ),
            [(1, "taint"), (1, "taint"), (2, "selector")],
        ),
        (
            (
                "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity. no new claims to "
                "deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
            [(1, "volume")],
        ),
        (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            [(0, "volume")],
        ),
        ("0/2 nodes are available: 2 node(s) had volume node affinity conflict.", [(2, "volume")]),
        ("0/1 nodes are available: 1 node(s) didn't match pod affinity rules.", [(1, "neighbours")]),
        ("0/1 nodes are available: 1 node(s) didn't match inter-pod affinity rules.", [(1, "neighbours")]),
        ("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.", [(1, "neighbours")]),
        ("0/9 nodes are available: 9 Insufficient nvidia.com/gpu.", [(9, "resources")]),
        ("0/1 nodes are available: 1 Too many pods.", [(1, "resources")]),
        ("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", [(1, "ports")]),
        ('persistentvolumeclaim "data" not found', [(0, "volume")]),
        ("no nodes available to schedule pods", [(0, "other")]),
        ("", []),
    ],
)
def test_a_message_is_taken_apart(message: str, pieces: list[tuple[int, str]]) -> None:
    assert [(each.count, each.reason) for each in pieces_of(message)] == pieces


def test_the_resource_of_a_shortage_keeps_its_dots() -> None:
    (piece,) = pieces_of("0/9 nodes are available: 9 Insufficient nvidia.com/gpu. preemption: not helpful.")
    assert piece.resource == "nvidia.com/gpu"


def test_nodes_that_are_not_meant_for_the_pod_are_not_its_reason() -> None:
    """Three control plane nodes and ten nodes of another pool are excluded, and the only node of its pool is full."""
    message = (
        "0/14 nodes are available: 1 Insufficient cpu, 10 node(s) didn't match Pod's node affinity/selector, "
        "3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }."
    )
    node = {
        "kind": "Node",
        "metadata": {"name": "batch-1", "labels": {"pool": "batch"}},
        "status": {"allocatable": {"cpu": "4"}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {"name": "report"},
        "spec": {
            "nodeSelector": {"pool": "batch"},
            "containers": [{"name": "report", "resources": {"requests": {"cpu": "3"}}}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}],
        },
    }
    (found,) = unscheduled_pods(state_of({"objects": [node, pod]}))
    assert [piece.reason for piece in found.pieces] == ["resources", "selector", "taint"]
