"""Compares two reports: what is new, what is gone, what nobody looked at. Called by `holmes scan --baseline`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.values.findings import DiagnosisReport, Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Incidents by their ids.

    `gone` are those of the earlier report that the later one does not have although it looked; `unknown` those where it
    did not look.
    """

    new: tuple[Incident, ...]
    gone: tuple[Incident, ...]
    unknown: tuple[Incident, ...]


def compare(earlier: DiagnosisReport, later: DiagnosisReport, *, narrowed: bool = False) -> Comparison:
    """How `later` differs from `earlier`; each part in its report's order.

    `narrowed` says that the later report was asked for some rules, kinds or objects only.
    """
    missing = [incident for incident in earlier.incidents if incident.id not in {each.id for each in later.incidents}]
    before = {incident.id for incident in earlier.incidents}
    return Comparison(
        new=tuple(incident for incident in later.incidents if incident.id not in before),
        gone=tuple(incident for incident in missing if not narrowed and _was_looked_at(incident, later)),
        unknown=tuple(incident for incident in missing if narrowed or not _was_looked_at(incident, later)),
    )


def _was_looked_at(incident: Incident, report: DiagnosisReport) -> bool:
    """Whether the report would have the incident if it were still there."""
    namespace = incident.culprit.namespace
    if report.namespaces and namespace and namespace not in report.namespaces:
        return False
    return not any(incident.rule_id in each.rules for each in report.not_checked)
