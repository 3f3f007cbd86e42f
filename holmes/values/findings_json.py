"""The JSON format of a diagnosis, documented in `docs/diagnosis.md`.

`kubernetes_diagnose` and `holmes scan -o json` write this format. `builtin/triage` and `--baseline` read it. Empty
values inside incidents are not written. Unknown keys are ignored, so that older versions of Holmes can read the reports
of newer versions if the format version is the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holmes.values.codec import Codec
from holmes.values.findings import DiagnosisReport, ObjectRef
from holmes.values.fixes import fix_line

if TYPE_CHECKING:
    from holmes.values.findings import Finding, FixStep, Incident, TooYoung
    from holmes.values.json_types import JsonValue

_CONTRACT_VERSION: Final = 1


def report_to_json(report: DiagnosisReport) -> str:
    """Return the report as indented JSON with a fixed key order, so that equal reports have equal text."""
    return json.dumps(report_to_document(report), indent=1, ensure_ascii=False)


def report_to_document(report: DiagnosisReport) -> dict[str, JsonValue]:
    """Return the report as JSON values. The lists of incidents and failed checks are present even if empty."""
    return {
        **_filled(
            version=_CONTRACT_VERSION,
            taken_at=report.taken_at,
            cluster=report.cluster,
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
        **({"objects": report.objects} if report.objects is not None else {}),
        **({"too_young": _young_document(report.too_young)} if report.too_young is not None else {}),
        "rules_run": report.rules_run,
        "cost": {
            "list_calls": report.cost.list_calls,
            "requests": report.cost.requests,
            "logs_read": report.cost.logs_read,
            "seconds": round(report.cost.seconds, 3),
        },
    }


def report_from_json(text: str) -> DiagnosisReport:
    """Read a report. Raises `ValueError` with a one-line message if `text` is not a report of this version."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        message = "not a diagnosis: nested too deeply"
        raise ValueError(message) from error
    if not isinstance(document, dict) or "incidents" not in document:
        message = "not a diagnosis; expected a JSON object with 'incidents'"
        raise ValueError(message)
    if document.get("version") != _CONTRACT_VERSION:
        message = f"the diagnosis has version {document.get('version')!r}; expected version {_CONTRACT_VERSION}"
        raise ValueError(message)
    return _REPORTS.decode(DiagnosisReport, document)


def _young_document(young: TooYoung) -> dict[str, JsonValue]:
    return {
        "total": young.total,
        "grace_seconds": young.grace_seconds,
        "objects": [_ref_document(each) for each in young.objects],
    }


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
        fix=[_fix_document(each) for each in incident.fix],
        findings=[_finding_document(each) for each in incident.findings],
        symptoms=[_finding_document(each) for each in incident.symptoms],
    )


def _fix_document(step: FixStep) -> dict[str, JsonValue]:
    """Include the step as a line of a shell script, which readers of this format ignore."""
    return _filled(
        kind=step.kind,
        object=_spoken(step.object),
        action=step.action,
        path=step.path,
        old=step.old,
        check=step.check,
        line=fix_line(step),
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
    """Remove empty values, because they cost tokens and have no meaning. False is not removed."""
    return {key: value for key, value in values.items() if value or value is False}


def _spoken(ref: ObjectRef) -> str:
    """Format a reference as text, for example `Certificate.cert-manager.io shop/web`.

    This text is shorter than a JSON object.
    """
    return f"{ref.kind}.{ref.group} {ref.path}" if ref.group else str(ref)


def _spoken_ref(written: str) -> ObjectRef:
    """Parse a reference that `_spoken` wrote."""
    kind, _, path = written.partition(" ")
    kind, _, group = kind.partition(".")
    namespace, _, name = path.rpartition("/")
    return ObjectRef(kind=kind, namespace=namespace, name=name, group=group)


def _read_ref(raw: object) -> ObjectRef:
    return _spoken_ref(raw) if isinstance(raw, str) else _REFS.decode(ObjectRef, raw)


_REFS: Final = Codec(mismatch="empty")
_REPORTS: Final = Codec(converters={ObjectRef: _read_ref}, mismatch="empty")
