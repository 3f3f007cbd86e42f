"""The consequences of a drain, and the entries from outside: nothing is told that was not read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from holmes.kubernetes.cluster_state import Gap
from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.first_look import FirstLook
from tests.triage.corpus.loading import scan_of

READY: Final = {"conditions": [{"type": "Ready", "status": "True"}]}
OBJECTS: Final[list[dict[str, Any]]] = [
    {"kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": "Active"}},
    *({"kind": "Node", "metadata": {"name": name}, "status": READY} for name in ("elm-1", "oak-1")),
]
SERVERS: Final[dict[str, Any]] = {"web": {"spec": {"nodeName": "elm-1"}}, "db": {"spec": {"nodeName": "oak-1"}}}


def look(question: str, *objects: dict[str, Any], gap: Gap | None = None) -> FirstLook:
    scan = scan_of({"objects": [*OBJECTS, *objects], "servers": SERVERS})
    if gap is not None:
        scan.state.reading = replace(scan.state.reading, gaps=(*scan.state.reading.gaps, gap))
    return take_first_look(LookRequest(question=question), scan)


def budget(status: dict[str, Any], selector: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": selector},
        "status": status,
    }


@pytest.mark.parametrize(
    ("status", "selector", "told"),
    [
        ({"disruptionsAllowed": 0}, {"matchLabels": {"app": "web"}}, "allows no disruption of Pod shop/web-5d9-x"),
        ({"disruptionsAllowed": 1}, {"matchLabels": {"app": "web"}}, "no PodDisruptionBudget limits it"),
        ({"disruptionsAllowed": 0}, {"matchLabels": {"app": "db"}}, "no PodDisruptionBudget limits it"),
        ({"disruptionsAllowed": 0}, {}, "allows no disruption of Pod shop/web-5d9-x"),
        ({"disruptionsAllowed": 0}, None, "no PodDisruptionBudget limits it"),
        ({}, {"matchLabels": {"app": "web"}}, "it is not known how many disruptions"),
    ],
)
def test_a_drain_tells_the_budgets_that_limit_it(
    status: dict[str, Any], selector: dict[str, Any] | None, told: str
) -> None:
    answer = look("can i drain elm-1?", budget(status, selector))
    assert answer.verdict == "answered"
    assert told in answer.summary
    assert "All running pods of Deployment shop/web are there" in answer.summary


def test_a_drain_of_pods_that_were_not_read_is_not_known() -> None:
    gap = Gap(kind="PodDisruptionBudget", namespace="", why="forbidden", category="forbidden")
    assert look("can i drain elm-1?", gap=gap).verdict == "inconclusive"


def test_an_ingress_and_a_route_lead_to_a_workload() -> None:
    backend = {"service": {"name": "web", "port": {"number": 8080}}}
    rule = {"host": "web.example", "http": {"paths": [{"path": "/", "backend": backend}]}}
    ingress = {"kind": "Ingress", "metadata": {"name": "front"}, "spec": {"rules": [rule]}}
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "front"},
        "spec": {"hostnames": ["db.example"], "rules": [{"backendRefs": [{"name": "db", "port": 8080}]}]},
    }
    assert "http://web.example/" in look("is web reachable from outside?", ingress, route).summary
    assert "db.example" in look("is db reachable from outside?", ingress, route).summary


def test_no_entry_is_told_only_if_routes_were_read() -> None:
    question = "is web exposed to the internet?"
    assert look(question).summary.startswith("No Ingress, route, node port or outer address that was read")
    gap = Gap(kind="HTTPRoute.gateway.networking.k8s.io", namespace="", why="time is up", category="late")
    assert look(question, gap=gap).verdict == "inconclusive"
    absent = replace(gap, why="not installed", category="absent")
    assert look(question, gap=absent).verdict == "answered"


@pytest.mark.parametrize(
    ("question", "told"),
    [("web has 2 replicas, right?", "No: Deployment shop/web has 1 replica, not 2"), ("web has 1 pod?", "Yes: ")],
)
def test_a_stated_number_is_checked(question: str, told: str) -> None:
    assert look(question).summary.startswith(told)
