"""Judges a subject at any age.

A scan leaves out objects within the grace period, because they may still be starting. The subject of a question is
judged at once: definite evidence names the cause, and everything else means that the subject is starting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from holmes.triage.connections import connections
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.values.findings import Incident

_YOUNG: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Service", "Ingress",
    "PersistentVolumeClaim"})  # fmt: skip


def judged_at_once(asked: Asked) -> Asked:
    """Add the incidents of young objects that the subject needs. Returns `asked` unchanged if all of them are old."""
    if not asked.subject.named or not _is_young(asked):
        return asked
    known = {incident.id for incident in asked.report.incidents}
    run = run_rules(all_rules(), asked.state.without_grace())
    found = [each for each in incidents_of(run.findings, asked.state) if each.id not in known and _is_definite(each)]
    return replace(asked, report=replace(asked.report, incidents=(*asked.report.incidents, *found)))


def _is_young(asked: Asked) -> bool:
    """Return whether an object that the subject needs is within the grace period, or not ready."""
    for ref in connections(asked.state, asked.subject.objects):
        each = asked.state.find(ref) if ref.kind in _YOUNG else None
        if each is not None and asked.state.age_seconds(each) < asked.state.grace_seconds:
            return True
    return any(not is_ready(each) for each in asked.subject.objects)


def _is_definite(incident: Incident) -> bool:
    """Return whether the incident names a cause. A symptom of a young object only means that it is starting."""
    return incident.severity != "info" and incident.findings[0].role == "cause"
