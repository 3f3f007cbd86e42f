"""A report within its tokens: the top incident keeps its evidence longest, and what is left out is counted."""

from __future__ import annotations

import json

import pytest

from holmes.tokens import TokenCounter
from holmes.toolsets.kubernetes_diagnosis.toolset import fitting_json
from holmes.values.findings import DiagnosisReport, Evidence, Finding, Incident, NotChecked, ObjectRef, ScanCost
from holmes.values.findings_json import report_from_json


def incident(number: int) -> Incident:
    workload = ObjectRef(kind="Deployment", namespace="shop", name=f"app-{number}")
    evidence = tuple(Evidence(object=workload, path=f"spec.field{field}", value="x" * 400) for field in range(6))
    finding = Finding(
        rule_id="P01",
        severity="critical",
        title="Application crashes",
        subject=workload,
        culprit=workload,
        cause=f"app-{number} ends with exit code 1",
        evidence=evidence,
        next_check="kubectl logs",
    )
    return Incident(
        id=f"P01-{number}",
        severity="critical",
        title=finding.title,
        culprit=workload,
        cause=finding.cause,
        findings=(finding,),
        symptoms=(finding,) * 8,
        affected=(workload,) * 9,
    )


def report(incidents: int) -> DiagnosisReport:
    return DiagnosisReport(
        taken_at="2026-11-22T05:00:00Z",
        namespaces=("shop",),
        incidents=tuple(map(incident, range(incidents))),
        checked=(),
        not_checked=(NotChecked(what="Secret", why="forbidden"),),
        rules_run=1,
        cost=ScanCost(list_calls=36, requests=36, logs_read=0, seconds=0.1),
    )


@pytest.mark.parametrize("max_tokens", [500, 1_000, 2_000, 4_000, 20_000])
@pytest.mark.parametrize("incidents", [0, 1, 5, 60])
def test_the_answer_fits_and_says_what_it_left_out(incidents: int, max_tokens: int) -> None:
    whole = report(incidents)

    text = fitting_json(whole, max_tokens)

    read = report_from_json(text)
    one_incident = TokenCounter().count_text(fitting_json(report(1), 500))
    assert TokenCounter().count_text(text) <= max(max_tokens, one_incident + 200)
    assert len(read.incidents) + read.omitted == incidents
    assert [each.id for each in read.incidents] == [each.id for each in whole.incidents[: len(read.incidents)]]
    assert read.not_checked == whole.not_checked
    if incidents:
        assert read.incidents[0].findings[0].evidence


def test_a_small_report_is_whole() -> None:
    assert report_from_json(fitting_json(report(1), 20_000)) == report(1)


def test_it_stays_json_however_small_the_room_is() -> None:
    assert json.loads(fitting_json(report(60), 500))["version"] == 1
