"""Answers about the past: whether an incident was there in the period of a question, and when containers last ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.node_users import pods_on
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import duration, integer, moment, text, written
from holmes.previews.severity import WARNING, severity_of
from holmes.triage.asked import look_about
from holmes.triage.sentences import opens_question
from holmes.triage.states import is_ready, restarts
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook

NOW_SECONDS: Final = 600.0
_JUST_NOW_SECONDS: Final = 60.0
_OVER_SECONDS: Final = 86_400.0
_TOLERANCE_SECONDS: Final = 900.0
_QUOTED: Final = 240
_MANY_RESTARTS: Final = 5
_RESTART_SECONDS: Final = 900.0
"""The kubelet waits at most 5 minutes between restarts. The rest is for runs that last longer."""
_LOST: Final = 255
"""The exit code of a container whose end the runtime has not seen."""
_ENDS: Final = frozenset({"crash", "memory"})
_STEADY: Final = word_list("steady")


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a container's previous instance.

    `log` is the last line that it wrote, or empty. `running` says if the container runs again.
    """

    pod: ClusterObject
    container: str
    reason: str
    code: int
    at: float
    log: str
    running: bool

    @property
    def told(self) -> str:
        said = f"; its last log line was: {self.log}" if self.log else ""
        how = f"{self.reason} (exit code {self.code}){said}"
        return f"container {self.container} of {self.pod.ref} ended at {written(self.at)}: {how}"


def is_past(asked: Asked) -> bool:
    """Return whether the question is only about a time that is over."""
    question, period = asked.question, asked.question.period
    over = _says_over(question)
    if period is None or (question.asks("now") and not over):  # "I released it two hours ago, why does the old run?"
        return False
    if over and period.reach == "during" and period.first.ago:  # "a burst of errors a few minutes ago, all fine again"
        return period.first.ago >= _JUST_NOW_SECONDS
    return period.bounds(asked.state.now)[1] < asked.state.now - (_JUST_NOW_SECONDS if over else NOW_SECONDS)


def _says_over(question: Question) -> bool:
    """Return whether a clause of a complaint says that the trouble has ended: "all good now", "it is quiet again"."""
    if not question.wants_cause:
        return False
    marks = [each.first for each in question.found if each.name == "now"]
    marks += [index for index, word in enumerate(question.words) if word in word_list("again")]
    well = [each for each in question.found if each.name in ("health", "ready", "running")]
    words = [each.first for each in well] + [at for at, word in enumerate(question.words) if word in word_list("calm")]
    bad = [each.first for each in question.found if each.name in ("why", "trouble", "negation")]
    spans = [question.clause(mark) for mark in marks]
    spans = [each for each in spans if not opens_question(" ".join(question.words[each.start : each.stop]))]
    return any(any(at in span for at in words) and not any(at in span for at in bad) for span in spans)


def past_period(asked: Asked) -> tuple[float, float] | None:
    """Return the first and the last moment of the time that is over, or None for a question about the present."""
    period = asked.question.period
    return period.bounds(asked.state.now) if period is not None and is_past(asked) else None


def was_there(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident was there in the period of the question, and, for "since …", began then."""
    period, since = asked.question.period, moment(incident.since) if incident.since else None
    if period is None or asked.question.asks("now"):
        return True
    start, end = period.bounds(asked.state.now)
    if since is None:
        return not is_past(asked)
    latest = max(start, min(period.first.interval(asked.state.now)[1], asked.state.now))  # "since this morning"
    if period.opens and _earliest(asked, incident, since, latest) - latest > max(
        _TOLERANCE_SECONDS, (asked.state.now - latest) / 2
    ):
        return False
    return since <= end


def _earliest(asked: Asked, incident: Incident, since: float, asked_since: float) -> float:
    """Return the earliest time at which an incident of the only named object can have begun.

    The conditions of a pod that crashes again and again change at each restart. So many restarts show this only if they
    fill the time since the one that the question names.
    """
    least = max(_MANY_RESTARTS, (asked.state.now - asked_since) / _RESTART_SECONDS)
    if len(asked.subject.named) != 1:
        return since
    proofs = (proof.object for each in incident.findings for proof in each.evidence)
    found = {asked.state.find(ref) for ref in (*(each.subject for each in incident.findings), *proofs)}
    pods = {pod for each in found if each is not None for pod in asked.state.pods_of(each) or (each,)}
    crashing = [pod.created for pod in pods if pod.kind == "Pod" and restarts(pod) >= least]
    return min((since, *crashing))


def happened_then(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident ended pods in the time that is over and that the question is about."""
    period, since = past_period(asked), moment(incident.since) if incident.since else None
    pods = [asked.state.find(each.subject) for each in incident.findings if each.subject.kind == "Pod"]
    ended = bool(pods) and all(pod is None or pod.text("status", "phase") in ("Failed", "Succeeded") for pod in pods)
    return ended and period is not None and since is not None and period[0] <= since <= period[1]


def last_end(asked: Asked, named: Named) -> FirstLook | None:
    """Answer from the last end of the subject's containers, if the question is about crashes or a past time."""
    words = asked.question.words
    wanted = asked.question.symptoms & _ENDS or "restarting" in asked.question.states or not _STEADY.isdisjoint(words)
    if (not wanted or asked.question.asks("now")) and not is_past(asked):
        return None
    now, period = asked.state.now, asked.question.period
    start, end = period.bounds(now) if period is not None else (0.0, now)
    found = sorted(_ends(asked, named), key=lambda each: -each.at)
    ended = next((each for each in found if start <= each.at <= end), None)
    if ended is None:
        unasked = not wanted or is_past(asked) or asked.question.complains  # "no crashes, but logins are slow"
        return None if unasked else _none(asked, named, found)
    number = sum(map(restarts, {each.pod for each in found}))
    ago = duration(asked.state.now - ended.at)
    runs = ", and it runs now" if ended.running else ""
    summary = f"{ended.told[0].upper()}{ended.told[1:]}. That was {ago} ago; {number} restarts so far{runs}."
    node = _ended_with_node(asked, ended)
    tells = bool(ended.log) and severity_of(ended.log) >= WARNING
    caused = asked.question.asks("why") and (ended.reason == "OOMKilled" or tells or node is not None)
    together = f" {_lost_together(asked, node, ended)}" if node is not None else ""
    evidence = (f"{ended.pod.ref}, container {ended.container}, lastState: {ended.reason}, exit code {ended.code}",)
    if _only_judges(asked, named) and asked.state.now - ended.at > _OVER_SECONDS:
        first = named.objects[0]
        healthy = f"No fault was found in {first.ref} ({status_of(first)})."
        return replace(look_about(asked, named, "healthy", f"{healthy} {summary}"), evidence=evidence)
    if not caused:
        unknown = asked.question.asks("why")
        seen = "Neither its status nor its last log line shows" if ended.log else "Its status does not show"
        summary = f"{summary} {seen} the reason." if unknown else summary
        return look_about(asked, named, "inconclusive" if unknown else "answered", summary)
    look = look_about(asked, named, "cause_found", f"{summary}{together}")
    culprit = node.ref if node is not None else asked.state.workload_of(ended.pod).ref
    return replace(look, severity="warning", culprit=str(culprit), evidence=evidence)


def _only_judges(asked: Asked, named: Named) -> bool:
    """Return whether a question asks if a subject that is ready is well, and mentions restarts beside it."""
    question = asked.question
    asks = (
        question.asks("health")
        and _STEADY.isdisjoint(question.words)
        and question.period is None
        and not question.asks("why", "trouble", "when", "count")
    )
    return asks and all(map(is_ready, named.objects))


def _ended_with_node(asked: Asked, ended: _End) -> ClusterObject | None:
    """Return the node of a container that was lost together with those of other workloads: it was restarted."""
    node = asked.state.get("Node", "", ended.pod.text("spec", "nodeName"))
    own = asked.state.workload_of(ended.pod)
    others = (
        integer(each.last_terminated, "exitCode") == _LOST
        and abs((moment(text(each.last_terminated, "finishedAt")) or 0.0) - ended.at) <= _JUST_NOW_SECONDS
        for pod in (pods_on(asked.state, node) if node is not None and ended.code == _LOST else ())
        if asked.state.workload_of(pod) is not own
        for each in containers_of(pod)
    )
    return node if any(others) else None


def _lost_together(asked: Asked, node: ClusterObject, ended: _End) -> str:
    events = asked.state.events_of(node, "Rebooted")
    rebooted = any(abs(each.last - ended.at) <= NOW_SECONDS for each in events)
    why = "was rebooted then" if rebooted else "was then probably rebooted, or its container runtime was restarted"
    return f"Containers of other workloads were lost at the same time: {node.ref} {why}."


def _none(asked: Asked, named: Named, found: list[_End]) -> FirstLook | None:
    """Answer that nothing ended, if the question is not about the cause."""
    ends = "crash" in asked.question.symptoms or "restarting" in asked.question.states
    if not ends or found or asked.question.asks("why", "health") or asked.question.symptoms - _ENDS:
        return None
    pods = [pod for each in named.objects for pod in asked.state.pods_of(each)]
    if not pods or any(map(restarts, pods)):
        return None
    return look_about(asked, named, "answered", f"No container of {named.objects[0].ref} has restarted.")


def _ends(asked: Asked, named: Named) -> Iterator[_End]:
    for pod in dict.fromkeys(pod for each in named.objects for pod in asked.state.pods_of(each)):
        for one in containers_of(pod):
            ended = one.last_terminated
            at = moment(text(ended, "finishedAt"))
            if at and (integer(ended, "exitCode") or one.restarts):
                log = (asked.state.log_of(pod, one.name, previous=True) or "").strip().splitlines()
                yield _End(
                    pod=pod,
                    container=one.name,
                    reason=text(ended, "reason") or "Error",
                    code=integer(ended, "exitCode"),
                    at=at,
                    log=log[-1][:_QUOTED] if log else "",
                    running=one.running,
                )
