"""Answers about the past from the events of pods that no longer exist.

Their events name the workload only by the name of the pod. An event is a cause if the pod never started after it; what
only tells that something failed is quoted, and no cause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import SAYS_NOTHING
from holmes.kubernetes.fields import written
from holmes.triage.asked import look_about, one_sentence
from holmes.triage.past import NOW_SECONDS, is_past
from holmes.triage.vocabulary import word_list
from holmes.values.pod_names import cron_job_of, is_pod_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.first_look import FirstLook

_MAKERS: Final = ("Deployment", "ReplicaSet", "DaemonSet", "Job", "CronJob", "StatefulSet")
"""Kinds that make pods, or Jobs whose names tell where they come from."""
_PREVENTS: Final = frozenset({
    "Failed", "FailedMount", "FailedAttachVolume", "FailedScheduling", "FailedCreatePodSandBox", "InspectFailed",
})  # fmt: skip
"""Events that tell why a pod does not start."""
_ENDS: Final = frozenset({"Evicted", "Preempted", "TaintManagerEviction", "DeadlineExceeded"})
_TELLS: Final = frozenset({"BackOff", "Unhealthy", "BackoffLimitExceeded"})
"""Events that tell that a pod failed, but not why."""
_FORMERLY: Final = word_list("formerly")
_STARTED: Final = "Started"
_TOLERANCE_SECONDS: Final = 300.0


def told_by_gone_pods(asked: Asked, named: Named) -> FirstLook | None:
    """Return what the events of the subject's vanished pods tell about the time in the question, or None."""
    if not asked.question.wants_cause or not (_asks_back(asked) or named.match == "gone"):
        return None
    found = [(each, event) for each in named.objects for event in _events_of_gone(asked.state, each)]
    if named.match == "gone":
        found = [(each, event) for each, event in found if event.name == named.name]
    found = [(each, event) for each, event in found if _is_then(asked, event)]
    decisive = [(each, event) for each, event in found if _is_decisive(event, found)]
    reasons = {event.reason for _, event in decisive}
    if len(reasons) == 1:
        workload, event = max(decisive, key=lambda pair: (pair[1].count, pair[1].last))
        summary = f"{_told(event)} {event.kind} {event.name} of {workload.ref} no longer exists."
        look = look_about(asked, named, "cause_found", summary)
        proof = f"{event.kind} {event.namespace}/{event.name}, event {event.reason} (x{event.count}): {event.message}"
        since = written(event.first)
        return replace(look, severity="warning", culprit=str(workload.ref), evidence=(proof,), since=since)
    told = decisive or [(each, event) for each, event in found if event.reason in _TELLS]
    if not told:
        return None
    quoted = {event.reason: _told(event) for _, event in told}
    words = " ".join(quoted[reason] for reason in sorted(quoted))
    text = f"The cause cannot be determined. Events of pods that no longer exist tell: {words}"
    return look_about(asked, named, "inconclusive", text)


def _told(event: ClusterEvent) -> str:
    span = written(event.first)
    span = f"From {span} to {written(event.last)}" if event.last - event.first >= 1 else f"At {span}"
    return f"{span}, {event.reason} of {event.kind} {event.namespace}/{event.name}: {one_sentence(event.message)}"


def _events_of_gone(state: ClusterState, workload: ClusterObject) -> Iterator[ClusterEvent]:
    """Yield the events of pods and Jobs that do not exist and whose names only this workload can have given."""
    if workload.kind not in _MAKERS:
        return
    others = [each for kind in _MAKERS for each in state.of(kind, workload.namespace) if each.owner is None]
    longer = [each for each in others if each.name.startswith(f"{workload.name}-") and each.name != workload.name]
    known = {each.uid for kind in ("Pod", "Job") for each in state.of(kind, workload.namespace)}
    for event in state.events:
        gone = event.kind in ("Pod", "Job") and event.uid not in known and event.namespace == workload.namespace
        if gone and _made(workload, event) and not any(_made(each, event) for each in longer):
            yield event


def _made(workload: ClusterObject, event: ClusterEvent) -> bool:
    """Return whether a workload can have made the pod or the Job of an event, by its name."""
    if event.kind == "Job":
        return workload.kind == "CronJob" and cron_job_of(event.name) == workload.name
    return is_pod_name_of(event.name, workload.kind, workload.name)


def _asks_back(asked: Asked) -> bool:
    """Return whether a question looks back: at a time that is over, or at a night that is not over yet."""
    period = asked.question.period
    if period is None:
        return not _FORMERLY.isdisjoint(asked.question.words)
    began = period.bounds(asked.state.now)[0] < asked.state.now - NOW_SECONDS
    return is_past(asked) or (began and not period.opens and not asked.question.asks("now"))


def _is_then(asked: Asked, event: ClusterEvent) -> bool:
    period = asked.question.period
    if period is None:
        return True
    start, end = period.bounds(asked.state.now)
    return event.last >= start - _TOLERANCE_SECONDS and event.first <= end + _TOLERANCE_SECONDS


def _is_decisive(event: ClusterEvent, found: Sequence[tuple[ClusterObject, ClusterEvent]]) -> bool:
    """Return whether the event ended its pod, or kept it from a start that never came."""
    if event.reason in _ENDS:
        return True
    if event.reason not in _PREVENTS or SAYS_NOTHING.match(event.message):
        return False
    return not any(one.uid == event.uid and one.reason == _STARTED and one.last >= event.last for _, one in found)
