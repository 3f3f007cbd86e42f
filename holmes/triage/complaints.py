"""Tells complaints from questions of fact: "orders answers 503 since four, nothing was deployed" asks for a cause.

A complaint states trouble in a clause of its own. Beside it, a vague question such as "what is it" asks for nothing
else, but "how many pods does it have" does. A sentence about a named object complains also by what it denies or misses:
"web still shows the old page".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import sightings, symptoms_in, word_list, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_CLAUSE: Final = re.compile(r"[.,;!?()\n]+(?:\s|$)|:\s|\s(?:[-\u2013\u2014]|&)\s")
_STATUS: Final = re.compile(r"(?<![\w.:/-])[45](?:\d\d|xx)s?(?![\w.:/%-])")
_LEAST_WORDS: Final = 2
_LEADING: Final = 3
_TROUBLED: Final = frozenset({"trouble", "negation"})
_TROUBLED_STATES: Final = frozenset({"failing", "failed", "crashing", "not_ready", "evicted", "oom", "image_pull"})
_TROUBLED_SYMPTOMS: Final = frozenset({"crash", "unreachable", "slow", "evicted"})
"""Symptoms whose words tell of trouble. The words of others, for example `memory`, also name things."""
_FACTS: Final = frozenset({
    "count", "permission", "port_forward", "exec", "placement", "average", "sum", "percentile", "maximum", "minimum",
    "uses", "resources", "usage", "secret_value", "images", "when",
})  # fmt: skip
_BAD: Final = frozenset({*_TROUBLED_STATES, "restarting", "pending", "unbound"})
_COMPLAINTS: Final = _TROUBLED_SYMPTOMS | {"dns"}
_ASKED: Final = ("count", "when", "exec", "port_forward", "permission", "events", "secret_value")
_ASKED_OF_SCOPES: Final = (*_ASKED, "list", "logs", "changes", "uses", "describe", "settings", "health")
_SOMETHING: Final = word_list("something")
_INDEFINITE: Final = word_list("indefinite")
_NEAR: Final = 3


def complains(text: str) -> bool:
    """Return whether a folded question states trouble, and asks for no fact beside it."""
    clauses = [(words_of(each), each) for each in _CLAUSE.split(text)]
    clauses = [each for each in clauses if each[0]]
    stated = any(_states_trouble(words, clause) for words, clause in clauses)
    return stated and not _is_list(clauses[0][0]) and not any(_asks_fact(words) for words, _ in clauses)


def _states_trouble(words: Sequence[str], clause: str) -> bool:
    if len(words) < _LEAST_WORDS or _is_question(words) or _is_phrase(words):
        return False
    found = sightings(words)
    told = {each.name for each in found if each.sense == "concept"} & _TROUBLED
    told |= {each.name for each in found if each.sense == "state"} & _TROUBLED_STATES
    told |= (symptoms_in(words) & _TROUBLED_SYMPTOMS) | word_list("signs of trouble").intersection(words)
    return bool(told) or _STATUS.search(clause) is not None


def _is_question(words: Sequence[str]) -> bool:
    """Return whether a clause begins like a question or a request."""
    plain = [word for word in words if word not in word_list("fillers")] or words
    asks = word_list("interrogatives") | {"wann", "quand", "cuando", "when"}
    first = word_list("asking") | word_list("requests") | word_list("yes or no")
    return plain[0] in first or not asks.isdisjoint(plain[:_LEADING])


def _is_phrase(words: Sequence[str]) -> bool:
    """Return whether a clause only names objects or a measure: "pods without limits", "p95 latency of web"."""
    if not word_list("verbs of state").isdisjoint(words):
        return False
    first = [each for each in sightings(words) if each.first == 0]
    return any(each.sense in ("kind", "word", "state") or each.name in _FACTS for each in first)


def _is_list(words: Sequence[str]) -> bool:
    """Return whether a clause asks for a list or a measure without a verb of a question."""
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    return words[0] in word_list("requests") or (_is_phrase(words) and bool(concepts & _FACTS))


def _asks_fact(words: Sequence[str]) -> bool:
    """Return whether a clause asks for a fact: a number, a time or a command."""
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    return _is_question(words) and bool(concepts & _FACTS) and not concepts & {"why", "trouble"}


def blames(question: Question, subject: Subject) -> bool:
    """Return whether a question complains about its subject, and does not ask for a fact."""
    troubled = question.symptoms & _COMPLAINTS or question.asks("trouble") or not _BAD.isdisjoint(question.states)
    if not subject.named:  # "something in shop eats memory until it is killed"
        vague = not _SOMETHING.isdisjoint(question.words) or _means_one(question)
        return bool(subject.namespaces and vague and troubled) and not question.asks(*_ASKED_OF_SCOPES)
    unfulfilled = not word_list("unfulfilled").isdisjoint(question.words)
    calm = question.asks(*_ASKED) or _asks_for_things(question)
    return bool(troubled or unfulfilled or is_denied(question, subject)) and not calm


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


def _asks_for_things(question: Question) -> bool:
    """Return whether a question asks for objects of a kind: "which pods", "list all deployments"."""
    listed = (each for each in question.found if each.sense == "concept" and each.name == "list")
    nouns = {each.first for each in question.found if each.sense in ("kind", "word")}
    return any(not nouns.isdisjoint(range(each.last + 1, each.last + 4)) for each in listed)
