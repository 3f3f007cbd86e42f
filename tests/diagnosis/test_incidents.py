"""Findings become incidents with one root cause each, and the same ids in every scan."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import yaml

from holmes.diagnosis.incidents import incidents_of
from holmes.kubernetes.cluster_state import ClusterState
from holmes.values.findings import Evidence, Finding, FixStep, Incident, ObjectRef
from tests.diagnosis.row_cases import state_of

SHOP: dict[str, Any] = yaml.safe_load(
    """
    objects:
    - {kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}
    - {kind: ReplicaSet, metadata: {name: web-1, owner: Deployment/web}}
    - {kind: Pod, metadata: {name: web-1-a, owner: ReplicaSet/web-1, labels: {app: web}}}
    - {kind: Deployment, metadata: {name: cart}, spec: {replicas: 2}}
    - {kind: ReplicaSet, metadata: {name: cart-1, owner: Deployment/cart}}
    - {kind: Pod, metadata: {name: cart-1-a, owner: ReplicaSet/cart-1, labels: {app: cart}}}
    - {kind: Pod, metadata: {name: cart-1-b, owner: ReplicaSet/cart-1, labels: {app: cart}}}
    - {kind: Service, metadata: {name: cart}, spec: {selector: {app: cart}}}
    - {kind: Deployment, metadata: {name: search}, spec: {replicas: 1}}
    - {kind: Node, metadata: {name: node-1}}
    """
)
WEB = ObjectRef(kind="Deployment", namespace="shop", name="web")
WEB_POD = ObjectRef(kind="Pod", namespace="shop", name="web-1-a")
CART = ObjectRef(kind="Deployment", namespace="shop", name="cart")
CART_POD = ObjectRef(kind="Pod", namespace="shop", name="cart-1-a")
CART_SERVICE = ObjectRef(kind="Service", namespace="shop", name="cart")
SETTINGS = ObjectRef(kind="ConfigMap", namespace="shop", name="cart-settings")
SEARCH = ObjectRef(kind="Deployment", namespace="shop", name="search")
PAYMENTS = ObjectRef(kind="Deployment", namespace="shop", name="payments")
NODE = ObjectRef(kind="Node", name="node-1")


def shop() -> ClusterState:
    return state_of(SHOP)


def finding(rule_id: str, subject: ObjectRef, culprit: ObjectRef | None = None, **fields: Any) -> Finding:  # noqa: ANN401  any field of a finding
    made = Finding(
        rule_id=rule_id,
        severity="critical",
        title=f"title of {rule_id}",
        subject=subject,
        culprit=culprit or subject,
        cause=f"cause of {rule_id}",
        evidence=(Evidence(object=subject, path="status", value=rule_id),),
        next_check=f"check {rule_id}",
    )
    return replace(made, **fields)


def told(incidents: tuple[Incident, ...]) -> list[tuple[str, str, list[str]]]:
    """Culprit, root rule and rules of the symptoms."""
    return [
        (str(incident.culprit), incident.rule_id, [symptom.rule_id for symptom in incident.symptoms])
        for incident in incidents
    ]


MISSING = finding("P05", CART_POD, SETTINGS)
UNAVAILABLE = finding("W02", CART, role="symptom")
NO_ENDPOINTS = finding("N-S02", CART_SERVICE, role="symptom", because=(CART,))
CANNOT_REACH = finding("P01", WEB_POD, WEB, because=(CART_SERVICE,))


def test_a_chain_from_a_crash_over_a_service_to_a_missing_configmap_is_one_incident() -> None:
    incidents = incidents_of([CANNOT_REACH, NO_ENDPOINTS, UNAVAILABLE, MISSING], shop())

    assert told(incidents) == [("ConfigMap shop/cart-settings", "P05", ["P01", "N-S02", "W02"])]
    assert set(map(str, incidents[0].affected)) == {"Deployment shop/cart", "Deployment shop/web", "Service shop/cart"}


def test_a_service_without_a_finding_leads_to_the_workload_behind_it() -> None:
    assert told(incidents_of([CANNOT_REACH, MISSING], shop())) == [("ConfigMap shop/cart-settings", "P05", ["P01"])]


def test_two_unrelated_faults_are_two_incidents() -> None:
    incidents = incidents_of([MISSING, finding("S01", SEARCH)], shop())

    assert {incident.culprit for incident in incidents} == {SETTINGS, SEARCH}


def test_a_symptom_alone_is_an_incident_of_its_own() -> None:
    assert told(incidents_of([UNAVAILABLE], shop())) == [("Deployment shop/cart", "W02", [])]


def test_what_is_only_worth_knowing_explains_nothing_and_stays_apart() -> None:
    incidents = incidents_of([finding("W13", CART, severity="info"), UNAVAILABLE], shop())

    assert told(incidents) == [("Deployment shop/cart", "W02", []), ("Deployment shop/cart", "W13", [])]
    assert incidents[1].severity == "info"


def test_the_more_telling_of_two_causes_at_one_culprit_comes_first() -> None:
    incidents = incidents_of([finding("P01", CART_POD, CART), finding("P02", CART_POD, CART)], shop())

    assert [found.rule_id for found in incidents[0].findings] == ["P02", "P01"]
    assert len(incidents) == 1


def test_faults_that_explain_each_other_in_a_circle_are_one_incident() -> None:
    one = finding("P01", WEB_POD, WEB, because=(CART,))
    other = finding("P10", CART_POD, CART, because=(WEB,))

    assert len(incidents_of([one, other], shop())) == 1


def test_many_workloads_of_one_node_are_one_incident() -> None:
    gone = finding("N01", NODE)
    pods = [finding("P15", pod, because=(NODE,), role="symptom") for pod in (WEB_POD, CART_POD)]

    incidents = incidents_of([*pods, gone], shop())

    assert told(incidents) == [("Node node-1", "N01", ["P15", "P15"])]


def test_severity_then_what_suffers_then_time_decides_the_order() -> None:
    warning = finding("W06", SEARCH, severity="warning")
    newer = finding("S01", SEARCH, since="2026-11-22T04:59:00Z")
    older = finding("P04", PAYMENTS, since="2026-11-22T04:00:00Z")

    by_breadth = incidents_of([newer, MISSING, UNAVAILABLE, NO_ENDPOINTS], shop())
    by_time = incidents_of([older, newer], shop())
    by_severity = incidents_of([warning, finding("P04", WEB_POD, WEB)], shop())

    assert by_breadth[0].culprit == SETTINGS
    assert [incident.culprit for incident in by_severity] == [WEB, SEARCH]
    assert [incident.culprit for incident in by_time] == [SEARCH, PAYMENTS]


def test_the_order_of_findings_changes_nothing() -> None:
    findings = [CANNOT_REACH, NO_ENDPOINTS, UNAVAILABLE, MISSING, finding("S01", SEARCH), finding("N01", NODE)]
    expected = incidents_of(findings, shop())
    shuffler = random.Random(4)  # noqa: S311  an order, no secret

    for _ in range(20):
        shuffler.shuffle(findings)
        assert incidents_of(findings, shop()) == expected


def test_the_id_is_the_same_when_other_pods_show_the_fault_and_differs_between_culprits() -> None:
    (first,) = incidents_of([finding("P01", CART_POD, CART)], shop())
    (again,) = incidents_of([finding("P01", ObjectRef(kind="Pod", namespace="shop", name="cart-1-b"), CART)], shop())
    (another,) = incidents_of([finding("P01", WEB_POD, WEB)], shop())

    assert first.id == again.id
    assert first.id != another.id


def _patch(path: str) -> FixStep:
    return FixStep(kind="patch", object=SETTINGS, path=path, action='"right"')


def test_two_wrong_fields_of_one_object_are_both_named_and_both_fixed() -> None:
    first, other = finding("I02a", SETTINGS, fix=(_patch("/a"),)), finding("I02b", SETTINGS, fix=(_patch("/b"),))
    (incident,) = incidents_of([first, other], shop())

    assert incident.cause == "cause of I02a; besides, cause of I02b"
    assert [step.path for step in incident.fix] == ["/a", "/b"]


def test_another_cause_that_the_same_fix_removes_or_that_another_subject_shows_is_not_named() -> None:
    first, same = finding("I02a", SETTINGS, fix=(_patch("/a"),)), finding("I02b", SETTINGS, fix=(_patch("/a"),))
    elsewhere = finding("P01", CART_POD, SETTINGS, fix=(_patch("/b"),))
    (incident,) = incidents_of([first, same, elsewhere], shop())

    assert incident.cause == "cause of I02a"
    assert [step.path for step in incident.fix] == ["/a"]
