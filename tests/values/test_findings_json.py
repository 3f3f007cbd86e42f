"""The JSON contract of a diagnosis: what is written is read back, and nothing else is taken for a diagnosis."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.values.findings import (
    Change,
    DiagnosisReport,
    Evidence,
    Finding,
    Incident,
    KindCount,
    NotChecked,
    ObjectRef,
    ScanCost,
)
from holmes.values.findings_json import report_from_json, report_to_document, report_to_json

WORDS = st.text(max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
KINDS = st.sampled_from(["Pod", "Deployment", "ConfigMap", "Certificate"])
REFS = st.builds(
    ObjectRef,
    kind=KINDS,
    name=NAMES,
    namespace=st.one_of(st.just(""), NAMES),
    group=st.sampled_from(["", "cert.example"]),
)
SEVERITIES = st.sampled_from(["critical", "warning", "info"])
FINDINGS = st.builds(
    Finding,
    rule_id=NAMES,
    severity=SEVERITIES,
    title=WORDS,
    subject=REFS,
    culprit=REFS,
    cause=WORDS,
    evidence=st.lists(st.builds(Evidence, object=REFS, path=WORDS, value=WORDS), max_size=2).map(tuple),
    next_check=WORDS,
    role=st.sampled_from(["cause", "symptom"]),
    because=st.lists(REFS, max_size=2).map(tuple),
    since=WORDS,
    subjects=st.integers(1, 50),
)
INCIDENTS = st.builds(
    Incident,
    id=NAMES,
    severity=SEVERITIES,
    title=WORDS,
    culprit=REFS,
    cause=WORDS,
    findings=st.lists(FINDINGS, max_size=2).map(tuple),
    symptoms=st.lists(FINDINGS, max_size=2).map(tuple),
    affected=st.lists(REFS, max_size=2).map(tuple),
    affected_pods=st.integers(0, 9),
    since=WORDS,
    changed_before=st.lists(st.builds(Change, object=REFS, what=WORDS, at=WORDS), max_size=2).map(tuple),
)
REPORTS = st.builds(
    DiagnosisReport,
    taken_at=WORDS,
    namespaces=st.lists(NAMES, max_size=2).map(tuple),
    incidents=st.lists(INCIDENTS, max_size=3).map(tuple),
    checked=st.lists(
        st.builds(KindCount, kind=KINDS, total=st.integers(0, 9), affected=st.integers(0, 9)), max_size=2
    ).map(tuple),
    not_checked=st.lists(
        st.builds(
            NotChecked,
            what=WORDS,
            why=WORDS,
            rules=st.lists(NAMES, max_size=2).map(tuple),
            kinds=st.lists(NAMES, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    rules_run=st.integers(0, 200),
    cost=st.builds(
        ScanCost,
        list_calls=st.integers(0, 99),
        requests=st.integers(0, 99),
        logs_read=st.integers(0, 20),
        seconds=st.integers(0, 9).map(float),
    ),
    resource=WORDS,
    omitted=st.integers(0, 5),
)


@settings(max_examples=40)
@given(REPORTS)
def test_what_is_written_is_read_back(report: DiagnosisReport) -> None:
    assert report_from_json(report_to_json(report)) == report


@settings(max_examples=40)
@given(REPORTS)
def test_the_lists_at_the_top_and_completeness_are_always_there(report: DiagnosisReport) -> None:
    written = report_to_document(report)
    assert isinstance(written["incidents"], list)
    assert isinstance(written["not_checked"], list)
    assert written["complete"] is (not report.not_checked)


def test_unknown_keys_of_a_newer_holmes_are_left_alone() -> None:
    report = report_from_json('{"version": 1, "incidents": [{"id": "a", "novelty": 1}], "novelty": 2}')
    assert [incident.id for incident in report.incidents] == ["a"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "not a diagnosis"),
        ('{"kind": "List"}', "not a diagnosis"),
        ('{"version": 2, "incidents": []}', "version 2; expected version 1"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_anything_else_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        report_from_json(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("broken", [None, 3, "x", [1], {"findings": 5, "culprit": [], "affected_pods": "many"}])
def test_values_of_the_wrong_kind_are_empty_and_never_an_error(broken: object) -> None:
    report = report_from_json(json.dumps({"version": 1, "incidents": [broken], "cost": broken, "checked": broken}))
    assert all(incident.findings == () for incident in report.incidents)
