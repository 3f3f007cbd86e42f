"""Answers why a subject that works is slow: its autoscaler adds no pods, because it cannot read its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import autoscalers_of
from holmes.diagnosis.rule_ids import AUTOSCALING
from holmes.kubernetes.fields import text
from holmes.triage.blame import with_cause
from holmes.triage.log_troubles import workloads_of
from holmes.triage.past import was_there
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook

_OF_LOAD: Final = frozenset({"slow", "scaling"})


def unscaled(asked: Asked, named: Named) -> FirstLook | None:
    """Return the incident that blinds the autoscaler of a slow subject, if it could still add pods. Otherwise None.

    Only the last resort: logs and other incidents that tell more about the subject decide before it.
    """
    question = asked.question
    if "slow" not in question.symptoms or question.symptoms - _OF_LOAD or not question.wants_cause:
        return None
    for workload in workloads_of(asked.state, named.objects):
        for scaler in autoscalers_of(asked.state, workload) if is_ready(workload) else ():
            found = _blinding(asked, scaler) if _could_add(scaler) else None
            if found is not None:
                path = tuple(dict.fromkeys((workload.ref, scaler.ref, found.culprit)))
                return with_cause(asked, found, named, path)
    return None


def _could_add(scaler: ClusterObject) -> bool:
    """Return whether an autoscaler is blind while it has fewer pods than it may create."""
    blind = text(scaler.condition("ScalingActive"), "status") == "False"
    return blind and 0 < scaler.integer("status", "currentReplicas") < scaler.integer("spec", "maxReplicas")


def _blinding(asked: Asked, scaler: ClusterObject) -> Incident | None:
    return next(
        (
            each
            for each in asked.report.incidents
            if each.severity != "info" and was_there(asked, each)
            if any(
                finding.rule_id in AUTOSCALING and finding.subject == scaler.ref
                for finding in (*each.findings, *each.symptoms)
            )
        ),
        None,
    )
