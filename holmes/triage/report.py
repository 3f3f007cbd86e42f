"""Writes the report for a `why` question: root cause, evidence, symptoms, next commands.

The same findings always produce the same text. This module also writes the answers for objects that were not found, for
scopes without incidents, and for a cluster that could not be diagnosed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import DIAGNOSE_TOOL, source_of
from holmes.triage.details import EVENTS_TOOL
from holmes.triage.markdown import code, counted, fenced, fix_commands, look_commands, one_line, plain, sentence
from holmes.triage.objects import GET_TOOL, WHOLE_CLUSTER
from holmes.triage.words import SYMPTOMS
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.conversation import Lookups, Outcome, Source
    from holmes.triage.details import Details
    from holmes.triage.matching import Match
    from holmes.triage.objects import Located, Scope
    from holmes.triage.question import Question
    from holmes.values.findings import DiagnosisReport, Finding, Incident, ObjectRef
    from holmes.values.json_types import JsonValue


NO_LLM: Final = "No LLM was used: this answer comes from the built-in rules of Holmes (builtin/triage)."
_MOST_EVIDENCE = 6
_SAME_CHARACTERS = 60
_MOST_SYMPTOMS = 6
_MOST_OTHERS = 6
_MOST_AFFECTED = 8
_SENTENCE_CHARACTERS = 400
_MOST_NOT_CHECKED = 8
_MOST_KINDS_NAMED = 16
_LEADS: Final = {
    "affected": "{named} is affected.",
    "symptom": "{named} shows the symptom but is not the cause.",
    "dependency": "{named} is on the path from the cause to the symptom.",
}
_NEEDED: Final = ("Pod", "Deployment")
"""Kinds that a diagnosis must be able to read. Without them, an empty result is not evidence of a healthy cluster."""
_MOST_LINES_SHOWN = 25
_NOT_RUNNING = "status.phase!=Running,status.phase!=Succeeded"
_NO_TOOLS = (
    "No tool that reads the cluster is available, so the cluster was not read. `holmes toolset list` shows which "
    "toolsets are unavailable and why."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """The content of a report.

    `focus` is the incident that answers the question, and `others` contains the other incidents. `lead` is the first
    paragraph. `further_failures` contains failed lookups that the diagnosis does not report.
    """

    report: DiagnosisReport
    source: Source
    scope: Scope
    focus: Match | None
    others: tuple[Incident, ...]
    details: Details | None = None
    lead: str = ""
    others_title: str = "Other incidents"
    further_failures: tuple[str, ...] = ()


def report_text(story: ReportContent) -> str:
    """Format the report as Markdown."""
    parts: list[str] = [story.lead]
    if story.focus is not None:
        incident = story.focus.incident
        parts += [
            _answer(story, story.focus),
            _evidence(story, incident),
            _chain(incident),
            _changed(incident),
        ]
    parts += [others_text(story.others, story.report.omitted, story.others_title)]
    parts += [checked_text(story.report, story.scope), not_checked_text(story)]
    if story.focus is not None:
        parts.append(_commands(story.focus.incident))
    return "\n\n".join(part for part in (*parts, NO_LLM) if part)


def _answer(story: ReportContent, match: Match) -> str:
    """Write the root cause in one or two sentences. The citation covers only the rule's sentence."""
    incident = match.incident
    cause = sentence(_with_object(incident.cause or incident.title, incident.culprit))
    marker = story.source.of_value("cause", incident.cause) if incident.cause else ""
    heading = "Root cause" if incident.severity != "info" else "Not a fault"
    text = f"**{heading}** ({incident.severity}): {cause}{marker}"
    if str(incident.culprit) not in incident.cause:
        text += f" Culprit: {code(str(incident.culprit))}."
    if incident.since:
        text += f" Since {plain(incident.since)}."
    if match.named is not None and match.relation in _LEADS and match.named != incident.culprit:
        text += " " + _LEADS[match.relation].replace("{named}", code(str(match.named)))
    return text


def _with_object(text: str, ref: ObjectRef) -> str:
    """Return `text` as running text, with the object name as a code span."""
    before, name, after = text.partition(str(ref))
    if not name:
        return plain(text)
    return f"{_joined(before)}{code(name)}{_joined(after)}"


def _joined(text: str) -> str:
    """Escape `text` as `plain` does, but keep one space at each end where `text` has white space."""
    start = " " if text[:1].isspace() else ""
    return f"{start}{plain(text)}{' ' if text[-1:].isspace() and text.strip() else ''}"


def _evidence(story: ReportContent, incident: Incident) -> str:
    """List the evidence: values that the rules read, and lines of logs and events."""
    details = story.details
    read = tuple(one_line(line.text) for _, line in details.log_lines) if details is not None else ()
    lines = []
    for evidence in incident.evidence[:_MOST_EVIDENCE]:
        head = one_line(evidence.value)[:_SAME_CHARACTERS]
        if evidence.path.startswith("log of") and head and any(head in line for line in read):
            continue  # the full line with its time is added below
        shown = f"{plain(str(evidence.object))}, {code(evidence.path)}: {code(evidence.value or '(empty)')}"
        lines.append(f"- {shown}{story.source.of_evidence(evidence)}")
    if details is not None:
        lines += [f"- log of {plain(str(ref))}: {code(line.text)}{line.marker}" for ref, line in details.log_lines]
        lines += [f"- event of {plain(str(ref))}: {code(line.text)}{line.marker}" for ref, line in details.events]
    return _section("Evidence", dict.fromkeys(lines))


def _chain(incident: Incident) -> str:
    """List the symptoms that follow from the cause."""
    lines = [_finding_line(finding) for finding in incident.findings[1:_MOST_SYMPTOMS]]
    lines += [_finding_line(finding) for finding in incident.symptoms[:_MOST_SYMPTOMS]]
    left = len(incident.symptoms) - _MOST_SYMPTOMS
    if left > 0:
        lines.append(f"- and {counted(left, 'more symptom')}")
    affected = [ref for ref in incident.affected if ref != incident.culprit]
    if affected:
        shown = ", ".join(code(str(ref)) for ref in affected[:_MOST_AFFECTED])
        more = f" and {len(affected) - _MOST_AFFECTED} more" if len(affected) > _MOST_AFFECTED else ""
        pods = f" ({counted(incident.affected_pods, 'pod')})" if incident.affected_pods else ""
        lines.append(f"- affected: {shown}{more}{pods}")
    elif incident.affected_pods:
        lines.append(f"- affected: {counted(incident.affected_pods, 'pod')}")
    return _section("Symptoms", lines)


def _finding_line(finding: Finding) -> str:
    others = f" (and {counted(finding.subjects - 1, 'similar object')})" if finding.subjects > 1 else ""
    return f"- {_told(finding.subject, finding.cause or finding.title, others)}"


def _told(ref: ObjectRef, text: str, more: str = "") -> str:
    """Write a sentence that mentions the object only once."""
    if str(ref) in text and not more:
        return sentence(_with_object(text, ref))
    return f"{code(str(ref))}{more}: {sentence(plain(text, _SENTENCE_CHARACTERS))}"


def _changed(incident: Incident) -> str:
    lines = [
        f"- {plain(change.at)} {code(str(change.object))}: {plain(change.what)}"
        for change in incident.changed_before[:5]
    ]
    return _section("Recent changes (correlated, not proven)", lines)


def others_text(others: Sequence[Incident], omitted: int, title: str) -> str:
    """List the other incidents, one line each."""
    lines = [f"- {each.severity}: {_told(each.culprit, each.cause or each.title)}" for each in others[:_MOST_OTHERS]]
    left = len(others) - _MOST_OTHERS + omitted if len(others) > _MOST_OTHERS else omitted
    if left > 0:
        lines.append(f"- and {counted(left, 'more incident')}; name a namespace or an object to see them")
    return _section(title, lines)


def checked_text(report: DiagnosisReport, scope: Scope) -> str:
    """Write a paragraph that states how many checked objects of each kind have no incident."""
    shown = [each for each in report.checked if each.total]
    if not shown:
        return ""
    counts = ", ".join(
        f"{counted(each.total - each.affected, each.kind)}{f' (of {each.total:,})' if each.affected else ''}"
        for each in shown
        if each.total > each.affected
    )
    if not counts:
        return ""
    place = _spoken_namespaces(report) or scope.spoken
    rules = counted(report.rules_run, "rule")
    return f"**Checked, no incidents**: {counts}; {rules} {place}, {plain(report.taken_at)}."


def _spoken_namespaces(report: DiagnosisReport) -> str:
    if not report.namespaces:
        return "in the whole cluster"
    return f"in {', '.join(code(each) for each in report.namespaces[:6])}"


def not_checked_text(story: ReportContent) -> str:
    """Write the section about checks that were not possible."""
    gaps = story.report.not_checked
    forbidden = [plain(each.what) for each in gaps if each.why.lower().startswith("forbidden")]
    others = [each for each in gaps if not each.why.lower().startswith("forbidden")]
    lines = [f"- {plain(each.what)}: {plain(each.why, 240)}" for each in others[:_MOST_NOT_CHECKED]]
    if len(others) > _MOST_NOT_CHECKED:
        lines.append(f"- and {len(others) - _MOST_NOT_CHECKED} more")
    if forbidden:
        more = f" and {len(forbidden) - _MOST_KINDS_NAMED} more" if len(forbidden) > _MOST_KINDS_NAMED else ""
        lines.append(f"- Holmes is not allowed to read: {', '.join(forbidden[:_MOST_KINDS_NAMED])}{more}")
    failures = (*story.further_failures, *(story.details.failures if story.details is not None else ()))
    lines += [f"- {plain(each, 300)}" for each in failures]
    return _section("Not checked (may also be broken)", lines)


def _commands(incident: Incident) -> str:
    commands, looks = look_commands(incident)
    lines = ["# inspect (read-only)", *commands]
    fixes = fix_commands(incident)
    if fixes:
        lines += ["# likely fix (not executed)", *fixes]
    text = f"**Next commands**\n{fenced(lines, 'sh')}"
    return "\n".join((text, *(f"- {plain(each, 400)}" for each in looks)))


def _section(title: str, lines: Sequence[str] | dict[str, None]) -> str:
    return "\n".join((f"**{title}**", *lines)) if lines else ""


def object_list(refs: Sequence[ObjectRef]) -> str:
    """List objects as `Deployment shop/checkout`, `Service shop/checkout`.

    An object of an unknown kind appears with its name only.
    """
    return ", ".join(code(ref.name if ref.kind == "object" else str(ref)) for ref in refs)


def missing_object_text(located: Located, scope: Scope) -> str:
    """Write the answer for a named object that was not found or could not be looked up."""
    if located.state == "unknown" or located.missing is None:
        reason = one_line(located.reason, 240) or "no suitable tool is available"
        return f"Could not check whether {code(scope.names[0].name)} exists: {sentence(plain(reason))}"
    named = located.missing
    if named.name == scope.guess:
        nearest = f" Did you mean namespace {code(scope.nearest[0])}?" if scope.nearest else ""
        return f"**No namespace or object named {code(named.name)} found.**{nearest}"
    kind = f"{named.kind} " if named.kind else ""
    text = f"**{kind}{code(named.name)} not found {scope.spoken}.**"
    if located.nearest:
        return f"{text} Did you mean {object_list(located.nearest)}?"
    return f"{text} No similar name found."


def missing_namespace_text(scope: Scope) -> str:
    """Write the answer for a namespace that does not exist. Returns an empty string if it exists."""
    if not scope.missing:
        return ""
    nearest = f" Did you mean {', '.join(map(code, scope.nearest))}?" if scope.nearest else ""
    return f"**Namespace {code(scope.missing)} not found.**{nearest} Searched {scope.spoken} instead."


def nothing_found_text(report: DiagnosisReport, scope: Scope) -> str:
    """Write the answer if no incident was found, with the limits of the diagnosis."""
    unseen = [kind for kind in _NEEDED if any(kind in each.kinds for each in report.not_checked)]
    if unseen:
        kinds = " and ".join(counted(2, kind).partition(" ")[2] for kind in unseen)
        return f"**No diagnosis possible {spoken_place(report, scope)}**: {kinds} could not be read."
    text = f"**No faults found {spoken_place(report, scope)}.**"
    if report.complete:
        return f"{text} All rules ran. Faults that leave no trace in the cluster are not detected."
    return f"{text} Some checks were not possible (see below), so faults may remain undetected."


def spoken_place(report: DiagnosisReport, scope: Scope) -> str:
    """Return the scope of the report as a phrase."""
    if report.namespaces:
        return f"in {', '.join(code(each) for each in report.namespaces[:6])}"
    return "in the whole cluster" if scope.namespace in ("", WHOLE_CLUSTER) else scope.spoken


def spoken_symptoms(question: Question) -> str:
    """Return the words of the question that name a symptom."""
    said = (word for symptom in SYMPTOMS if symptom.name in question.symptoms for word in symptom.said)
    return ", ".join(code(word) for word in dict.fromkeys(said) if question.says(word))


def paragraphs(*parts: str) -> str:
    """Join the parts that are not empty into paragraphs."""
    return "\n\n".join(part for part in parts if part)


def answer_undiagnosed(lookups: Lookups, scope: Scope, reason: str) -> str:
    """Write the answer if the diagnosis failed, with warnings and the pods that are not running. Raises `Waiting`."""
    namespace = scope.namespace or WHOLE_CLUSTER
    calls: tuple[tuple[str, str, dict[str, JsonValue]], ...] = (
        (
            "Pods that are not running",
            GET_TOOL,
            {"kind": "pods", "namespace": namespace, "field_selector": _NOT_RUNNING},
        ),
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
            parts.append(f"**{title}** could not be read: {sentence(plain(outcome.reason))}")
        elif outcome.status == "success":
            parts.append(f"**{title}**:\n{cited_excerpt(outcome)}")
        else:
            parts.append(f"**{title}**: none found.")
    if not (lookups.has(DIAGNOSE_TOOL) or lookups.has(GET_TOOL)):
        parts.append(_NO_TOOLS)
    return "\n\n".join((*parts, "Without a diagnosis, the cause cannot be determined.", NO_LLM))


def cited_excerpt(outcome: Outcome, *, most_lines: int = _MOST_LINES_SHOWN) -> str:
    """Format the first lines of a result as a code block, and cite these lines."""
    source = source_of(outcome)
    shown = min(most_lines, outcome.text.rstrip().count("\n") + 1)
    marker = source.marker(1, shown) if source.lines else source.marker(1)
    return f"{excerpt(outcome.text, most_lines=most_lines)}\n{marker.strip()}".rstrip()


def excerpt(text: str, *, most_lines: int = _MOST_LINES_SHOWN) -> str:
    """Format the first lines of a result as a code block."""
    lines = text.rstrip().split("\n")
    more = [f"... {len(lines) - most_lines} more lines"] if len(lines) > most_lines else []
    return fenced([shortened(line, 400) for line in lines[:most_lines]] + more)
