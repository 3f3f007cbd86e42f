"""Tells whether a cause is of the measure that an alert is about.

A crash does not explain an alert about the age of an image, nor a full disk one about the processor. An alert with an
unknown measure is explained only by a cause with the same symptom, or by what its own log reports.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.triage.blame import ONLY_LOGS
from holmes.triage.question import parse_question
from holmes.triage.states import is_ready, stop_of
from holmes.triage.vocabulary import symptoms_of_text, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_WORDS: Final = expression(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_OBJECTS: Final = word_list("alerts of objects")
_SPECIFIC: Final = word_list("alerts of one mechanism")
"""Words in names of alerts about one mechanism. Only a cause with the same symptom explains them."""
_OF_NOTHING: Final = word_list("alerts of no state")
_ADVISED: Final = {
    "HorizontalPodAutoscaler": word_list("alerts of autoscalers"),
    "PodDisruptionBudget": word_list("alerts of budgets"),
    "Node": word_list("alerts of scheduling"),
}
"""For kinds of advice, and for nodes that work, the words of the alerts that these explain."""
_ONLY_ADVISED: Final = (_ADVISED["HorizontalPodAutoscaler"], _ADVISED["PodDisruptionBudget"])
_OF_DEVICES: Final = word_list("alerts of devices")
_OF_WORKERS: Final = frozenset({"queue", "queues", "consumer", "consumers"})
_OF_AMOUNTS: Final = word_list("alerts of amounts")
_FAILING: Final = frozenset({"error", "errors", "fail", "fails", "failed", "failing", "failure", "failures"})
_OF_MEMBERS: Final = word_list("alerts of members")
_PLAIN: Final = expression(r"(?<![\w/-])[a-z]{3,20}(?![\w/-])")
"""Words that are not part of a name or path."""


def words_of_alert(name: str) -> tuple[str, ...]:
    """Return the words of the name of an alert."""
    return tuple(_WORDS.findall(name))


def is_of_one_mechanism(name: str) -> bool:
    """Return whether an alert is about something that the state of an object seldom explains."""
    return not _terms(name).isdisjoint(_SPECIFIC | _OF_NOTHING)


def is_of_failures(name: str) -> bool:
    """Return whether an alert is about errors or failures of any kind."""
    return not _terms(name).isdisjoint(_FAILING)


def explains(name: str, look: FirstLook, asked: Asked, *, literal: bool = False) -> bool:
    """Return whether the cause that a look names can explain an alert with this name.

    `literal` means that the cause quotes a value of the alert's labels.
    """
    words, told = _terms(name), frozenset(_PLAIN.findall(look.summary.lower()))
    own = {part for each in asked.subject.objects for part in each.name.lower().split("-")} & words & _SPECIFIC
    waits = look.severity == "critical" and not all(map(is_ready, asked.subject.objects))
    if own and (literal or waits or (words - own - _FAILING) & told):  # an alert of Alertmanager about itself
        words -= own
    if ONLY_LOGS in look.notes and words & (_SPECIFIC | _OF_NOTHING) & told:
        return True
    if words & _OF_NOTHING:
        return False
    spoken = " ".join(words_of_alert(name)).lower()
    felt = symptoms_of_text(spoken) | parse_question(spoken).symptoms
    same = bool(symptoms_of_text(look.summary) & felt - {"unreachable"})
    advised = _advised(look, asked)
    if advised is not None:
        near = bool(symptoms_of_text(look.summary) & felt - {"unreachable", "evicted"})  # each pressure may evict
        return bool(words & advised) or (near and advised not in _ONLY_ADVISED and not words & _OF_DEVICES)
    if waits and words & _SPECIFIC <= _OF_WORKERS and words & _OF_OBJECTS:
        return True  # the queue of a worker that does not run
    if same or words & _SPECIFIC:
        return same
    written = symptoms_of_text(look.summary) & asked.question.symptoms - {"unreachable"}  # also in its annotations
    state = written and not felt and not words & _OF_AMOUNTS  # "CPU is high, so the pod may be restarted"
    critical = look.severity == "critical" and (words & _OF_MEMBERS or state)
    return ONLY_LOGS in look.notes or bool(critical or words & _OF_OBJECTS)


def _terms(name: str) -> frozenset[str]:
    """Return the words of the name of an alert, and its pairs of words as in `slow-queries`."""
    parts = [word.lower() for word in words_of_alert(name)]
    return frozenset((*parts, *map("-".join, pairwise(parts))))


def _advised(look: FirstLook, asked: Asked) -> frozenset[str] | None:
    """Return the words of the alerts that a cause explains which stops no work, or None if it may stop work."""
    kind, _, path = look.culprit.partition(" ")
    namespace, _, name = path.rpartition("/")
    culprit = asked.state.get(kind, namespace, name)
    if culprit is not None and kind == "Node" and culprit in asked.subject.objects:
        return None if not is_ready(culprit) else _ADVISED[kind]
    if look.severity == "critical":
        return None
    advises = next((_ADVISED[each] for each in tuple(_ADVISED)[:2] if each in f"{kind} {look.summary}"), None)
    stops = kind == "ScaledObject" or (culprit is not None and stop_of(culprit)[0])
    return advises if advises is not None or stops or look.severity != "info" else frozenset()
