"""Checks a number of replicas or pods that a question states of named workloads: "cart has 3 replicas, right?"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import pod_ready, status_of
from holmes.kubernetes.kinds import SCALED
from holmes.triage.facts import fact
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted
from holmes.triage.points import NUMBER_WORDS, number_of
from holmes.triage.states import lives, wanted_replicas
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_STATED: Final = expression(
    rf"(?<![\w.:/-])(?P<number>\d{{1,4}}|{'|'.join(NUMBER_WORDS)}) "
    r"(?:(?P<ready>ready|healthy|bereite?n?|list[oa]s?|prete?s?)\s)?"
    r"(?:(?P<replicas>replicas?|replikas?|replikate|repliken|repliques?|instances?|instanzen|instancias?)|pods?)\b"
    r"(?: (?P<after>ready|bereit|list[oa]s|prete?s))?"
)
_OTHER: Final = (
    "why", "trouble", "count", "list", "logs", "when", "changes", "change_order", "usage", "resources", "permission",
    "events", "excluding", "placement", "history", "negation",
)  # fmt: skip


def asks_stated_number(question: Question, subject: Subject) -> bool:
    """Return whether a question states how many replicas or pods the named workloads have."""
    scaled = bool(subject.named) and all(each.kind in SCALED for each in _workloads(subject.objects))
    bounded = any(each.how != "=" for each in question.comparisons)
    stated = _STATED.search(question.text) is not None
    return scaled and stated and not bounded and question.period is None and not question.asks(*_OTHER)


def stated_number(asked: Asked) -> FirstLook:
    """Answer whether the number is right, and what it is."""
    gaps = unread(asked.state, ("Pod",), asked.subject.namespaces)
    match = _STATED.search(asked.question.text)
    if gaps or match is None:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    number = int(number_of(match["number"]))
    ready = match["ready"] or match["after"]
    found = _workloads(asked.subject.objects)
    counts = {each: _count(asked, each, ready=bool(ready), replicas=bool(match["replicas"])) for each in found}
    right = all(count == number for count in counts.values())
    noun = f"{'ready ' if ready else ''}{'replica' if match['replicas'] else 'pod'}"
    told = "; ".join(
        f"{each.ref} has {counted(count, noun)}{'' if count == number else f', not {number}'} ({status_of(each)})"
        for each, count in counts.items()
    )
    return fact(asked, f"{'Yes' if right else 'No'}: {told}.")


def _workloads(objects: tuple[ClusterObject, ...]) -> tuple[ClusterObject, ...]:
    """Return the workloads. A Service or another object of the same name is not meant."""
    return tuple(each for each in objects if each.kind in SCALED) or objects


def _count(asked: Asked, each: ClusterObject, *, ready: bool, replicas: bool) -> int:
    if replicas and not ready:
        return wanted_replicas(each)
    return sum(pod_ready(pod) if ready else lives(pod) for pod in asked.state.pods_of(each))
