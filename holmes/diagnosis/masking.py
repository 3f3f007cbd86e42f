"""Masks secrets in a report: evidence quotes values of fields and lines of logs, and what was not checked errors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.findings import DiagnosisReport, Finding, Incident


def masked_report(report: DiagnosisReport, mask: Callable[[str], str]) -> DiagnosisReport:
    """The report with `mask` applied to everything that quotes the cluster, to equal texts once."""
    mask = cache(mask)
    return replace(
        report,
        incidents=tuple(_incident(incident, mask) for incident in report.incidents),
        not_checked=tuple(replace(gap, why=mask(gap.why)) for gap in report.not_checked),
    )


def _incident(incident: Incident, mask: Callable[[str], str]) -> Incident:
    return replace(
        incident,
        cause=mask(incident.cause),
        findings=tuple(_finding(finding, mask) for finding in incident.findings),
        symptoms=tuple(_finding(finding, mask) for finding in incident.symptoms),
        changed_before=tuple(replace(change, what=mask(change.what)) for change in incident.changed_before),
    )


def _finding(finding: Finding, mask: Callable[[str], str]) -> Finding:
    """A value is masked together with its path: the name of a field says that its value is secret."""
    evidence = tuple(
        replace(each, value=mask(f"{each.path}: {each.value}").removeprefix(f"{each.path}: "))
        for each in finding.evidence
    )
    return replace(finding, cause=mask(finding.cause), next_check=mask(finding.next_check), evidence=evidence)
