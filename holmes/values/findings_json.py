"""The JSON contract of a diagnosis, described in `docs/diagnosis.md`.

What `kubernetes_diagnose` and `holmes scan -o json` write, and `builtin/triage` and `--baseline` read back.

Empty values inside of incidents are left out when writing. Reading accepts unknown keys, so that a newer Holmes can be
read by an older one within the same version of the contract.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holmes.values.findings import (
    SEVERITIES,
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.findings import Role, Severity
    from holmes.values.json_types import JsonObject, JsonValue

CONTRACT_VERSION: Final = 1


def report_to_json(report: DiagnosisReport) -> str:
    """The report as indented JSON with keys in a fixed order; equal reports give equal text."""
    return json.dumps(report_to_document(report), indent=1, ensure_ascii=False)


def report_to_document(report: DiagnosisReport) -> dict[str, JsonValue]:
    """The report as JSON values. The lists of incidents and of what was not checked are there even when empty."""
    return {
        **_filled(
            version=CONTRACT_VERSION,
            taken_at=report.taken_at,
            namespaces=list(report.namespaces),
            resource=report.resource,
            complete=report.complete,
        ),
        "incidents": [_incident_document(incident) for incident in report.incidents],
        **_filled(omitted=report.omitted),
        "not_checked": [
            _filled(what=each.what, kinds=list(each.kinds), why=each.why, rules=list(each.rules))
            for each in report.not_checked
        ],
        "checked": [{"kind": each.kind, "total": each.total, "affected": each.affected} for each in report.checked],
        "rules_run": report.rules_run,
        "cost": {
            "list_calls": report.cost.list_calls,
            "requests": report.cost.requests,
            "logs_read": report.cost.logs_read,
            "seconds": round(report.cost.seconds, 3),
        },
    }


def report_from_json(text: str) -> DiagnosisReport:
    """Read a report back. Raises `ValueError` with one line for anything that is not a report of this version."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        message = "not a diagnosis: nested too deeply"
        raise ValueError(message) from error
    if not isinstance(document, dict) or "incidents" not in document:
        message = "not a diagnosis: a JSON object with 'incidents' is expected"
        raise ValueError(message)
    if document.get("version") != CONTRACT_VERSION:
        message = f"a diagnosis of version {document.get('version')!r}; this Holmes reads version {CONTRACT_VERSION}"
        raise ValueError(message)
    cost = _object(document, "cost")
    return DiagnosisReport(
        taken_at=_text(document, "taken_at"),
        namespaces=_texts(document, "namespaces"),
        resource=_text(document, "resource"),
        incidents=tuple(_incident(each) for each in _objects(document, "incidents")),
        omitted=_integer(document, "omitted"),
        not_checked=tuple(
            NotChecked(
                what=_text(each, "what"),
                why=_text(each, "why"),
                rules=_texts(each, "rules"),
                kinds=_texts(each, "kinds"),
            )
            for each in _objects(document, "not_checked")
        ),
        checked=tuple(
            KindCount(kind=_text(each, "kind"), total=_integer(each, "total"), affected=_integer(each, "affected"))
            for each in _objects(document, "checked")
        ),
        rules_run=_integer(document, "rules_run"),
        cost=ScanCost(
            list_calls=_integer(cost, "list_calls"),
            requests=_integer(cost, "requests"),
            logs_read=_integer(cost, "logs_read"),
            seconds=_number(cost, "seconds"),
        ),
    )


def _incident_document(incident: Incident) -> dict[str, JsonValue]:
    return _filled(
        id=incident.id,
        severity=incident.severity,
        title=incident.title,
        culprit=_ref_document(incident.culprit),
        cause=incident.cause,
        since=incident.since,
        affected_pods=incident.affected_pods,
        affected=[_ref_document(each) for each in incident.affected],
        changed_before=[
            {"object": _ref_document(each.object), "what": each.what, "at": each.at} for each in incident.changed_before
        ],
        findings=[_finding_document(each) for each in incident.findings],
        symptoms=[_finding_document(each) for each in incident.symptoms],
    )


def _finding_document(finding: Finding) -> dict[str, JsonValue]:
    return _filled(
        rule_id=finding.rule_id,
        severity=finding.severity,
        title=finding.title,
        subject=_ref_document(finding.subject),
        subjects=finding.subjects if finding.subjects > 1 else 0,
        culprit=_ref_document(finding.culprit),
        role=finding.role,
        cause=finding.cause,
        evidence=[
            {"object": _spoken(each.object), "path": each.path, "value": each.value} for each in finding.evidence
        ],
        next_check=finding.next_check,
        because=[_ref_document(each) for each in finding.because],
        since=finding.since,
    )


def _ref_document(ref: ObjectRef) -> dict[str, JsonValue]:
    return _filled(kind=ref.kind, namespace=ref.namespace, name=ref.name, group=ref.group)


def _filled(**values: JsonValue) -> dict[str, JsonValue]:
    """Without empty values: they cost tokens and say nothing. False says something."""
    return {key: value for key, value in values.items() if value or value is False}


def _incident(document: JsonObject) -> Incident:
    return Incident(
        id=_text(document, "id"),
        severity=_severity(document),
        title=_text(document, "title"),
        culprit=_ref(document, "culprit"),
        cause=_text(document, "cause"),
        since=_text(document, "since"),
        affected_pods=_integer(document, "affected_pods"),
        affected=tuple(_ref_of(each) for each in _objects(document, "affected")),
        changed_before=tuple(
            Change(object=_ref(each, "object"), what=_text(each, "what"), at=_text(each, "at"))
            for each in _objects(document, "changed_before")
        ),
        findings=tuple(_finding(each) for each in _objects(document, "findings")),
        symptoms=tuple(_finding(each) for each in _objects(document, "symptoms")),
    )


def _finding(document: JsonObject) -> Finding:
    role: Role = "symptom" if _text(document, "role") == "symptom" else "cause"
    return Finding(
        rule_id=_text(document, "rule_id"),
        severity=_severity(document),
        title=_text(document, "title"),
        subject=_ref(document, "subject"),
        subjects=_integer(document, "subjects") or 1,
        culprit=_ref(document, "culprit"),
        role=role,
        cause=_text(document, "cause"),
        evidence=tuple(
            Evidence(object=_spoken_ref(_text(each, "object")), path=_text(each, "path"), value=_text(each, "value"))
            for each in _objects(document, "evidence")
        ),
        next_check=_text(document, "next_check"),
        because=tuple(_ref_of(each) for each in _objects(document, "because")),
        since=_text(document, "since"),
    )


def _spoken(ref: ObjectRef) -> str:
    """`Deployment shop/checkout`, or `Certificate.cert-manager.io shop/web`: shorter than an object per piece."""
    return f"{ref.kind}.{ref.group} {ref.path}" if ref.group else str(ref)


def _spoken_ref(written: str) -> ObjectRef:
    """The reference that `_spoken` wrote."""
    kind, _, path = written.partition(" ")
    kind, _, group = kind.partition(".")
    namespace, _, name = path.rpartition("/")
    return ObjectRef(kind=kind, namespace=namespace, name=name, group=group)


def _ref(document: JsonObject, key: str) -> ObjectRef:
    return _ref_of(_object(document, key))


def _ref_of(document: JsonObject) -> ObjectRef:
    return ObjectRef(
        kind=_text(document, "kind"),
        namespace=_text(document, "namespace"),
        name=_text(document, "name"),
        group=_text(document, "group"),
    )


def _severity(document: JsonObject) -> Severity:
    written = _text(document, "severity")
    return next((severity for severity in SEVERITIES if severity == written), "info")


def _object(document: JsonObject, key: str) -> JsonObject:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _objects(document: JsonObject, key: str) -> tuple[JsonObject, ...]:
    found = document.get(key)
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


def _text(document: Mapping[str, JsonValue], key: str) -> str:
    found = document.get(key)
    return found if isinstance(found, str) else ""


def _texts(document: JsonObject, key: str) -> tuple[str, ...]:
    found = document.get(key)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _integer(document: JsonObject, key: str) -> int:
    found = document.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _number(document: JsonObject, key: str) -> float:
    found = document.get(key)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else 0.0
