"""The sentences before a report: what was not found, what does not exist, what that does not mean. Called by `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.markdown import code, counted, one_line, plain, sentence
from holmes.triage.objects import WHOLE_CLUSTER
from holmes.triage.report import object_list
from holmes.triage.words import SYMPTOMS

if TYPE_CHECKING:
    from holmes.triage.objects import Located
    from holmes.triage.question import Question
    from holmes.triage.scope import Scope
    from holmes.values.findings import DiagnosisReport


_NEEDED: Final = ("Pod", "Deployment")
"""Kinds without which a diagnosis has seen next to nothing."""


def missing_object_text(located: Located, scope: Scope) -> str:
    """That a named object does not exist, with the nearest names; or that this could not be looked up."""
    if located.state == "unknown" or located.missing is None:
        reason = one_line(located.reason, 240) or "no tool can look it up"
        return f"Whether {code(scope.names[0].name)} exists could not be looked up: {sentence(plain(reason))}"
    named = located.missing
    if named.name == scope.guess:
        nearest = f" The nearest namespace is {code(scope.nearest[0])}." if scope.nearest else ""
        return f"**There is no namespace and no object called {code(named.name)}.**{nearest}"
    kind = f"{named.kind} " if named.kind else ""
    text = f"**There is no {kind}{code(named.name)} {scope.spoken}.**"
    if located.nearest:
        return f"{text} The nearest names are {object_list(located.nearest)}."
    return f"{text} No name is like it."


def missing_namespace_text(scope: Scope) -> str:
    """That the namespace of the question does not exist; empty when it does."""
    if not scope.missing:
        return ""
    nearest = f" The nearest are {', '.join(map(code, scope.nearest))}." if scope.nearest else ""
    return f"**There is no namespace {code(scope.missing)}.**{nearest} So this is about what was found {scope.spoken}."


def nothing_found_text(report: DiagnosisReport, scope: Scope) -> str:
    """That no incident was found, and how much that says."""
    unseen = [kind for kind in _NEEDED if any(kind in each.kinds for each in report.not_checked)]
    if unseen:
        kinds = " and ".join(counted(2, kind).partition(" ")[2] for kind in unseen)
        return f"**Nothing can be said about what is broken {spoken_place(report, scope)}**: {kinds} could not be read."
    text = f"**Nothing broken was found {spoken_place(report, scope)}.**"
    if report.complete:
        return f"{text} All rules could be checked; a fault that leaves no trace in the cluster is not seen."
    return f"{text} Not everything could be checked (see below), so this does not mean that all is healthy."


def spoken_place(report: DiagnosisReport, scope: Scope) -> str:
    """For people: what the report is about."""
    if report.namespaces:
        return f"in {', '.join(code(each) for each in report.namespaces[:6])}"
    return "in the whole cluster" if scope.namespace in ("", WHOLE_CLUSTER) else scope.spoken


def spoken_symptoms(question: Question) -> str:
    """The words of the question that name a symptom."""
    said = (word for symptom in SYMPTOMS if symptom.name in question.symptoms for word in symptom.said)
    return ", ".join(code(word) for word in dict.fromkeys(said) if question.says(word))


def paragraphs(*parts: str) -> str:
    """The parts that say something, as paragraphs."""
    return "\n\n".join(part for part in parts if part)
