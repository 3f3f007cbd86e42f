"""Who may connect to whom: only NetworkPolicies that were read decide, and nothing else is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from holmes.kubernetes.cluster_state import Gap
from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.first_look import FirstLook
from tests.triage.corpus.loading import scan_of

NAMESPACE: Final = {"kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": "Active"}}
SERVERS: Final[dict[str, Any]] = {"web": {}, "api": {}, "db": {"port": 5432}}


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "NetworkPolicy", "metadata": {"name": "db-clients"}, "spec": spec}


def ingress(*peers: dict[str, Any], port: int = 5432) -> dict[str, Any]:
    rule: dict[str, Any] = {"from": [*peers], "ports": [{"port": port, "protocol": "TCP"}]}
    return policy({"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"], "ingress": [rule]})


API: Final = {"podSelector": {"matchLabels": {"app": "api"}}}


def look(question: str, *objects: dict[str, Any], gap: Gap | None = None) -> FirstLook:
    scan = scan_of({"objects": [NAMESPACE, *objects], "servers": SERVERS})
    if gap is not None:
        scan.state.reading = replace(scan.state.reading, gaps=(*scan.state.reading.gaps, gap))
    return take_first_look(LookRequest(question=question), scan)


@pytest.mark.parametrize(
    ("question", "objects", "told"),
    [
        ("may web talk to db?", (ingress(API),), "No: NetworkPolicy shop/db-clients does not allow"),
        ("may api talk to db?", (ingress(API),), "Yes: NetworkPolicy shop/db-clients allows"),
        ("is api allowed to connect to db?", (ingress(API, port=80),), "No: NetworkPolicy shop/db-clients"),
        ("darf web auf db zugreifen?", (), "Yes: no NetworkPolicy restricts connections"),
        ("can web reach db?", (), "No NetworkPolicy restricts connections from `web` to `db`"),
        ("who may connect to db?", (ingress(API),), "Deployment shop/api may connect to `db`"),
        ("who may connect to db?", (), "No NetworkPolicy restricts the ingress of `db`"),
        (
            "may api talk to db?",
            (policy({"podSelector": {"matchLabels": {"app": "api"}}, "policyTypes": ["Egress"]}),),
            "No: NetworkPolicy shop/db-clients does not allow",
        ),
        ("which network policy protects db?", (ingress(API),), "NetworkPolicy shop/db-clients (ingress)"),
        ("which network policy protects web?", (ingress(API),), "No NetworkPolicy selects the pods of `web`"),
    ],
)
def test_policies_decide_who_may_connect(question: str, objects: tuple[dict[str, Any], ...], told: str) -> None:
    answer = look(question, *objects)
    assert answer.verdict == "answered"
    assert told in answer.summary


def test_an_allowed_connection_is_not_called_a_working_one() -> None:
    assert "it is not known if connections succeed" in look("can api reach db?", ingress(API)).summary


def test_policies_that_were_not_read_decide_nothing() -> None:
    gap = Gap(kind="NetworkPolicy", namespace="", why="forbidden", category="forbidden")
    answer = look("may web talk to db?", ingress(API), gap=gap)
    assert answer.verdict == "inconclusive"
    assert "could not be read" in answer.summary


def test_a_complaint_about_a_connection_still_asks_for_its_cause() -> None:
    assert "restricts connections" not in look("web can't reach db, why?", ingress(API)).summary


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("is it safe to restart db?", "a new pod is ready before its only pod ends"),
        ("should I restart web?", "a new pod is ready before its only pod ends"),
        ("kann ich api neu starten?", "a new pod is ready before its only pod ends"),
    ],
)
def test_a_restart_is_told_and_not_advised(question: str, told: str) -> None:
    answer = look(question)
    assert answer.verdict == "answered"
    assert told in answer.summary
    assert "Whether a restart helps was not examined." in answer.notes


@pytest.mark.parametrize(
    "question",
    [
        "which workloads can web reach?",
        "can I reach db from api?",
        "can web or api talk to db?",
        "who can not reach db?",
        "may users from the internet connect to db?",
    ],
)
def test_a_question_for_more_than_one_connection_is_not_answered_with_one(question: str) -> None:
    answer = look(question, ingress(API))
    assert "NetworkPolicy shop/db-clients allows" not in answer.summary
    assert "may connect to" not in answer.summary
    assert "NetworkPolicy restricts" not in answer.summary


@pytest.mark.parametrize(
    ("rolling", "told"),
    [
        ({"maxSurge": "25%", "maxUnavailable": "25%"}, "a new pod is ready before its only pod ends"),
        ({"maxSurge": 0, "maxUnavailable": 1}, "it can be down until its only pod is back"),
    ],
)
def test_a_restart_tells_if_the_only_pod_is_missing_meanwhile(rolling: dict[str, Any], told: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    scan = scan_of({"objects": [NAMESPACE], "servers": {"web": {}}})
    for each in scan.state.of("Deployment"):
        each.body["spec"]["strategy"] = strategy  # type: ignore[index]
    assert told in take_first_look(LookRequest(question="can I restart web?"), scan).summary


@pytest.mark.parametrize(
    "question", ["can I delete the configmap of web?", "can we stop the alerts of web?", "should we roll back web?"]
)
def test_other_changes_are_no_restart(question: str) -> None:
    assert "restart" not in look(question).summary
