"""Tells complaints from questions of fact. A complaint is answered with the cause, whatever else it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

SINCE_WHEN: Final = ("since when", "seit wann", "desde cuando", "depuis quand")
JUDGED: Final = frozenset({"ready", "not_ready", "failing", "crashing", "restarting", "image_pull"})
"""States in which a statement or a yes-or-no question expects a judgement."""
_BAD: Final = frozenset({*JUDGED, "pending", "failed", "oom", "evicted", "unbound"}) - {"ready"}
_COMPLAINTS: Final = frozenset({"crash", "unreachable", "slow", "evicted", "dns"})
"""Symptoms that are always complaints. "Memory" and "image" also name what an object has."""
_FACTS: Final = ("count", "when", "exec", "port_forward", "permission", "events", "secret_value")
_OF_SCOPES: Final = (*_FACTS, "list", "logs", "changes", "uses", "describe", "settings", "health")
_SOMETHING: Final = word_list("something")
_INDEFINITE: Final = word_list("indefinite")
_NEAR: Final = 3
_MOST_BARE: Final = 4


def complains(question: Question, subject: Subject) -> bool:
    """Return whether a question complains about an object, and does not ask for a fact."""
    troubled = question.symptoms & _COMPLAINTS or question.asks("trouble") or not _BAD.isdisjoint(question.states)
    if not subject.named:  # "something in shop eats memory until it is killed"
        vague = not _SOMETHING.isdisjoint(question.words) or _means_one(question)
        return bool(subject.namespaces and vague and troubled) and not question.asks(*_OF_SCOPES)
    lasting = _asks_how_long(question)
    unfulfilled = not word_list("unfulfilled").isdisjoint(question.words)
    calm = (question.asks(*_FACTS) and not lasting) or _asks_for_things(question)
    return bool(troubled or unfulfilled or lasting or is_denied(question, subject)) and not calm


def _means_one(question: Question) -> bool:
    """Return whether a question is about one object that it does not name: "a pod in shop is killed"."""
    kinds = (each for each in question.found if each.sense in ("kind", "word") and each.first > 0)
    return any(question.words[each.first - 1] in _INDEFINITE for each in kinds)


def is_denied(question: Question, subject: Subject) -> bool:
    """Return whether a verb behind the subject is negated: "edge-proxy is not scheduled"."""
    names = [question.words.index(each.name) for each in subject.named if each.name in question.words]
    return any(
        each.name == "negation"
        and any(0 < each.first - name <= _NEAR and each.first in question.clause(name) for name in names)
        for each in question.found
    )


def _asks_how_long(question: Question) -> bool:
    """Return whether a question continues an answer about trouble: "since when?", "since when is that so"."""
    said = any(each in question.text for each in SINCE_WHEN)
    return said and (question.asks("follow_up") or len(question.words) <= _MOST_BARE)


def _asks_for_things(question: Question) -> bool:
    """Return whether a question asks for objects of a kind: "which pods", "list all deployments"."""
    listed = (each for each in question.found if each.sense == "concept" and each.name == "list")
    nouns = {each.first for each in question.found if each.sense in ("kind", "word")}
    return any(not nouns.isdisjoint(range(each.last + 1, each.last + 4)) for each in listed)
