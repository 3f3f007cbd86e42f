"""Answers how often something failed that only events count: a probe, a mount, a pull, the search for a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import written
from holmes.triage.connections import identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterEvent
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_HOW_OFTEN: Final = expression(
    r"\b(?:how often|how many times|wie oft|wie haufig|cuantas veces|combien de fois)\b"
    r"|\b(?:how many|number of|wie viele|anzahl der|cuant[oa]s|combien de?) (?:\w+[ -]){0,2}"
    r"(?:probe|mount|pull|scheduling) (?:failures?|errors?)\b"
)
_FAILED: Final = expression(r"\b(?:fail\w*|errors?|fehl\w*|schlug\w*|schlagt|fall[aoóe]\w*|echou\w*|unhealthy)\b")
_COUNTED: Final = (
    ("liveness probe failure", expression(r"\bliveness[ -]?(?:probes?|sonden?|check)"), "Unhealthy", "Liveness"),
    ("readiness probe failure", expression(r"\breadiness[ -]?(?:probes?|sonden?|check)"), "Unhealthy", "Readiness"),
    ("startup probe failure", expression(r"\bstartup(?: |-)?probe"), "Unhealthy", "Startup"),
    ("failed mount", expression(r"\bmount"), "FailedMount", ""),
    ("failed scheduling attempt", expression(r"\bschedul"), "FailedScheduling", ""),
)
"""The counted failures, the words of the question, the reason of the events, and the beginning of their messages."""


def asks_event_count(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how often something failed that events count."""
    text = subject.without_names(question.text)
    often = _HOW_OFTEN.search(text) and _FAILED.search(text) and not {"Job", "CronJob"} & set(question.kinds)
    topics = [words for _, words, _, _ in _COUNTED if words.search(text)]
    return bool(often and subject.named) and len(topics) == 1 and "restarting" not in question.states


def event_count(asked: Asked) -> FirstLook:
    """Return how many failures the events of the subject count. Kubernetes keeps events for an hour by default."""
    if unread(asked.state, ("Event",), asked.subject.namespaces):
        return fact(asked, "Events could not be read.", None, "inconclusive")
    if asked.question.period is not None:
        told = "Not answered: an event has the times of its first and last failure only, not those between them."
        return fact(asked, told, None, "inconclusive")
    noun, reason, begin = next(
        (noun, reason, begin)
        for noun, words, reason, begin in _COUNTED
        if words.search(asked.subject.without_names(asked.question.text))
    )
    found = [each for each in _events(asked) if each.reason == reason and each.message.startswith(begin)]
    if not found:
        return fact(asked, f"The events that are still there count no {noun} {place_of(asked)}.")
    first, last = min(each.first for each in found), max(each.last for each in found)
    total = counted(sum(each.count for each in found), noun)
    rows = [(f"{each.kind} {each.name}", str(each.count), written(each.first), written(each.last)) for each in found]
    return fact(
        asked,
        f"{total} {place_of(asked)}, as events count them, {written(first)} to {written(last)}.",
        table_of(("object", "count", "first", "last"), rows) if len(rows) > 1 else None,
    )


def _events(asked: Asked) -> Iterator[ClusterEvent]:
    refs = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    uids = {known.uid for ref in refs if (known := asked.state.find(ref)) is not None}
    yield from (each for each in asked.state.events if each.uid in uids)
