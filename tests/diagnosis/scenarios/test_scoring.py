"""The score decides how good the scanner is, so it must never be too high."""

from __future__ import annotations

from pathlib import Path

from holmes.values.findings import DiagnosisReport, Evidence, Finding, Incident, ObjectRef, ScanCost, Severity
from tests.diagnosis.scenarios.model import Scenario, load_scenarios
from tests.diagnosis.scenarios.scoring import judge, unjudged
from tests.diagnosis.scenarios.summary import load_scores, save_scores, summarize

PLACES = {"shop": "shop-1", "run": "abc123"}


def scenario(name: str) -> Scenario:
    return load_scenarios(name)[0]


def incident(kind: str, name: str, said: str, *, severity: Severity = "critical") -> Incident:
    culprit = ObjectRef(kind=kind, name=name, namespace="shop-1")
    finding = Finding(
        rule_id="X01",
        severity=severity,
        title="something is wrong",
        subject=culprit,
        culprit=culprit,
        cause="",
        evidence=(Evidence(object=culprit, path="spec", value=said),),
        next_check="",
    )
    return Incident(id=f"{kind}-{name}", severity=severity, title="", culprit=culprit, cause="", findings=(finding,))


def report(*incidents: Incident) -> DiagnosisReport:
    return DiagnosisReport(
        taken_at="2026-11-22T06:00:00Z",
        namespaces=("shop-1",),
        incidents=incidents,
        checked=(),
        not_checked=(),
        rules_run=1,
        cost=ScanCost(list_calls=1, requests=2, logs_read=0, seconds=0.5),
    )


RIGHT = incident("Deployment", "web", "image registry.shop.example/web:4.20.0")
TYPO = "image-tag-typo"


def test_the_right_object_with_the_right_value_is_right() -> None:
    score = judge(scenario(TYPO), report(RIGHT), PLACES)

    assert score.right
    assert (score.seconds, score.requests) == (0.5, 2)


def test_the_right_answer_in_second_place_does_not_count() -> None:
    other = incident("Deployment", "cart", "web:4.20.0")

    score = judge(scenario(TYPO), report(other, RIGHT), PLACES)

    assert not score.culprit
    assert score.extra


def test_the_right_object_without_the_value_is_half_right() -> None:
    score = judge(scenario(TYPO), report(incident("Deployment", "web", "cannot be pulled")), PLACES)

    assert score.culprit
    assert not score.value
    assert not score.right


def test_an_innocent_object_is_blamed_also_behind_the_right_answer() -> None:
    score = judge(scenario(TYPO), report(RIGHT, incident("Service", "web", "", severity="warning")), PLACES)

    assert score.culprit
    assert len(score.blamed) == 1
    assert not score.right


def test_what_is_only_worth_knowing_blames_nobody() -> None:
    score = judge(scenario(TYPO), report(RIGHT, incident("Service", "web", "", severity="info")), PLACES)

    assert score.right


def test_the_same_name_in_another_namespace_is_another_object() -> None:
    score = judge(scenario(TYPO), report(RIGHT), {"shop": "shop-2", "run": "abc123"})

    assert not score.culprit


def test_two_faults_need_two_incidents_in_any_order() -> None:
    cart = incident("Deployment", "cart", "registry.shop.example/cart:0.9.4")
    search = incident("Deployment", "search", "kubernetes.io/arch: arm64")
    both = scenario("two-image-and-node-selector")

    assert judge(both, report(search, cart), PLACES).right
    assert not judge(both, report(cart), PLACES).culprit


def test_any_serious_incident_spoils_a_healthy_scenario() -> None:
    assert judge(scenario("job-completed"), report(), PLACES).right
    assert not judge(scenario("job-completed"), report(incident("Job", "migrate", "")), PLACES).right


def test_what_has_healed_may_be_a_warning_but_not_critical() -> None:
    healed = scenario("restarted-once")

    assert judge(healed, report(incident("Deployment", "cart", "", severity="warning")), PLACES).right
    assert not judge(healed, report(incident("Deployment", "cart", "")), PLACES).right


def test_what_did_not_show_or_failed_is_never_right() -> None:
    scores = (
        unjudged(scenario(TYPO), "did not show", shown=False),
        unjudged(scenario("job-completed"), "scan failed", shown=True),
    )

    summary = summarize(scores)

    assert not any(each.right for each in scores)
    assert (summary.not_shown, summary.failed, summary.both) == (1, 1, 0)


def test_scores_survive_their_file(tmp_path: Path) -> None:
    scores = (judge(scenario(TYPO), report(RIGHT, incident("Service", "web", "")), PLACES),)

    save_scores(scores, tmp_path / "scores.json")

    assert load_scores(tmp_path / "scores.json") == scores
