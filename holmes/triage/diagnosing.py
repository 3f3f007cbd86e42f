"""Calls `kubernetes_diagnose` and reads its report, also when that was too large for the conversation.

Called by the plans. A report that was spilled is read back with jq, smaller with each attempt; a call that failed is a
value with its reason, never a report without incidents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.citing import Source, source_of
from holmes.triage.lookups import DIAGNOSE_TOOL
from holmes.triage.markdown import one_line
from holmes.values.findings_json import report_from_json

if TYPE_CHECKING:
    from holmes.triage.conversation import Outcome
    from holmes.triage.lookups import Lookups
    from holmes.values.findings import DiagnosisReport

_READ_BACK: Final = (
    "(.incidents // []) as $all | .omitted = ((.omitted // 0) + ([($all | length) - {incidents}, 0] | max)) "
    "| .incidents = [$all[:{incidents}][] | .findings = ((.findings // [])[:{findings}]) "
    "| .symptoms = ((.symptoms // [])[:{findings}]) | .affected = ((.affected // [])[:20])] "
    "| .not_checked = ((.not_checked // [])[:20])"
)
_ATTEMPTS: Final = ((40, 6), (10, 3), (3, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """A report, and where its lines can be cited."""

    report: DiagnosisReport
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDiagnosed:
    """There is no report. `reason` is one line."""

    reason: str


def diagnose(lookups: Lookups, namespace: str = "", resource: str = "") -> Diagnosed | NotDiagnosed:
    """The diagnosis of `namespace` (`*` for the whole cluster, empty for the default). Raises `Waiting`."""
    outcome = lookups.ask(DIAGNOSE_TOOL, namespace=namespace, resource=resource)
    if outcome.failed:
        return NotDiagnosed(reason=outcome.reason)
    if not outcome.partial:
        return _read(outcome.text, source_of(outcome))
    return _read_back(lookups, outcome)


def _read(text: str, source: Source) -> Diagnosed | NotDiagnosed:
    try:
        return Diagnosed(report=report_from_json(text), source=source)
    except ValueError as error:
        return NotDiagnosed(reason=f"the answer of {DIAGNOSE_TOOL} could not be read: {one_line(str(error), 300)}")


def _read_back(lookups: Lookups, outcome: Outcome) -> Diagnosed | NotDiagnosed:
    """The report from the store: most of it, then less of it."""
    failed = NotDiagnosed(reason=f"the answer of {DIAGNOSE_TOOL} is no longer in the conversation")
    if not outcome.stored_id:
        return failed
    for incidents, findings in _ATTEMPTS:
        expression = _READ_BACK.replace("{incidents}", str(incidents)).replace("{findings}", str(findings))
        answer = lookups.query(outcome, expression)
        if answer.failed:
            return NotDiagnosed(reason=f"the stored diagnosis could not be read back: {answer.reason}")
        found = _read(answer.text, Source(result_id=outcome.stored_id))
        if isinstance(found, Diagnosed):
            return found
        failed = found
    return failed
