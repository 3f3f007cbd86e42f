"""Recognises questions that ask for a list of objects, or whether an object has objects of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.grammar import names_things
from holmes.triage.key_filters import is_keyed, keys_named
from holmes.triage.relations import ranks_by_content
from holmes.triage.vocabulary import beginnings, symptoms_in, word_list

if TYPE_CHECKING:
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_LISTS: Final = word_list("listing")
_HAVING: Final = word_list("has")
_PLAINLY: Final = frozenset({"polite", "list", "follow_up", "now", "settings", "address", "excluding", "either"})
_JUDGED: Final = frozenset({"ready", "not_ready", "failing", "crashing", "restarting", "image_pull"})
_WHAT: Final = word_list("interrogatives")
_VERBS: Final = word_list("yes or no")


def lacks_something(question: Question) -> bool:
    """Return whether a question asks for objects without limits, requests or probes."""
    return any(question.lacks(what) for what in ("limits", "requests", "probes"))


def _symptoms_beside(question: Question) -> frozenset[str]:
    """Return the symptoms of a question without those of its nouns, for example of "HPA"."""
    nouns = {index for each in question.found if each.sense == "kind" for index in range(each.first, each.last + 1)}
    return symptoms_in(word for index, word in enumerate(question.words) if index not in nouns)


def asks_list(question: Question, subject: Subject) -> bool:
    listed = {each.first for each in question.found if each.sense == "concept" and each.name == "list"}
    concepts = {
        each.name for each in question.found
        if each.sense == "concept" and not (each.name == "health" and each.first in listed)  # "overview of pods"
    }  # fmt: skip
    if keys_named(question) and not subject.named and not question.asks("why", "changes"):
        return True
    if ranks_by_content(question) and not subject.named and not question.asks("why"):
        return True
    if _says_that(question, subject):
        return False
    symptoms = _symptoms_beside(question)
    # The word "namespace" before a name does not ask for a list: "a once-over of namespace shop" asks for its health.
    kinds = set(subject.kinds) - ({"Namespace"} if subject.namespaces else set())
    nodes = all(each.kind == "Node" for each in subject.objects)
    of_nodes = kinds - {"Node"} or (subject.namespaces and question.words[0] in _WHAT)  # "daemonset pods on node-1"
    plain = _PLAINLY | ({"uses"} if subject.named else set())
    judges = not _VERBS.isdisjoint(question.words[:1]) and question.words[-1] == "up"  # "are all pods up"
    if nodes and not judges and (of_nodes if subject.named else kinds) and concepts <= plain and not symptoms:
        return True
    opens = (question.words[:1] and question.words[0] in _LISTS) or beginnings("what runs").search(question.spoken)
    calm = not question.asks("trouble", "health", "changes", "why")
    if opens and subject.namespaces and not subject.named and calm:
        return True
    lists = (
        names_things(question) or question.asks("list", "age") or question.states or question.labels or subject.values
    )
    keyed = is_keyed(question)
    aged = question.older_seconds or question.newer_seconds
    filtered = lists or keyed or aged or lacks_something(question) or question.comparisons
    things = keyed or kinds or question.states or question.labels or subject.values or question.found_word
    judged = question.asks("trouble", "health") and not (question.states and question.kinds and question.asks("list"))
    judged = judged or (not kinds and not question.found_word and question.states == ("failing",))  # "what is broken"
    return bool(filtered and things) and not judged


def asks_if_has(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if an object has objects of a kind: "does web have an ingress"."""
    others = set(subject.kinds) - {"Namespace", "Pod", *(named.objects[0].kind for named in subject.named)}
    has = subject.named and others and not _HAVING.isdisjoint(question.words)
    return bool(has) and not (
        _symptoms_beside(question) or question.states or question.asks("trouble", "health", "why")
    )


def _says_that(question: Question, subject: Subject) -> bool:
    """Return whether a sentence says or asks if objects are in a state: "are all pods ready", "web is crashing"."""
    if question.asks("list", "count", "age") or names_things(question):
        return False
    troubled = not _VERBS.isdisjoint(question.words) and not _JUDGED.isdisjoint(question.states)
    return bool(question.states and (subject.named or troubled)) or bool(subject.values and question.symptoms)
