"""Tells which questions about a named object complain about it: by trouble, or by what they deny or miss.

"web still shows the old page" asks why it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.complaints import TROUBLED_STATES, TROUBLED_SYMPTOMS
from holmes.triage.points import length_expression, seconds_of
from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_BAD: Final = frozenset({*TROUBLED_STATES, "restarting", "pending", "unbound"})
_COMPLAINTS: Final = TROUBLED_SYMPTOMS | {"dns"}
_ASKED: Final = ("count", "when", "exec", "port_forward", "permission", "events", "secret_value")
_ASKED_OF_SCOPES: Final = (*_ASKED, "list", "logs", "changes", "uses", "describe", "settings", "health")
_SOMETHING: Final = word_list("something")
_INDEFINITE: Final = word_list("indefinite")
_NEAR: Final = 3
_RHYTHM: Final = expression(
    rf"\b(?:every|each|alle|jede[nrs]?|cada|tou(?:te)?s les|chaque) {length_expression()}"
    r"|\b(?:clockwork|regularly|periodically|regelmassig|periodisch|regularmente|regulierement|at regular intervals"
    r"|hourly|stundlich)\b"
)
_INACCURACY: Final = 0.2


def blames(question: Question, subject: Subject) -> bool:
    """Return whether a question complains about its subject, and does not ask for a fact."""
    troubled = question.symptoms & _COMPLAINTS or question.asks("trouble") or not _BAD.isdisjoint(question.states)
    if not subject.named:  # "something in shop eats memory until it is killed"
        vague = not _SOMETHING.isdisjoint(question.words) or _means_one(question)
        return bool(subject.namespaces and vague and troubled) and not question.asks(*_ASKED_OF_SCOPES)
    unfulfilled = not word_list("unfulfilled").isdisjoint(question.words)
    calm = question.asks(*_ASKED) or asks_for_things(question)
    return bool(troubled or unfulfilled or is_denied(question, subject)) and not calm


def fits_rhythm(question: Question, interval_seconds: float | None) -> bool:
    """Return whether a question is about something regular, as regular as an interval if it says how often."""
    match = _RHYTHM.search(question.text)
    if match is None or interval_seconds is None:
        return False
    if not match["unit"]:
        return True
    said = seconds_of(match["number"] or "", match["unit"])
    return abs(said - interval_seconds) <= _INACCURACY * said


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


def asks_for_things(question: Question) -> bool:
    """Return whether a question asks for objects of a kind: "which pods", "list all deployments"."""
    negated = {each.last + 1 for each in question.found if each.sense == "concept" and each.name == "negation"}
    listed = (
        each for each in question.found
        if each.sense == "concept" and each.name == "list"
        and each.first not in negated and not question.words[each.first].startswith("exist")
    )  # fmt: skip
    nouns = {each.first for each in question.found if each.sense in ("kind", "word")}
    return any(
        nouns & {*range(each.last + 1, each.last + 1 + _NEAR)} & {*question.clause(each.last)} for each in listed
    )
