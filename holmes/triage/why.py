"""The plan for a `why` question: diagnose the scope, read details of the matching incident, and report.

The plan restarts for every request, and `Waiting` ends it while calls are pending. The answer never states that an
object is healthy. It states only that no faults were found and which checks were not possible. A stored report of
`kubernetes_diagnose` is read with jq. Each attempt reads a shorter form of the report, until the report can be parsed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import DIAGNOSE_TOOL, Outcome, Source, source_of
from holmes.triage.details import look_closer
from holmes.triage.markdown import code, counted, one_line, resource_path
from holmes.triage.matching import is_about, match_incidents
from holmes.triage.objects import WHOLE_CLUSTER, find_scope, locate
from holmes.triage.question import Named, parse_question
from holmes.triage.report import (
    ReportContent,
    answer_undiagnosed,
    excerpt,
    missing_namespace_text,
    missing_object_text,
    nothing_found_text,
    object_list,
    paragraphs,
    report_text,
    spoken_place,
    spoken_symptoms,
)
from holmes.values.findings import SEVERITIES
from holmes.values.findings_json import report_from_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.conversation import Lookups
    from holmes.triage.matching import Match
    from holmes.triage.objects import Located, Scope
    from holmes.triage.question import Question
    from holmes.values.findings import DiagnosisReport, ObjectRef

_READ_BACK: Final = (
    "(.incidents // []) as $all | .omitted = ((.omitted // 0) + ([($all | length) - {incidents}, 0] | max)) "
    "| .incidents = [$all[:{incidents}][] | .findings = ((.findings // [])[:{findings}]) "
    "| .symptoms = ((.symptoms // [])[:{findings}]) | .affected = ((.affected // [])[:20])] "
    "| .not_checked = ((.not_checked // [])[:20])"
)
_ATTEMPTS: Final = ((40, 6), (10, 3), (3, 2))
_NOTHING: Final = Outcome(tool="", status="no_data", text="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """A diagnosis report and its source for citations."""

    report: DiagnosisReport
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDiagnosed:
    """A failed diagnosis. `reason` is the error message, on one line."""

    reason: str


def diagnose(lookups: Lookups, namespace: str = "", resource: str = "") -> Diagnosed | NotDiagnosed:
    """Diagnose `namespace` (`*` for the whole cluster, empty for the default). Raises `Waiting`."""
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
        return NotDiagnosed(reason=f"the result of {DIAGNOSE_TOOL} could not be read: {one_line(str(error), 300)}")


def _read_back(lookups: Lookups, outcome: Outcome) -> Diagnosed | NotDiagnosed:
    """Read the stored report. If it cannot be parsed, try again with a shorter form of the report."""
    failed = NotDiagnosed(reason=f"the result of {DIAGNOSE_TOOL} is no longer in the conversation")
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


def answer_why(lookups: Lookups, question: Question) -> str:
    """Write the report for a `why` question. Raises `Waiting`."""
    return _answer_in(lookups, question, find_scope(lookups, question, by_diagnosis=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A diagnosis and its matches with the question. `matches` contains all incidents, best match first."""

    question: Question
    scope: Scope
    diagnosis: Diagnosed
    matches: Sequence[Match]

    def report(
        self,
        lookups: Lookups,
        focus: Match | None,
        *leads: str,
        others_title: str = "Other incidents",
        failures: tuple[str, ...] = (),
    ) -> str:
        """Write the report with details of `focus` and one line for each other incident."""
        answered = focus.incident.id if focus is not None else ""
        others = tuple(each for each in self.diagnosis.report.incidents if each.id != answered)
        source = self.diagnosis.source
        if focus is not None and not focus.incident.findings:
            focus, source = _in_full(lookups, focus, source)
        return report_text(
            ReportContent(
                report=self.diagnosis.report,
                source=source,
                scope=self.scope,
                focus=focus,
                others=others,
                details=look_closer(lookups, focus.incident, focus.named) if focus is not None else None,
                lead=paragraphs(missing_namespace_text(self.scope), *leads),
                others_title=others_title,
                further_failures=failures,
            )
        )


def _answer_in(lookups: Lookups, question: Question, scope: Scope) -> str:
    diagnosis = diagnose(lookups, scope.namespace)
    if isinstance(diagnosis, NotDiagnosed):
        return answer_undiagnosed(lookups, scope, diagnosis.reason)
    matches = match_incidents(diagnosis.report.incidents, question, scope.names)
    case = _Case(question=question, scope=scope, diagnosis=diagnosis, matches=matches)
    focus = next(filter(is_about, matches), None)
    if focus is not None:
        return case.report(lookups, focus)
    return _answer_unmatched(lookups, case) if scope.names else _report_worst(lookups, case)


def _answer_unmatched(lookups: Lookups, case: _Case) -> str:
    """Write the answer if no incident involves the named objects.

    The objects are healthy, in another namespace, or missing.
    """
    scope = case.scope
    located = locate(lookups, scope.names, scope.namespace)
    if located.state == "found":
        return _report_healthy(lookups, case, located)
    if located.state == "missing" and _may_widen(case):
        return _answer_in(lookups, case.question, replace(scope, namespace=WHOLE_CLUSTER))
    if any(each.certain for each in scope.names):
        lead = missing_object_text(located, scope)
        return case.report(lookups, None, lead, _if_nothing(case), others_title="Incidents")
    lead = missing_object_text(located, scope) if len(scope.names) == 1 else ""
    return _report_worst(lookups, case, lead)


def _in_full(lookups: Lookups, match: Match, source: Source) -> tuple[Match, Source]:
    """Return the incident with its evidence, and the source of this evidence.

    A long report contains only a summary of each incident. A narrower diagnosis therefore supplies the evidence.
    """
    culprit = match.incident.culprit
    closer = diagnose(lookups, culprit.namespace, resource_path(culprit))
    if isinstance(closer, Diagnosed):
        for incident in closer.report.incidents:
            if incident.id == match.incident.id:
                return replace(match, incident=incident), closer.source
    return match, source


def _may_widen(case: _Case) -> bool:
    """Return whether only the default namespace was read. If so, the object may be in another namespace."""
    chosen = case.question.namespace or case.scope.namespace == case.question.perhaps_namespace
    return bool(case.diagnosis.report.namespaces) and not chosen and case.scope.namespace != WHOLE_CLUSTER


def _report_worst(lookups: Lookups, case: _Case, first: str = "") -> str:
    """Report the incident that matches the question's symptom.

    If no incident matches, report the most severe incident, or state that no incident was found.
    """
    worst = next((match for match in case.matches if match.incident.severity != "info"), None)
    if worst is None:
        return case.report(
            lookups, None, first, nothing_found_text(case.diagnosis.report, case.scope), others_title="Notes"
        )
    lead = _found_text(case)
    if case.question.symptoms and not worst.symptoms:
        place = spoken_place(case.diagnosis.report, case.scope)
        lead = f"No incident matches {spoken_symptoms(case.question)}. The most severe incident {place} is:"
    return case.report(lookups, worst, first, lead)


def _found_text(case: _Case) -> str:
    """Return an introduction with the number of incidents, or an empty string if no introduction is needed."""
    severities = [match.incident.severity for match in case.matches]
    omitted = case.diagnosis.report.omitted
    if len(severities) + omitted < 2 or case.question.symptoms:
        return ""
    counts = [f"{number} {severity}" for severity in SEVERITIES if (number := severities.count(severity))]
    more = f" and {omitted} more" if omitted else ""
    place = spoken_place(case.diagnosis.report, case.scope)
    return f"{counted(len(severities), 'incident')}{more} {place} ({', '.join(counts)}). The most severe incident is:"


def _if_nothing(case: _Case) -> str:
    serious = any(match.incident.severity != "info" for match in case.matches)
    return "" if serious else nothing_found_text(case.diagnosis.report, case.scope)


def _report_healthy(lookups: Lookups, case: _Case, located: Located) -> str:
    """Write the answer for an object without incidents, with related objects and other incidents."""
    ref = located.objects[0]
    resource, related = resource_path(ref), located.about or _NOTHING
    closer = diagnose(lookups, ref.namespace, resource)
    if isinstance(closer, Diagnosed) and any(each.severity != "info" for each in closer.report.incidents):
        named = (Named(name=ref.name, kind=ref.kind, namespace=ref.namespace),)
        matches = match_incidents(closer.report.incidents, parse_question(""), named)
        concerned = replace(case, diagnosis=closer, matches=matches)
        lead = f"No fault was found in {code(str(ref))} itself, but a related object has a fault:"
        return concerned.report(lookups, matches[0], "" if is_about(matches[0]) else lead)
    shown = excerpt(related.text) if not related.failed and related.text.strip() else ""
    return replace(case, diagnosis=_with_gaps_of(case.diagnosis, closer)).report(
        lookups,
        None,
        _healthy_text(case, closer, located.objects),
        f"Related objects:\n{shown}" if shown else "",
        others_title="Incidents in other objects",
        failures=(f"diagnosis of {ref}: {closer.reason}",) if isinstance(closer, NotDiagnosed) else (),
    )


def _healthy_text(case: _Case, closer: Diagnosed | NotDiagnosed, objects: tuple[ObjectRef, ...]) -> str:
    text = f"**No faults found in {code(str(objects[0]))}.**"
    is_complete = case.diagnosis.report.complete and isinstance(closer, Diagnosed) and closer.report.complete
    if not is_complete:
        text += " Some checks were not possible (see below), so faults may remain undetected."
    if len(objects) > 1:
        text += f" Other matching objects: {object_list(objects[1:5])}."
    return text


def _with_gaps_of(diagnosis: Diagnosed, closer: Diagnosed | NotDiagnosed) -> Diagnosed:
    if isinstance(closer, NotDiagnosed):
        return diagnosis
    gaps = dict.fromkeys((*diagnosis.report.not_checked, *closer.report.not_checked))
    return replace(diagnosis, report=replace(diagnosis.report, not_checked=tuple(gaps)))
