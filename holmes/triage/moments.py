"""Answers when something happened to an object: its creation, its last restart, its last or next run, its last scaling.

The words of a question name topics. `object_times.py` knows the times of each kind for these topics.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import duration, text, written
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, table_of
from holmes.triage.object_times import duration_of_run, times_of
from holmes.triage.states import is_ready
from holmes.triage.vocabulary import beginnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.object_times import ObjectTime, Topic
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_RUNS: Final = ("CronJob", "Job")
_ENDED: Final[tuple[Topic, ...]] = ("ended",)
_FAILED: Final[tuple[Topic, ...]] = ("failed",)
_TOPICS: Final[tuple[tuple[tuple[Topic, ...], tuple[str, ...]], ...]] = (
    (("next run",), ("CronJob",)),
    (("expires",), ()),
    (("renewal",), ()),
    (("scaled",), ()),
    (("deletion",), ()),
    (("cordoned", "changed"), ("Node",)),
    (("succeeded", "completed"), _RUNS),
    (_FAILED, _RUNS),
    (("run", "started"), _RUNS),
    (_ENDED, ()),
    (("unready",), ()),
    (("broken",), ()),
    (("ready",), ()),
    (("rolled out", "created"), ()),
    (("changed", "rolled out", "scaled"), ()),
    (("started", "ready"), ()),
    (("created",), ()),
)
"""The topics of a question, the most specific first, and the kinds of subjects. The vocabulary has the words of the
first topic of each group. The first topic that objects have decides."""
_NOT_READY: Final = re.compile(
    r"\b(?:not|n't|no longer|nicht|no|pas|plus) (?:\w+ ){0,2}(?:ready|available|reachable|healthy|bereit|verfugbar"
    r"|erreichbar|dispon|list[oa]|pret|accessible)"
)
_NONE: Final = ((_ENDED, "No restart"), (_FAILED, "No failed run"))

SINCE_WHEN: Final = re.compile(
    r"\bsince (?:when|what time)|\bhow long (?:has|have|is|are|was|were|did|does)|\bwie lange\b"
    r"|\bseit (?:wann|wie lange|welche[rm])"
    r"|\bdesde (?:cuando|que (?:hora|dia|fecha)|hace cuanto)|\b(?:hace )?cuanto (?:tiempo )?(?:lleva|hace)"
    r"|\bhace cuanto|\ba partir de (?:cuando|que hora)|\bdepuis (?:quand|combien|quelle heure)"
)
_NOUN: Final = re.compile(
    r"\b(?:last|latest|most recent|previous|next|letzte[rsn]?|nachste[rsn]?|ultim[oa]|proxim[oa]|dernier|derniere"
    r"|prochaine?)\s+(?:\w+ )?(?:run|execution|restart|crash|success|start|scaling|rollout|deployment|deploy|release"
    r"|lauf|neustart|absturz|start|skalierung|ejecucion|reinicio|caida|arranque|despliegue|redemarrage|plantage"
    r"|demarrage|deploiement|time|renewal)\b|\b(?:zuletzt|letztmals|por ultima vez|pour la derniere fois)\b"
)
_TOOK: Final = re.compile(
    r"\bhow long (?:did|does) .{1,60} run\b|\bwie lange lief\b"
    r"|\b(?:how long|wie lange?|cuanto|combien de temps)\b.{0,60}\b(?:takes?|took|taken|last|lasted|run for|dauert"
    r"|dauerte|gedauert|gebraucht|tard[oa]|dur[oa]|dure|pris|mis)\b|\b(?:duration|dauer|laufzeit|duracion|duree)\b"
)
_FUTURE: Final = re.compile(r"\b(?:will|wird|werden)\b")
_FIRST: Final = re.compile(r"\b(?:first|erste[ns]?|zuerst|primer[oa]?|premiere?)\b")
_WHAT: Final = frozenset({"what", "who", "which", "was", "wer", "quien", "qui", "que", "qu", "anything", "any", "did"})


def asks_time(question: Question, subject: Subject) -> bool:
    """Return whether a question asks when something happened to the named objects, or since when it lasts."""
    objects, text_of = subject.objects, question.text
    if _TOOK.search(text_of):
        return any(each.kind in _RUNS for each in objects)
    if (
        not objects
        or question.asks("logs", "why")
        or not (question.asks("when") or SINCE_WHEN.search(text_of) or _NOUN.search(text_of))
    ):
        return False
    if question.asks("changes") and question.words[0] in _WHAT:
        return False  # "what changed, and when" lists the changes
    return bool(_topics(question, objects)) or not (question.symptoms or question.asks("trouble", "changes"))


def asks_since_fault(question: Question, subject: Subject) -> bool:
    """Return whether a question asks since when something fails, which the cause of the fault tells."""
    return asks_time(question, subject) and _is_fault(question, subject)


def _is_fault(question: Question, subject: Subject) -> bool:
    topics = _topics(question, subject.objects)
    unready = ("unready",) in topics and not all(map(is_ready, subject.objects))
    return unready or (("broken",) in topics and _FAILED not in topics and _ENDED not in topics[:1])


def moments(asked: Asked) -> FirstLook:
    """Return the times of the named objects for the topic of the question."""
    if _TOOK.search(asked.question.text):
        took = "; ".join(_durations(asked))
        return fact(asked, f"{took}." if took else f"No finished run of {_names(asked)} is known.")
    topics = _topics(asked.question, asked.subject.objects)
    unready = ("unready",) in topics
    if _is_fault(asked.question, asked.subject):
        return _since_fault(asked)
    answers = [_of_subject(asked, named.objects, topics) for named in asked.subject.named]
    found = [each for answer in answers for each in answer]
    future = _FUTURE.search(asked.question.text) and not any(each.at > asked.state.now for each in found)
    if ("next run",) in topics and not found:
        return fact(asked, f"No next run of {_names(asked)} is known.", lines=tuple(_of_schedules(asked)))
    none = next((text_of for group, text_of in _NONE if group in topics), "")
    if not found and none:
        return fact(asked, f"{none} of {_names(asked)} is known.", lines=tuple(_of_schedules(asked)))
    if not found or future:
        return fact(asked, f"The time in the question is not in the objects of {_names(asked)}.", None, "inconclusive")
    missing = [named.name for named, answer in zip(asked.subject.named, answers, strict=True) if not answer]
    told = "; ".join(_told(asked, answer[0]) for answer in answers if answer)
    now = f"{_names(asked)} is ready now. " if unready and found[0].topic == "ready" else ""
    rows = [(str(each.object.ref), each.what, written(each.at), _away(asked, each.at)) for each in found]
    return fact(
        asked,
        f"{now}{told}.",
        table_of(("object", "what", "time", "ago"), rows) if len(rows) > 1 else None,
        lines=tuple(_of_schedules(asked)) if topics else (),
        notes=tuple(f"The time of {name} is not in its objects." for name in missing),
    )


def _topics(question: Question, objects: Sequence[ClusterObject]) -> tuple[tuple[Topic, ...], ...]:
    """Return the topics that the words of a question name, the most specific first."""
    kinds = {each.kind for each in objects}
    plain = question.spoken
    for each in objects:
        plain = plain.replace(each.name, " ")
    fitting = (topics for topics, needed in _TOPICS if not needed or kinds & {*needed})
    found = [topics for topics in fitting if beginnings(topics[0]).search(plain)]
    return (("unready",), *found) if _NOT_READY.search(plain) else tuple(found)


def _of_subject(
    asked: Asked, objects: Sequence[ClusterObject], topics: Sequence[tuple[Topic, ...]]
) -> list[ObjectTime]:
    """Return the times of one subject for the first topic of which any is known, the newest first."""
    every = list(dict.fromkeys(each for one in objects for each in times_of(asked.state, one)))
    oldest_first = _FIRST.search(asked.question.text) is not None
    every.sort(key=lambda each: each.at if oldest_first else -each.at)
    for group in topics:
        if group == ("next run",) and any(each.boolean("spec", "suspend") for each in objects):
            return []
        for topic in ("ready",) if "unready" in group else group:
            found = [each for each in every if each.topic == topic]
            if found and topic == "created":  # the age of a workload, not of its pods
                return sorted(
                    (each for each in found if each.object in objects), key=lambda each: objects.index(each.object)
                )
            if found:
                return found
        if any(group == one for one, _ in _NONE):  # "none" is an answer, which no other time may replace
            return []
    return [] if topics else every


def _since_fault(asked: Asked) -> FirstLook:
    """Answer since when a subject is not ready, from its incident, or from its own condition."""
    look = look_for_cause(asked)
    times = [each for one in asked.subject.objects for each in times_of(asked.state, one)]
    since = min((each.at for each in times if each.topic == "unready"), default=None)
    if look.verdict == "healthy":
        ready = next((each for each in times if each.topic == "ready"), None)
        return look if ready is None else replace(look, summary=f"{look.summary} {_told(asked, ready)}.")
    return look if look.since or since is None else replace(look, since=written(since))


def _durations(asked: Asked) -> Iterator[str]:
    """Yield how long the newest finished run of each subject took."""
    for each in asked.subject.objects:
        jobs = sorted((each, *asked.state.owned_by(each, "Job")), key=lambda one: -one.created)
        done = next(((job, took) for job in jobs if (took := duration_of_run(job)) is not None), None)
        if done is not None:
            yield f"{done[0].ref}: took {duration(done[1])}"


def _told(asked: Asked, each: ObjectTime) -> str:
    return f"{each.object.ref}: {each.what} {written(each.at)}, {_away(asked, each.at)}"


def _away(asked: Asked, at: float) -> str:
    """Return how long ago a time was, or in how long it will be."""
    seconds = asked.state.now - at
    return f"in {duration(-seconds)}" if seconds < 0 else f"{duration(seconds)} ago"


def _of_schedules(asked: Asked) -> Iterator[str]:
    """Yield the schedules of CronJobs, which say when they run."""
    for each in asked.subject.objects:
        if each.kind == "CronJob":
            zone = each.text("spec", "timeZone") or "time zone of the controller, usually UTC"
            suspended = ", suspended" if each.boolean("spec", "suspend") else ""
            yield f"{each.ref}: schedule {text(each.body, 'spec', 'schedule')} ({zone}){suspended}"


def _names(asked: Asked) -> str:
    return ", ".join(dict.fromkeys(str(named.objects[0].ref) for named in asked.subject.named))
