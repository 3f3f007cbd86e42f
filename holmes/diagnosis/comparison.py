"""Compares two reports: what is new, what is still there, what is gone. Called by `holmes scan --baseline`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.core.findings import DiagnosisReport, Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Incidents by their ids. `gone` are those of the earlier report that the later one does not have."""

    new: tuple[Incident, ...]
    remaining: tuple[Incident, ...]
    gone: tuple[Incident, ...]


def compare(earlier: DiagnosisReport, later: DiagnosisReport) -> Comparison:
    """How `later` differs from `earlier`; each part in its report's order."""
    before = {incident.id for incident in earlier.incidents}
    now = {incident.id for incident in later.incidents}
    return Comparison(
        new=tuple(incident for incident in later.incidents if incident.id not in before),
        remaining=tuple(incident for incident in later.incidents if incident.id in before),
        gone=tuple(incident for incident in earlier.incidents if incident.id not in now),
    )
