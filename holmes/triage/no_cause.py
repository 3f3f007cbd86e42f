"""Answers about a subject whose objects, events and logs show no fault: it is healthy, starting, or in doubt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.log_numbers import settled_amounts
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.status import status_of
from holmes.diagnosis.facts.volumes import class_name, waits_for_consumer
from holmes.diagnosis.rule_ids import STUCK_ROLLOUT
from holmes.kubernetes.fields import REVISION_LABEL, integer, text, written
from holmes.triage.asked import look_about, one_sentence
from holmes.triage.at_once import starting_words
from holmes.triage.connections import connections
from holmes.triage.intended import is_of_siblings, says_outdated
from holmes.triage.ledger import unread
from holmes.triage.log_troubles import troubles_of, workloads_of
from holmes.triage.object_times import times_of
from holmes.triage.past import is_past, was_there
from holmes.triage.run_logs import silent_run
from holmes.triage.scopes import LOGGING, VISIBLE
from holmes.triage.states import is_ready
from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook

_MOST_NAMED: Final = 6
_MEMORY: Final = expression(r"(?i)heap|rss|mem(?:ory)?(?![a-z])")
_YES_OR_NO: Final = word_list("yes or no")
_SIGNS: Final = word_list("signs of trouble")
_RESULTS: Final = frozenset({"completed", "failed"})
_LATELY_SECONDS: Final = 3_600.0
_LEAST_LINES: Final = 3
_STATELESS: Final = frozenset({"IngressClass", "StorageClass", "PriorityClass", "RuntimeClass"})


def without_cause(asked: Asked, named: Named, upstream: Sequence[Incident], own: Sequence[Incident]) -> FirstLook:
    """Return the look at a subject without a known fault that can be the reason.

    `upstream` contains the faults of what it depends on, and `own` its own incidents. The answer names a critical one
    of them, because it explains something else.
    """
    first = named.objects[0]
    words = f"{first.ref} ({status_of(first)})"
    settled = _settled(asked, named) if _asks_of_leak(asked.question) else None
    unknown = _unknown_state(asked, named, words)
    waiting = next((each for each in named.objects if not is_ready(each)), None)
    silence = silent_run(asked, named)
    kept = next(filter(None, (_kept_old(asked, each) for each in named.objects)), "") if says_outdated(asked) else ""
    grave = [each for each in own if _is_grave(each) and was_there(asked, each)]
    beside = next((each for each in grave if not is_of_siblings(asked, named, each)), None)
    if kept and waiting is None:
        return look_about(asked, named, "answered", f"{kept} No fault was found in {words}.")
    if unknown:
        text = unknown
    elif waiting is not None:
        text = _unready(asked, waiting)
    elif beside is not None:
        text = f"Nothing shows this trouble in {words}, but it has another fault: {_sentence(beside)}"
        judged = _asks_about_now(asked.question) and not asked.question.asks("why")
        if judged and not _is_doubtful(asked, named):
            return look_about(asked, named, "answered", text)
    elif silence:
        text = f"Cannot determine whether {words} hangs. {silence}"
    elif settled is not None:
        look = look_about(asked, named, "healthy", f"No fault was found in {words}. {settled[0]}: it does not grow.")
        return replace(look, evidence=(settled[1],))
    elif upstream and asked.question.wants_reason:
        text = _of_dependency(words, upstream[0])
    elif _is_doubtful(asked, named):
        text = f"The cause cannot be determined: nothing in the cluster's objects and events is wrong with {words}"
        period = asked.question.period if is_past(asked) else None
        dated = f" Only the present state is known, not that of `{period.text}`." if period is not None else ""
        text = f"{text}{_behind(asked, first)}.{dated}"
    else:
        alike = [each for each in named.objects if each.kind == first.kind][:_MOST_NAMED]
        told = " and ".join(f"{each.ref} ({status_of(each)})" for each in alike)
        starting = starting_words(asked.state, first)
        more = f" It is still starting: {starting}." if starting else ""
        look = look_about(asked, named, "healthy", f"No fault was found in {told}{_behind(asked, first)}.{more}")
        return replace(look, evidence=tuple(_of_work(asked, named)))
    return look_about(asked, named, "inconclusive", text)


def _is_grave(incident: Incident) -> bool:
    stuck = any(each.rule_id == STUCK_ROLLOUT for each in (*incident.findings, *incident.symptoms))
    return incident.severity == "critical" or (stuck and incident.severity != "info")


def _unknown_state(asked: Asked, named: Named, words: str) -> str:
    """Return why the state of the subject is unknown, or an empty string."""
    first = named.objects[0]
    gaps = unread(asked.state, _needed(asked, named), (first.namespace,) if first.namespace else ())
    if gaps:
        return f"Cannot determine the state of {words}: {', '.join(gaps)} could not be read."
    if first.kind in _STATELESS and not asked.question.kinds:
        return f"Not known: {first.ref} has no state of its own, and no workload is named `{named.name}`."
    return ""


def _is_doubtful(asked: Asked, named: Named) -> bool:
    """Return whether a question speaks of trouble that the objects would not show, and the logs do not exclude."""
    question = asked.question
    denied = [question.clause(each.first) for each in question.found if each.name == "negation"]
    unknown = {*asked.subject.unknown}  # a noun and a verb: "mails do not arrive"
    unclear = any(len(unknown.intersection(question.words[each.start : each.stop])) > 1 for each in denied)
    missed = unclear and question.asks("why", "trouble")
    hidden = question.symptoms - VISIBLE and not question.asks("health")
    felt = hidden or (missed and question.complains)
    return bool(felt) and not (_asks_about_now(question) and _works(asked, named))


def _needed(asked: Asked, named: Named) -> tuple[str, ...]:
    """Return the kinds without which the state of the subject is unknown.

    A kind in the question can have an object of this name that was not read. So can workloads if only a Service has it.
    """
    kinds = {each.kind for each in named.objects}
    meant = asked.question.kinds or (_SERVED if "Service" in kinds and kinds.isdisjoint(LOGGING) else ())
    pods = ("Pod",) if not kinds.isdisjoint((*LOGGING, "Service")) else ()
    return (named.objects[0].kind, *meant, *pods)


_SERVED: Final = ("Deployment", "StatefulSet", "DaemonSet")


def _asks_of_leak(question: Question) -> bool:
    """Return whether a question asks if there is trouble with memory, and not why: "does web leak memory"."""
    asks = not _YES_OR_NO.isdisjoint(question.words[:1]) or not question.complains or "?" in question.text
    return asks and "memory" in question.symptoms and question.asks("trouble") and not question.asks("why")


def of_another_time(asked: Asked, named: Named, incident: Incident) -> FirstLook:
    """Answer about a time in which the known incident was not there: with the runs of a job in it, if there are any."""
    period = asked.question.period
    start, end = period.bounds(asked.state.now) if period is not None else (0.0, 0.0)
    every = dict.fromkeys(time for each in named.objects for time in times_of(asked.state, each))
    runs = [time for time in every if time.topic in _RESULTS and start <= time.at <= end]
    if runs and not asked.question.asks("why"):
        told = "; ".join(f"{time.object.ref}: {time.what} {written(time.at)}" for time in runs[:_MOST_NAMED])
        return look_about(asked, named, "answered", f"{told}.")
    text = f"No fault of {named.objects[0].ref} is known to be from `{period.text if period else ''}`."
    since = f" It has another incident, since {incident.since}." if incident.since else ""
    return look_about(asked, named, "inconclusive", f"{text}{since}")


def _settled(asked: Asked, named: Named) -> tuple[str, str] | None:
    """Return what the logs of the subject tell about an amount of memory that does not grow, and their last line."""
    for workload in workloads_of(asked.state, named.objects):
        for key, story in stories_of(asked.state, workload):
            for words, line in settled_amounts(story, _MEMORY):
                return words, f"{key.pod}, log of container {key.container}: {quoted(line)}"
    return None


def _asks_about_now(question: Question) -> bool:
    """Return whether a question asks if something is so now: "is booking out of connections", "est-il encore lent"."""
    # "Is it the new image or the new rules?" after a complaint asks for its cause.
    asked = (0,) if question.asks("either") else (0, *question.breaks)
    starts = (question.words[at] for at in asked if at < len(question.words))
    return not _YES_OR_NO.isdisjoint(starts) or question.asks("now")


def _works(asked: Asked, named: Named) -> bool:
    """Return whether the logs of all workloads of the subject tell of work in the last hour, and of no trouble."""
    workloads = workloads_of(asked.state, named.objects)
    told = [[story for _, story in stories_of(asked.state, each)] for each in workloads]
    late = [
        sum(story.time_of(at) >= asked.state.now - _LATELY_SECONDS for story in one for at in story.heads)
        for one in told
    ]
    calm = not any(
        each.group.is_evidence(asked.state.now) for one in workloads for each in troubles_of(asked.state, one)
    )
    return bool(workloads) and calm and all(number >= _LEAST_LINES for number in late)


def _of_work(asked: Asked, named: Named) -> Iterator[str]:
    """Yield the logs that tell of nothing but work, if the question asks for a symptom that a log would report."""
    question = asked.question
    dated = question.period is not None and not question.asks("now")
    felt = question.symptoms - VISIBLE or not _SIGNS.isdisjoint(question.words)
    if felt and _asks_about_now(question) and not dated and _works(asked, named):
        for workload in workloads_of(asked.state, named.objects):
            yield f"{workload.ref}, its logs of the last hour report work and no trouble"


def _kept_old(asked: Asked, each: ClusterObject) -> str:
    """Return the setting of a StatefulSet with which an update leaves out the subject on purpose, or nothing."""
    workload = asked.state.workload_of(each)
    partition = integer(workload.body, "spec", "updateStrategy", "rollingUpdate", "partition")
    old, new = (workload.text("status", name) for name in ("currentRevision", "updateRevision"))
    if not partition or old == new or each.labels.get(REVISION_LABEL, old) == new:
        return ""
    setting = f"spec.updateStrategy.rollingUpdate.partition is {partition}"
    return f"{workload.ref} keeps pods with a number below {partition} at the old revision, because {setting}."


def _behind(asked: Asked, each: ClusterObject) -> str:
    """Return a clause with what an object waits for, or with what does its work: workloads, or the last run."""
    if (
        each.kind == "PersistentVolumeClaim"
        and each.text("status", "phase") == "Pending"
        and waits_for_consumer(asked.state, each)
    ):
        name = f"StorageClass {class_name(each)}"
        return f"; it waits for its first consumer, because {name} has volumeBindingMode WaitForFirstConsumer"
    if each.kind == "CronJob":
        runs = sorted(asked.state.owned_by(each, "Job"), key=lambda job: -job.created)
        ended = text(runs[0].condition("Complete"), "lastTransitionTime") if runs else ""
        return f"; its last run, {runs[0].ref}, completed at {ended}" if ended else ""
    if each.kind not in ("Ingress", "Service"):
        return ""
    refs = [one.ref for one in connections(asked.state, (each,)).values() if one.ref.kind in LOGGING and one.hops <= 2]
    return f", nor with {' and '.join(map(str, refs[:_MOST_NAMED]))} behind it" if refs else ""


def _of_dependency(words: str, told: Incident) -> str:
    return (
        f"Nothing is wrong with {words} itself. It depends on {told.culprit}, which has a fault of its own, but "
        f"nothing shows that this is the cause: {_sentence(told)}"
    )


def _sentence(incident: Incident) -> str:
    return one_sentence(incident.cause or incident.title)


def _unready(asked: Asked, each: ClusterObject) -> str:
    """Return the answer for an object that is not ready without a known cause: it may be starting."""
    words = f"{each.ref} ({status_of(each)})"
    ready = each.condition("Ready") if each.group else {}
    if ready:
        told = ": ".join(filter(None, (text(ready, "reason"), text(ready, "message"))))
        return f"{each.ref} is not ready{f' ({told})' if told else ''}. Its operator has reported no failure so far."
    starting = starting_words(asked.state, each)
    if starting:
        return f"{words} is starting: {starting}. Nothing definite has failed."
    return f"{words} is not ready, and nothing in the cluster's objects, events and logs shows the cause."
