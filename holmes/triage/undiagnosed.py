"""Answers a `why` question when there is no diagnosis: what the plain tools show, and that it is no verdict.

Called by `why` when the diagnosis tool is missing or failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.triage.citing import source_of
from holmes.triage.details import EVENTS_TOOL
from holmes.triage.lookups import DIAGNOSE_TOOL
from holmes.triage.markdown import fenced, plain, sentence
from holmes.triage.objects import GET_TOOL, WHOLE_CLUSTER
from holmes.triage.report import NO_LLM
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.triage.conversation import Outcome
    from holmes.triage.lookups import Lookups
    from holmes.triage.scope import Scope
    from holmes.values.json_types import JsonValue

_MOST_LINES_SHOWN = 25
_NOT_RUNNING = "status.phase!=Running,status.phase!=Succeeded"
_NO_TOOLS = (
    "No tool that reads the cluster is available here, so nothing was looked at. `holmes toolset list` says which "
    "toolsets are missing and why."
)


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
