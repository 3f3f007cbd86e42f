"""Tells whether what is known of a subject explains what a question asks for: its faults, its stop, or a CronJob.

A setting that is newer than its process and an end that is over explain only some complaints.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.schedules import interval_seconds
from holmes.diagnosis.facts.stale_settings import stale_settings
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.diagnosis.rule_ids import CRON_JOB_ACTS, OUTDATED_PODS, SUSPENDED, UPDATE_ON_DELETE
from holmes.kubernetes.fields import moment, text_map
from holmes.triage.asked import refs_of
from holmes.triage.connections import identity
from holmes.triage.harm import is_about_behaviour, is_about_results, spares
from holmes.triage.past import is_past
from holmes.triage.states import is_ready, restarts, stop_of
from holmes.triage.suspicions import fits_rhythm
from holmes.triage.vocabulary import symptoms_of_text, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident, ObjectRef

_OF_STOPS: Final = frozenset({"start", "unreachable", "scaling", "rollout", "job", "crash", "ready"})
"""Symptoms that an object can have because it was stopped on purpose."""
_WHY_PAUSED: Final = expression(
    r"\b(?:why|warum|wieso|weshalb|por que|pourquoi)\b"
    r"(?:(?:(?!\b(?:while|when|although|though|since|wahrend|obwohl|mientras|aunque|pendant|alors)\b).)*\bpaus|[\W\d]*$)"
)
"""A question that asks why something is paused, not whether this is why something else happens."""
_LEAST_OF_NAME: Final = 3
_WORK: Final = frozenset({"run", "runs", "job", "jobs", "cron", "task", "all", "daily", "nightly", "hourly", "weekly"})
"""Parts of the names of CronJobs that do not tell what they make."""
_NEVER_READY: Final = frozenset({"start", "image", "scaling", "rollout"})
"""Symptoms that a pod which is ready does not have."""
_ENDED: Final = frozenset({"crash", "memory", "evicted"})
_SOON_SECONDS: Final = 180.0
_LATELY_SECONDS: Final = 1_800.0
_LEAST_CHARACTERS: Final = 4


def replaces_regularly(asked: Asked, incident: Incident, cron_job: ClusterObject) -> bool:
    """Return whether a CronJob replaced pods in its last run, and the question is about something as regular."""
    last = moment(cron_job.text("status", "lastScheduleTime"))
    if incident.findings[0].rule_id != CRON_JOB_ACTS or last is None:
        return False
    workload = asked.state.find(incident.findings[0].subject)
    created = (pod.created for pod in asked.state.pods_of(workload)) if workload is not None else ()
    replaced = any(0 <= each - last <= _SOON_SECONDS for each in created)
    return replaced and fits_rhythm(asked.question, interval_seconds(cron_job, asked.state.now))


def is_chosen(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident tells what the user chose, and the symptoms of a question can come from that."""
    question, rule = asked.question, incident.findings[0].rule_id
    culprit = asked.state.find(incident.culprit)
    if rule == SUSPENDED or (culprit is not None and stop_of(culprit)[0]):
        return not question.symptoms or bool(question.symptoms & _OF_STOPS)
    if rule == CRON_JOB_ACTS and culprit is not None:
        ran = moment(culprit.text("status", "lastScheduleTime"))
        return question.period is not None or (ran is not None and asked.state.now - ran <= _LATELY_SECONDS)
    return rule == UPDATE_ON_DELETE and (says_outdated(asked) or "rollout" in question.symptoms)


def misses_work_of(asked: Asked, stopped: ClusterObject) -> bool:
    """Return whether a complaint misses what a stopped CronJob makes by its name: "no invoices were sent", invoice-run.

    A negation alone is not enough, because the complaint can be about something else.
    """
    question = asked.question
    if stopped.kind != "CronJob" or not question.complains or not question.asks("negation"):
        return False
    parts = [part for part in re.split(r"[^a-z]+", stopped.name) if len(part) >= _LEAST_OF_NAME and part not in _WORK]
    return any(word != stopped.name and word.startswith(part) for word in question.words for part in parts)


def is_on(asked: Asked, incident: Incident, own: frozenset[ObjectRef]) -> bool:
    """Return whether pods fail because of a named node, if the question is about its pods."""
    named = (ref for each in (*incident.findings, *incident.symptoms) for ref in each.because if ref.kind == "Node")
    return "Pod" in asked.question.kinds and not own.isdisjoint(named)


def is_outdated(asked: Asked, incident: Incident) -> bool:
    """Return whether a question complains about an old state: "still shows the old one", "as before the change"."""
    return says_outdated(asked) and incident.findings[0].rule_id == OUTDATED_PODS


def _is_of_other_setting(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident is that pods are older than their settings, and the question is about none of these.

    Old values explain old content and what a setting is about, but not why something else is slow. A question that
    speaks of a ConfigMap or Secret is about settings.
    """
    if not {"ConfigMap", "Secret"}.isdisjoint(asked.question.kinds):
        return False
    pod = asked.state.find(incident.findings[0].subject) if incident.findings[0].rule_id == OUTDATED_PODS else None
    stale = stale_settings(asked.state, pod) if pod is not None else ()
    return pod is not None and not any(concerns(asked, each.ref) for each in stale)


def says_outdated(asked: Asked) -> bool:
    """Return whether a question speaks of something old."""
    return not word_list("outdated").isdisjoint(asked.question.words)


def concerns(asked: Asked, setting: ObjectRef) -> bool:
    """Return whether a complaint is about an old state, a change, or what a setting holds by its name and its keys."""
    question, each = asked.question, asked.state.find(setting)
    if question.asks("changes") or says_outdated(asked) or not question.asks("why"):
        return True
    keys = text_map(each.body, "data") if each is not None and each.kind == "ConfigMap" else {}
    held = {part for key in keys for part in re.split(r"[^a-z]+", key.lower()) if len(part) >= _LEAST_CHARACTERS}
    return setting.name in question.words or not held.isdisjoint(question.words)


def is_beside(asked: Asked, named: Named, incident: Incident) -> bool:
    """Return whether an incident of the subject cannot be the reason of what the question complains about."""
    if _is_of_other_setting(asked, incident) or _is_over(asked, named, incident):
        return True
    if is_of_siblings(asked, named, incident):
        return True
    return spares(asked.state, asked.question, incident, named.objects)


def is_of_siblings(asked: Asked, named: Named, incident: Incident) -> bool:
    """Return whether an incident leaves named pods that are ready alone: it is about other pods of their workload.

    A rule tells one of several pods with the same fault, so an incident of all pods, or of crashes, can be theirs, too.
    An alert with a pod can be about the others: a member reports that it misses another one.
    """
    pods = [each for each in named.objects if each.kind == "Pod"]
    if asked.alerted or named.objects[0] not in pods or not all(map(is_ready, pods)):
        return False
    told = refs_of(incident) | {each.object for each in incident.evidence}
    if any(each.ref in told for each in named.objects):
        return False
    workload = asked.state.workload_of(named.objects[0])
    others, own = asked.state.pods_of(workload), identity(asked.state, workload)
    crashed = symptoms_of_text(incident.title) & _ENDED and any(map(restarts, pods))
    some = incident.affected_pods < len(others) and not crashed
    never = symptoms_of_text(incident.title) & _NEVER_READY
    return not own.isdisjoint(told) and bool(never or (some and any(each.ref in told for each in others)))


def _is_over(asked: Asked, named: Named, incident: Incident) -> bool:
    """Return whether the question is about now, and the incident only about containers that have recovered.

    A behaviour of a program that runs again is none of an end that is over, unless the question is about the past.
    """
    budget = named.objects[0].kind == "PodDisruptionBudget"  # it has no state of its own
    ended = (asked.state.find(each.subject) for each in incident.findings if budget)
    works = all(each is None or is_ready(each) for each in (*named.objects, *ended))
    recovered = works and any(".lastState." in each.path for each in incident.evidence)
    if recovered and is_about_behaviour(asked.question) and not is_past(asked):
        return True
    about_now = asked.question.asks("now") and not asked.question.asks("why")
    return recovered and about_now and incident.severity != "critical"


def stoppable(asked: Asked, named: Named) -> Iterator[ClusterObject]:
    """Yield the objects that can be stopped on purpose: the named ones, and the workloads behind a Service."""
    for each in named.objects:
        yield each
        yield from workloads_behind(asked.state, each) if each.kind == "Service" else ()


def may_be_stopped(asked: Asked, each: ClusterObject) -> bool:
    """Return whether a stop explains the symptoms. A cordoned node is ready, and a suspended job is not slow.

    A paused rollout stops no pod, so it explains only why nothing is rolled out.
    """
    if is_about_results(asked.question):
        return False
    if each.boolean("spec", "paused") and is_ready(each) and asked.question.asks("why"):
        changes = asked.question.asks("changes") or says_outdated(asked) or "rollout" in asked.question.symptoms
        return changes or _WHY_PAUSED.search(asked.question.text) is not None
    symptoms = asked.question.symptoms - ({"image"} if each.kind == "Node" else {"image", "memory"})
    expected = _OF_STOPS - {"ready"} if each.kind == "Node" else _OF_STOPS
    return not symptoms or bool(symptoms & expected)


def is_scaled(asked: Asked, each: ClusterObject) -> bool:
    """Return whether an autoscaler decides the number of replicas."""
    every = (*asked.state.of("HorizontalPodAutoscaler", each.namespace), *asked.state.custom_resources)
    return any(
        one.namespace == each.namespace and one.text("spec", "scaleTargetRef", "name") == each.name for one in every
    )
