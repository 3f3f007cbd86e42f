"""Labels and taints are judged as the scheduler judges them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from holmes.diagnosis.facts.nodes import chooses, host_ports, repelling_taints, taint_words
from holmes.diagnosis.facts.resources import requested
from holmes.kubernetes.cluster_object import ClusterObject

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

NODE = ClusterObject.of(
    {
        "kind": "Node",
        "metadata": {"name": "node1", "labels": {"disk": "ssd", "cores": "8"}},
        "spec": {"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]},
    }
)


def affinity(*expressions: JsonObject, fields: tuple[JsonObject, ...] = ()) -> JsonObject:
    term: JsonObject = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required: JsonObject = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({}, True),
        ({"nodeSelector": {"disk": "ssd"}}, True),
        ({"nodeSelector": {"disk": "hdd"}}, False),
        ({"nodeSelector": {"disk": "ssd", "zone": "a"}}, False),
        (affinity({"key": "cores", "operator": "Gt", "values": ["4"]}), True),
        (affinity({"key": "cores", "operator": "Lt", "values": ["8"]}), False),
        (affinity({"key": "cores", "operator": "Gt", "values": ["many"]}), False),
        (affinity({"key": "zone", "operator": "DoesNotExist"}), True),
        (affinity(fields=({"key": "metadata.name", "operator": "In", "values": ["node1"]},)), True),
        (affinity(), False),
    ],
)
def test_a_node_is_chosen_by_its_labels(spec: JsonObject, allowed: bool) -> None:
    assert chooses(spec, NODE) is allowed


@pytest.mark.parametrize(
    ("toleration", "kept_away"),
    [
        ({"key": "dedicated", "value": "batch", "effect": "NoSchedule"}, False),
        ({"key": "dedicated", "operator": "Exists"}, False),
        ({"operator": "Exists"}, False),
        ({"key": "dedicated", "value": "web"}, True),
        ({"key": "dedicated", "value": "batch", "effect": "NoExecute"}, True),
        ({"value": "batch"}, True),
    ],
)
def test_a_taint_keeps_away_what_does_not_tolerate_it(toleration: JsonObject, kept_away: bool) -> None:
    found = [taint_words(taint) for taint in repelling_taints({"tolerations": [toleration]}, NODE)]
    assert found == (["dedicated=batch:NoSchedule"] if kept_away else [])


def test_a_port_of_the_node_is_found_with_its_protocol() -> None:
    spec: JsonObject = {"containers": [{"ports": [{"containerPort": 53}, {"hostPort": 53, "protocol": "UDP"}]}]}
    assert list(host_ports(spec)) == [("containers[0].ports[1].hostPort", 53, "UDP")]


def test_a_pod_asks_for_its_containers_or_its_largest_init_container() -> None:
    def asks(cpu: str, **more: str) -> JsonObject:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec: JsonObject = {
        "initContainers": [asks("200m", restartPolicy="Always"), asks("3")],
        "containers": [asks("1"), {"resources": {"limits": {"cpu": "500m"}}}],
        "overhead": {"cpu": "100m"},
    }
    pod = ClusterObject.of({"kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
    assert requested(pod, "cpu") == Decimal("3.3")
    assert requested(pod, "pods") == 1
