"""Answers why a subject that works is slow: its autoscaler adds no pods for its load, because it reads no metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import autoscalers_of
from holmes.diagnosis.rule_ids import AUTOSCALING
from holmes.kubernetes.fields import text
from holmes.triage.blame import with_cause
from holmes.triage.log_troubles import HOST, troubles_of, workloads_of
from holmes.triage.past import was_there
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook

_OF_LOAD: Final = frozenset({"slow", "scaling"})
_LOADED: Final[LineKind] = "queue full"
"""The kind of lines with which a workload tells that it has more to do than it can. A slow query or a used up pool of
connections tells more of the server behind it, so that more pods need not help.
"""


def unscaled(asked: Asked, named: Named) -> FirstLook | None:
    """Return the incident that blinds the autoscaler of a slow subject, if it could still add pods. Otherwise None.

    More pods help only against load, so that the subject's own log must tell of it and of nothing else.
    """
    question = asked.question
    if "slow" not in question.symptoms or question.symptoms - _OF_LOAD or not question.wants_cause:
        return None
    for workload in workloads_of(asked.state, named.objects):
        loaded = is_ready(workload) and _is_loaded(asked, workload)
        for scaler in autoscalers_of(asked.state, workload) if loaded else ():
            found = _blinding(asked, scaler) if _could_add(scaler) else None
            if found is not None:
                path = tuple(dict.fromkeys((workload.ref, scaler.ref, found.culprit)))
                return with_cause(asked, found, named, path)
    return None


def lacks_load(asked: Asked, named: Named, incident: Incident) -> bool:
    """Return whether an incident only keeps an autoscaler from adding pods, and no load of a slow subject is proven."""
    if asked.question.symptoms != {"slow"} or incident.rule_id not in AUTOSCALING:
        return False
    workloads = [each for each in workloads_of(asked.state, named.objects) if is_ready(each)]
    return bool(workloads) and not any(_is_loaded(asked, each) for each in workloads)


def _is_loaded(asked: Asked, workload: ClusterObject) -> bool:
    """Return whether the log of a workload tells now of its own load."""
    told = [each.group for each in troubles_of(asked.state, workload) if each.group.is_evidence(asked.state.now)]
    return bool(told) and all(each.kind == _LOADED and HOST.search(each.record) is None for each in told)


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
