"""Formats a scan report as SARIF 2.1.0, which code scanning tools and CI systems display."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holmes import __version__
from holmes.cli.render.scan_notes import notes_of
from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.reports import compare
from holmes.values.fixes import fix_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.diagnosis.rule import Rule
    from holmes.values.findings import DiagnosisReport, Incident, Severity
    from holmes.values.json_types import JsonObject

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final[Mapping[Severity, str]] = {"critical": "error", "warning": "warning", "info": "note"}


def sarif_report(report: DiagnosisReport, baseline: DiagnosisReport | None) -> str:
    """Return the report as SARIF. Incidents are results, and failed checks are notifications.

    With a baseline, each result states whether it is new. An incident of the baseline that is resolved is absent.
    """
    compared = compare(baseline, report) if baseline is not None else None
    new = {each.id for each in compared.new} if compared is not None else set()
    states = {each.id: "new" if each.id in new else "unchanged" for each in report.incidents} if compared else {}
    states |= {each.id: "absent" for each in compared.gone} if compared is not None else {}
    shown = (*report.incidents, *(compared.gone if compared is not None else ()))
    used = {each.rule_id for each in shown}
    driver: JsonObject = {
        "name": "holmes",
        "semanticVersion": __version__,
        "rules": [_descriptor(rule) for rule in all_rules() if rule.id in used],
    }
    run: JsonObject = {
        "tool": {"driver": driver},
        "results": [_result(each, states) for each in shown],
        "invocations": [_invocation(report)],
        **({"properties": {"cluster": report.cluster}} if report.cluster else {}),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _descriptor(rule: Rule) -> JsonObject:
    row = rule.row
    return {
        "id": row.id,
        "shortDescription": {"text": row.title},
        "fullDescription": {"text": row.explanation},
        "defaultConfiguration": {"level": _LEVELS[row.severity]},
    }


def _result(incident: Incident, states: Mapping[str, str]) -> JsonObject:
    culprit = incident.culprit
    place: JsonObject = {"name": culprit.name, "fullyQualifiedName": str(culprit), "kind": "resource"}
    more: JsonObject = {
        "since": incident.since,
        "evidence": [f"{each.object} {each.path} = {each.value}" for each in incident.evidence],
        "affected": [str(each) for each in incident.affected],
        "affectedPods": incident.affected_pods,
        "fix": list(fix_lines(incident.fix)),
        "nextChecks": list(incident.next_checks),
    }
    return {
        "ruleId": incident.rule_id,
        "level": _LEVELS[incident.severity],
        "message": {"text": incident.cause or incident.title},
        "locations": [{"logicalLocations": [place]}],
        "partialFingerprints": {"incident": incident.id},
        "properties": {key: value for key, value in more.items() if value},
        **({"baselineState": states[incident.id]} if incident.id in states else {}),
    }


def _invocation(report: DiagnosisReport) -> JsonObject:
    return {
        "executionSuccessful": True,
        "endTimeUtc": report.taken_at,
        "toolExecutionNotifications": [
            *({"level": "note", "message": {"text": note}} for note in notes_of(report)),
            *(
                {"level": "warning", "message": {"text": f"not checked: {each.what}: {each.why}"}}
                for each in report.not_checked
            ),
        ],
    }
