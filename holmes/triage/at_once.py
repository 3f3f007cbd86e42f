"""Judges a subject at any age.

A scan leaves out objects within the grace period, because they may still be starting. The subject of a question is
judged at once: definite evidence names the cause, and everything else means that the subject is starting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.facts.probes import STARTING_GRACES
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.starts import are_starting, is_not_ready_yet, rollout_ends, start_of, unanswered_probe
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from holmes.kubernetes.fields import duration, text, written
from holmes.kubernetes.kinds import SCALED
from holmes.triage.connections import connections
from holmes.triage.states import is_ready

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.values.findings import Incident, ObjectRef

_MOST_STARTING: Final = 2
_YOUNG: Final = frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Service", "Ingress",
    "PersistentVolumeClaim"})  # fmt: skip


def judged_at_once(asked: Asked) -> Asked:
    """Add the incidents of young objects that the subject needs. Incidents about objects that are being made go.

    A symptom goes, too, if what young objects show explains it.
    """
    known = [each for each in asked.report.incidents if not _may_end_by_itself(asked.state, each)]
    if _is_young(asked):
        run = run_rules(all_rules(), asked.state.without_grace())
        own, ids = {each.ref for each in asked.subject.objects}, {each.id for each in asked.report.incidents}
        found = incidents_of(run.findings, asked.state)
        explained = _explained([each for each in known if each.findings[0].role == "symptom"], found, asked.state)
        new = {each.id: each for each in explained.values()}
        new |= {each.id: each for each in found if each.id not in ids and _is_definite(asked.state, each, own)}
        known = [each for each in known if each.id not in explained and each.id not in new] + [*new.values()]
    if any(are_starting(asked.state, each) for each in asked.subject.objects):
        known = [each for each in known if each.severity != "info"]  # what is only odd does not explain a start
    return replace(asked, report=replace(asked.report, incidents=tuple(known)))


def _explained(symptoms: Sequence[Incident], found: Sequence[Incident], state: ClusterState) -> dict[str, Incident]:
    """Return, by the id of a symptom, the incident of `found` with a cause that explains it."""
    causes = {
        (symptom.rule_id, symptom.subject): each
        for each in found
        if each.findings[0].role == "cause" and not _may_end_by_itself(state, each)
        for symptom in each.symptoms
    }
    keys = {each.id: (each.rule_id, each.findings[0].subject) for each in symptoms}
    return {id_: causes[key] for id_, key in keys.items() if key in causes}


def _is_young(asked: Asked) -> bool:
    """Return whether an object that the subject needs is within the grace period, or the subject may have changed.

    This is an object that is not ready, or a custom resource, whose conditions can be young. If the subject is a
    namespace, it needs its workloads, Services and claims.
    """
    if not asked.subject.named:
        return any(asked.state.age_seconds(each) < asked.state.grace_seconds for each in _of_namespaces(asked))
    for ref in connections(asked.state, asked.subject.objects):
        each = asked.state.find(ref) if ref.kind in _YOUNG or ref.group else None
        if each is not None and asked.state.age_seconds(each) < asked.state.grace_seconds:
            return True
    return any(each.group or not is_ready(each) for each in asked.subject.objects)


def _of_namespaces(asked: Asked) -> Iterator[ClusterObject]:
    """Yield the objects of the namespaces of a question that can be young."""
    for kind in sorted(_YOUNG):
        for namespace in asked.subject.namespaces:
            yield from asked.state.of(kind, namespace)


def _is_definite(state: ClusterState, incident: Incident, own: set[ObjectRef]) -> bool:
    """Return whether the incident names a cause, or informs about the subject itself.

    A symptom of a young object only means that it is starting, and so does a probe that fails while it may.
    """
    definite = incident.findings[0].role == "cause" and not _may_end_by_itself(state, incident)
    return definite and (incident.severity != "info" or incident.culprit in own)


def _may_end_by_itself(state: ClusterState, incident: Incident) -> bool:
    """Return whether the incident only tells that something is starting, or that a new controller has work to do."""
    return _is_starting(state, incident) or _is_coming(state, incident) or _is_joining(state, incident.culprit)


def _is_starting(state: ClusterState, incident: Incident) -> bool:
    """Return whether the cause is a probe that fails while it may, and nothing else tells why.

    A line of a log, or another object as the culprit, tells why.
    """
    first = incident.findings[0]
    pod = state.find(first.subject) if first.evidence and "Probe." in first.evidence[0].path else None
    if pod is None or pod.kind != "Pod":
        return False
    if start_of(state, pod) is not None:
        return True
    own = incident.culprit in (pod.ref, state.workload_of(pod).ref)
    told = any(each.path.startswith("log ") for each in first.evidence)
    young = state.age_seconds(pod) < STARTING_GRACES * state.patience_seconds
    return own and young and not told and is_not_ready_yet(state, pod)


def _is_coming(state: ClusterState, incident: Incident) -> bool:
    """Return whether the culprit does not exist yet, but a custom resource was just created that will make it."""
    if state.find(incident.culprit) is not None:
        return False
    makers = (state.find(ref) for ref in producers_of(state, incident.culprit) if ref.group)
    return any(each is not None and state.age_seconds(each) < state.patience_seconds for each in makers)


def _is_joining(state: ClusterState, ref: ObjectRef) -> bool:
    """Return whether a node has just joined the cluster, so that its network plugin may still be starting."""
    node = state.find(ref) if ref.kind == "Node" else None
    young = node is not None and state.age_seconds(node) < state.patience_seconds
    return young and node is not None and text(node.condition("Ready"), "status") == "False"


def starting_words(state: ClusterState, each: ClusterObject) -> str:
    """Return what an object that is not ready is doing to start, and until when it may. Empty if it is not starting."""
    if _is_joining(state, each.ref):
        return f"it joined the cluster {duration(state.age_seconds(each))} ago"
    pods = [pod for pod in state.pods_of(each) if not is_ready(pod) and pod.deleted is None]
    newest = max(pods, key=lambda pod: pod.created, default=None)
    start = start_of(state, newest) if newest is not None else None
    rollout = _rollout_words(state, state.workload_of(newest) if newest is not None else each)
    if start is not None:
        return start.words if start.until or not rollout else f"{start.words}, and {rollout}"
    refusal = unanswered_probe(state, newest) if newest is not None and rollout else ""
    if refusal:
        return f"{rollout}, and so far its probe fails ({refusal})"
    if rollout or newest is None or state.age_seconds(newest) >= state.patience_seconds:
        return rollout
    return f"its newest pod is {duration(state.age_seconds(newest))} old"


def starting_in_scope(asked: Asked) -> str:
    """Return a sentence with what is starting in the namespaces of a question, or an empty string."""
    workloads = (each for kind in SCALED for space in asked.subject.namespaces for each in asked.state.of(kind, space))
    words = {each.ref: starting_words(asked.state, each) for each in workloads if not is_ready(each)}
    told = [f"{ref}: {each}" for ref, each in words.items() if each]
    more = f", and {len(told) - _MOST_STARTING} more" if len(told) > _MOST_STARTING else ""
    return f"Still starting: {'; '.join(told[:_MOST_STARTING])}{more}." if told else ""


def _rollout_words(state: ClusterState, workload: ClusterObject) -> str:
    """Return the deadline of a rollout that is still in progress, or an empty string."""
    until, deadline = rollout_ends(state, workload)
    return f"its rollout may take until {written(until)} (progressDeadlineSeconds {deadline})" if until else ""
