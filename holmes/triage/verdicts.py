"""What is said besides a report: what was not found, what does not exist, what that does not mean.

Without a diagnosis, because its tool is missing or failed: what the plain tools show, and that it is no verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import source_of
from holmes.triage.details import EVENTS_TOOL
from holmes.triage.lookups import DIAGNOSE_TOOL
from holmes.triage.markdown import code, counted, fenced, one_line, plain, sentence
from holmes.triage.objects import GET_TOOL, WHOLE_CLUSTER
from holmes.triage.report import NO_LLM, object_list
from holmes.triage.words import SYMPTOMS
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.triage.conversation import Outcome
    from holmes.triage.lookups import Lookups
    from holmes.triage.objects import Located, Scope
    from holmes.triage.question import Question
    from holmes.values.findings import DiagnosisReport
    from holmes.values.json_types import JsonValue

_NEEDED: Final = ("Pod", "Deployment")
"""Kinds without which a diagnosis has seen next to nothing."""

_MOST_LINES_SHOWN = 25
_NOT_RUNNING = "status.phase!=Running,status.phase!=Succeeded"
_NO_TOOLS = (
    "No tool that reads the cluster is available here, so nothing was looked at. `holmes toolset list` says which "
    "toolsets are missing and why."
)


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


def answer_undiagnosed(lookups: Lookups, scope: Scope, reason: str) -> str:
    """What could be seen all the same. Raises `Waiting`."""
    namespace = scope.namespace or WHOLE_CLUSTER
    calls: tuple[tuple[str, str, dict[str, JsonValue]], ...] = (
        ("Pods that do not run", GET_TOOL, {"kind": "pods", "namespace": namespace, "field_selector": _NOT_RUNNING}),
        ("Warnings", EVENTS_TOOL, {"namespace": namespace, "warnings_only": True}),
    )
    parts = [f"**The cluster could not be diagnosed**: {sentence(plain(reason))}"]
    for _, tool, arguments in calls:
        lookups.want(tool, **arguments)
    for title, tool, arguments in calls:
        if not lookups.has(tool):
            continue
        outcome = lookups.ask(tool, **arguments)
        if outcome.failed:
            parts.append(f"{title}: not read: {sentence(plain(outcome.reason))}")
        elif outcome.status == "success":
            parts.append(f"**{title}**, as they are:\n{cited_excerpt(outcome)}")
        else:
            parts.append(f"{title}: none were found.")
    if not (lookups.has(DIAGNOSE_TOOL) or lookups.has(GET_TOOL)):
        parts.append(_NO_TOOLS)
    return "\n\n".join((*parts, "Without a diagnosis this says nothing about causes.", NO_LLM))


def cited_excerpt(outcome: Outcome, *, most_lines: int = _MOST_LINES_SHOWN) -> str:
    """The first lines of a result as a code block with its citation, which proves the lines that are shown."""
    source = source_of(outcome)
    shown = min(most_lines, outcome.text.rstrip().count("\n") + 1)
    marker = source.marker(1, shown) if source.lines else source.marker(1)
    return f"{excerpt(outcome.text, most_lines=most_lines)}\n{marker.strip()}".rstrip()


def excerpt(text: str, *, most_lines: int = _MOST_LINES_SHOWN) -> str:
    """The first lines of a result as a code block."""
    lines = text.rstrip().split("\n")
    more = [f"... {len(lines) - most_lines} more lines"] if len(lines) > most_lines else []
    return fenced([shortened(line, 400) for line in lines[:most_lines]] + more)
