"""Answers if an object is in a state that is not a fault: "is node-1 cordoned", "is the CronJob export paused"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact
from holmes.triage.states import state_test, stop_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_PLAIN: Final = frozenset({"cordoned", "paused", "suspended", "headless"})
_BEING: Final = frozenset({"is", "are", "ist", "sind", "esta", "estan", "es", "son", "est", "sont"})
_OTHERWISE: Final = ("why", "trouble", "health", "logs", "when", "count", "changes", "negation", "either", "uses")


def asks_plain_state(question: Question, subject: Subject) -> bool:
    """Return whether a question only asks if one named object is in such a state now."""
    asks = question.words[:1] != () and question.words[0] in _BEING and len(subject.named) == 1
    other = question.asks(*_OTHERWISE) or question.complains or question.period is not None
    return asks and not other and len(question.states) == 1 and any(_with_state(question, subject))


def plain_state(asked: Asked) -> FirstLook:
    """Return whether the objects that can be in the state are in it."""
    (name,) = asked.question.states
    found = list(_with_state(asked.question, asked.subject))
    told = [
        f"{each.ref} is {'' if holds else 'not '}{name}{f' ({field})' if holds and (field := stop_of(each)[0]) else ''}"
        for each, holds in found
    ]
    held = {holds for _, holds in found}
    return fact(asked, f"{'Partly' if len(held) > 1 else 'Yes' if True in held else 'No'}: {'; '.join(told)}.")


def _with_state(question: Question, subject: Subject) -> Iterator[tuple[ClusterObject, bool]]:
    """Yield the objects that can be in the state of the question, and whether they are."""
    (name,) = question.states
    for each in subject.objects if name in _PLAIN else ():
        test = state_test(each.kind, name)
        if test is not None:
            yield each, test(each)
