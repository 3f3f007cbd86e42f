"""Judges a subject at any age.

A scan leaves out objects within the grace period, because they may still be starting. The subject of a question is
judged at once: definite evidence names the cause, and everything else means that the subject is starting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.probes import starting_until
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.unscheduled import coming_node
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from holmes.kubernetes.fields import duration, moment, text, written
from holmes.triage.connections import connections
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.values.findings import Incident, ObjectRef

_YOUNG: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Service", "Ingress",
    "PersistentVolumeClaim"})  # fmt: skip


def judged_at_once(asked: Asked) -> Asked:
    """Add the incidents of young objects that the subject needs. Incidents about objects that are being made go."""
    known = [each for each in asked.report.incidents if not _is_coming(asked.state, each)]
    if asked.subject.named and _is_young(asked):
        run = run_rules(all_rules(), asked.state.without_grace())
        own, ids = {each.ref for each in asked.subject.objects}, {each.id for each in asked.report.incidents}
        new = (each for each in incidents_of(run.findings, asked.state) if each.id not in ids)
        known += (each for each in new if _is_definite(asked.state, each, own))
    return replace(asked, report=replace(asked.report, incidents=tuple(known)))


def _is_young(asked: Asked) -> bool:
    """Return whether an object that the subject needs is within the grace period, or the subject may have changed.

    This is an object that is not ready, or a custom resource, whose conditions can be young.
    """
    for ref in connections(asked.state, asked.subject.objects):
        each = asked.state.find(ref) if ref.kind in _YOUNG or ref.group else None
        if each is not None and asked.state.age_seconds(each) < asked.state.grace_seconds:
            return True
    return any(each.group or not is_ready(each) for each in asked.subject.objects)


def _is_definite(state: ClusterState, incident: Incident, own: set[ObjectRef]) -> bool:
    """Return whether the incident names a cause, or informs about the subject itself.

    A symptom of a young object only means that it is starting, and so does a probe that fails while it may.
    """
    first = incident.findings[0]
    pod = state.find(first.subject) if first.evidence and "Probe." in first.evidence[0].path else None
    starting = pod is not None and pod.kind == "Pod" and starting_until(state, pod) > state.now
    definite = first.role == "cause" and not starting and not _is_coming(state, incident)
    return definite and (incident.severity != "info" or incident.culprit in own)


def _is_coming(state: ClusterState, incident: Incident) -> bool:
    """Return whether the culprit does not exist yet, but a custom resource was just created that will make it."""
    if state.find(incident.culprit) is not None:
        return False
    makers = (state.find(ref) for ref in producers_of(state, incident.culprit) if ref.group)
    return any(each is not None and state.age_seconds(each) < state.patience_seconds for each in makers)


def starting_words(state: ClusterState, each: ClusterObject) -> str:
    """Return what an object that is not ready is doing to start, and until when it may. Empty if it is not starting."""
    pods = [pod for pod in state.pods_of(each) if not is_ready(pod) and pod.deleted is None]
    newest = max(pods, key=lambda pod: pod.created, default=None)
    if newest is None:
        return _rollout_words(state, each)
    return _start_of(state, newest) or _rollout_words(state, each)


def _start_of(state: ClusterState, pod: ClusterObject) -> str:
    until, node = starting_until(state, pod), coming_node(state, pod)
    if until:
        return f"the probes of {pod.ref} allow {duration(until - pod.created)} for its start, until {written(until)}"
    if node is not None:
        return f"{pod.ref} waits for a new node ({node.message})"
    pulling = state.events_of(pod, "Pulling", "Pulled", "Failed", "BackOff")[-1:]
    if pulling and pulling[0].reason == "Pulling" and not any(each.running for each in containers_of(pod)):
        return f"the node has been pulling the image of {pod.ref} for {duration(state.now - pulling[0].last)}"
    if state.age_seconds(pod) < state.patience_seconds:
        return f"its newest pod is {duration(state.age_seconds(pod))} old"
    return ""


def _rollout_words(state: ClusterState, each: ClusterObject) -> str:
    """Return the deadline of a rollout that is still in progress, or an empty string."""
    progressing = each.condition("Progressing")
    deadline = each.integer("spec", "progressDeadlineSeconds") or _DEADLINE_SECONDS
    updated = moment(text(progressing, "lastUpdateTime")) or moment(text(progressing, "lastTransitionTime")) or 0.0
    if text(progressing, "reason") not in _IN_PROGRESS or updated + deadline <= state.now:
        return ""
    return f"its rollout may take until {written(updated + deadline)} (progressDeadlineSeconds {deadline})"


_IN_PROGRESS: Final = frozenset({"ReplicaSetUpdated", "NewReplicaSetCreated", "FoundNewReplicaSet"})
_DEADLINE_SECONDS: Final = 600
