"""Tells which incidents leave the pods that serve unharmed, so that they do not explain how these behave.

A rollout whose new pods never start does not make the old pods slow, and a budget for evictions changes no result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.references import lacks_only_key
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.diagnosis.rule_ids import AUTOSCALING, UNHANDLED_INGRESS
from holmes.kubernetes.fields import integer
from holmes.kubernetes.kinds import SCALED
from holmes.triage.states import is_ready
from holmes.triage.vocabulary import symptoms_of_text, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.diagnosis.facts.edges import Edge
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.question import Question
    from holmes.values.findings import Incident, ObjectRef

_TRACER: Final = expression(
    r"(?:(?:OTEL|JAEGER|ZIPKIN|STATSD|DD|ELASTIC_APM|TRACING|TELEMETRY)_[A-Z0-9_]*|SENTRY_DSN|[A-Z0-9_]*_OTLP_[A-Z0-9_]*)="
)
"""The variable of a tracer. The work of a program does not depend on it."""
_ANY_TROUBLE: Final = expression(
    r"\b(?:what|something|anything|nothing|everything)(?:'?s| is| was| has| went| goes| gone| going| could be)* wrong\b"
    r"|\bwrong with\b|\b(?:goes|going|go|gone|went) wrong\b|\bfalsch (?:mit|an|bei|gelaufen)\b"
    r"|\b(?:was|etwas|irgendwas) (?:ist |ist da )?falsch\b"
)
_BUDGET: Final = "PodDisruptionBudget"
_OF_BEHAVIOUR: Final = frozenset({"slow", "unreachable"})
_PER: Final = word_list("per")
_TIMES: Final = word_list("times")
_UNITS: Final = word_list("rate units")
_NEVER_STARTED: Final = frozenset({"image", "start"})
_ENDED: Final = frozenset({"crash", "memory", "evicted"})
_OWN: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "Pod", "ConfigMap", "Secret"})
_SETTINGS: Final = frozenset({"ConfigMap", "Secret"})
_WITH_PODS: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "Pod"})


def is_about_results(question: Question) -> bool:
    """Return whether a question complains about wrong or lost results, which no state of a pod explains.

    "What is wrong with web" asks for any trouble.
    """
    words = words_of(_ANY_TROUBLE.sub(" ", question.text))
    return not question.symptoms and not word_list("wrong results").isdisjoint(words)


def is_about_behaviour(question: Question) -> bool:
    """Return whether a question asks for the reason of a behaviour without a common symptom: "why is tax rounded".

    "Investigate web" and "what happened to web" have no word for a behaviour beside the name.
    """
    known = {at for each in question.found for at in range(each.first, each.last + 1)}
    rest = {at for at, word in enumerate(question.words) if at not in known and not vocabulary().is_ordinary(word)}
    results = is_about_results(question)
    special = question.asks("why") and not question.symptoms and not question.states
    return special and (results or (len(rest) > 1 and not question.asks("trouble")))


def spares(state: ClusterState, question: Question, incident: Incident, subjects: Sequence[ClusterObject]) -> bool:
    """Return whether an incident of a subject cannot explain the behaviour that the question complains about."""
    never_answers = incident.rule_id == UNHANDLED_INGRESS  # an Ingress without its class
    beside = incident.culprit.kind == _BUDGET and any(each.kind != _BUDGET for each in subjects)
    if (never_answers and _is_about_some(question)) or (beside and _only_judges(question)):
        return True
    if only_observes(state, question, incident, subjects):
        return True
    if _is_of_capacity(incident) and _only_judges(question) and all(map(is_ready, subjects)):
        return any(each.kind != "HorizontalPodAutoscaler" for each in subjects)
    results = is_about_results(question)
    if not (results or question.symptoms & _OF_BEHAVIOUR) or question.symptoms - _OF_BEHAVIOUR:
        return False
    scales = incident.culprit.kind == "HorizontalPodAutoscaler" or incident.rule_id in AUTOSCALING
    if incident.culprit.kind == _BUDGET or (results and scales):
        return True
    return leaves_serving(state, incident, [each.ref for each in subjects])


def only_observes(
    state: ClusterState, question: Question, incident: Incident, subjects: Sequence[ClusterObject]
) -> bool:
    """Return whether what is missing only receives the traces, metrics or reports of subjects that work without it."""
    asked = question.symptoms.isdisjoint(_OF_BEHAVIOUR) and _is_about_telemetry(question)
    if asked or not all(map(is_ready, subjects)):
        return False
    proofs = (each.object for finding in incident.findings for each in finding.evidence)
    servers = {each for each in (incident.culprit, *proofs) if each.kind == "Service"}
    own = {workload.ref for each in subjects for workload in _users(state, each)}
    uses = [each for ref in servers for each in edges(state).get(ref, ()) if each.consumer.ref in own]
    return bool(uses) and all(_is_of_tracer(state, each) for each in uses)


def _is_about_telemetry(question: Question) -> bool:
    """Return whether a question is about traces or metrics. "payments fails, its log is full of otel lines" is not."""
    places = [at for at, word in enumerate(question.words) if word in word_list("telemetry")]
    asking = [each.first for each in question.found]
    return any(at in question.clause(0) or any(one in question.clause(at) for one in asking) for at in places)


def _users(state: ClusterState, each: ClusterObject) -> Iterable[ClusterObject]:
    return workloads_behind(state, each) if each.kind == "Service" else (state.workload_of(each),)


def _is_of_tracer(state: ClusterState, use: Edge) -> bool:
    found = (each.text for each in settings_of(state, use.consumer) if use.named in (each.evidence, *each.sources))
    return any(_TRACER.match(text) for text in found)


def harms_only_others(
    state: ClusterState, question: Question, incident: Incident, subjects: Sequence[ClusterObject]
) -> bool:
    """Return whether settings that a subject shares with others harm only these: it runs, and has what it reads.

    A missing key harms the workload that reads it. A Secret that exists serves, whether or not its source does, unless
    its content can be what a complaint is about. A quota refuses only further pods.
    """
    if not all(map(is_ready, subjects)):
        return False
    if incident.culprit.kind == "ResourceQuota":
        return True
    source = state.find(incident.culprit) if incident.culprit.kind == "ExternalSecret" else None
    name = (source.text("spec", "target", "name") or source.name) if source is not None else ""
    kept = name and state.get("Secret", incident.culprit.namespace, name) is not None
    return lacks_key(incident) or bool(kept and not question.asks("why") and not question.symptoms)


def lacks_key(incident: Incident) -> bool:
    """Return whether a ConfigMap or Secret only lacks a key, which harms only the workload that reads it."""
    return incident.culprit.kind in _SETTINGS and lacks_only_key(incident.findings[0])


def _is_about_some(question: Question) -> bool:
    """Return whether only some requests have the symptom: "sometimes", "2 an hour", but not "since an hour"."""
    words = question.words
    rates = (at for at, (one, other) in enumerate(pairwise(words)) if at and one in _PER and other in _UNITS)
    rate = any(words[at - 1].isdigit() or words[at - 1] in _TIMES for at in rates)
    return rate or not word_list("sometimes").isdisjoint(question.words)


def _is_of_capacity(incident: Incident) -> bool:
    """Return whether a workload could only get no more pods: what it has serves."""
    return incident.culprit.kind == "HorizontalPodAutoscaler" and incident.severity != "critical"


def _only_judges(question: Question) -> bool:
    """Return whether a question only asks if something is well, and complains about nothing."""
    return question.asks("health") and not question.asks("why", "trouble") and not question.symptoms & _OF_BEHAVIOUR


def leaves_serving(state: ClusterState, incident: Incident, refs: Sequence[ObjectRef]) -> bool:
    """Return whether an incident is only about pods that never started, and all wanted pods of the workloads serve."""
    found = symptoms_of_text(f"{incident.title} {incident.cause}")
    if not found & _NEVER_STARTED or found & _ENDED or incident.culprit.kind not in _OWN:
        return False
    workloads = [workload for ref in refs for workload in _scaled(state, ref)]
    subjects = [state.find(each.subject) for each in incident.findings]
    about = {state.workload_of(each).ref for each in subjects if each is not None and each.kind in _WITH_PODS}
    return bool(about) and about <= {each.ref for each in workloads} and all(_serves(state, each) for each in workloads)


def _scaled(state: ClusterState, ref: ObjectRef) -> list[ClusterObject]:
    each = state.find(ref)
    if each is None or each.kind in SCALED:
        return [] if each is None else [each]
    return [*workloads_behind(state, each)] if each.kind == "Service" else []


def _serves(state: ClusterState, workload: ClusterObject) -> bool:
    """Return whether a workload has as many ready pods as it wants, whatever else its pods do."""
    pods = state.pods_of(workload)
    if pods and not any(map(is_ready, pods)):
        return False
    wanted = workload.at("spec", "replicas")
    ready = integer(workload.body, "status", "readyReplicas")
    return is_ready(workload) or (isinstance(wanted, int) and 0 < wanted <= ready)
