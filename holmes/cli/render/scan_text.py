"""Formats a scan report as text for a terminal, a ticket or a program."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from holmes.cli.render.scan_notes import empty_note, is_empty, place_of, young_note
from holmes.cli.render.terminal import counted, sanitized
from holmes.diagnosis.reports import compare
from holmes.kubernetes.fields import duration, moment
from holmes.values.findings import SEVERITIES
from holmes.values.findings_json import report_to_document, report_to_json
from holmes.values.fixes import fix_lines
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.findings import DiagnosisReport, Evidence, Incident

_WIDTH: Final = 118
_LABEL_WIDTH: Final = 10
_MOST_EVIDENCE: Final = 5
_MOST_NAMES: Final = 6
_MOST_GAPS: Final = 60
_FEW_GAPS: Final = 3
_CULPRIT_WIDTH: Final = 44
_LONGEST_VALUE: Final = 300
_COLOURS: Final = {"critical": "red", "warning": "yellow", "info": "cyan"}


def shown_report(
    report: DiagnosisReport,
    output: str,
    *,
    baseline: DiagnosisReport | None = None,
    narrowed: bool = False,
    colours: bool = False,
    width: int = 0,
) -> str:
    """Return the report in the format `output`, for example `table` with one line for each incident.

    `json`, `yaml` and `junit` do not show the baseline. `narrowed` is true if the scan was limited to some rules, kinds
    or objects. The lines of `table` are cut at `width` characters, unless it is 0.
    """
    match output:
        case "table":
            return "\n".join(_table(report, baseline, colours=colours, narrowed=narrowed, width=width))
        case "wide":
            return "\n".join(_wide(report, baseline, colours=colours, narrowed=narrowed))
        case "markdown":
            return sanitized("\n".join(_markdown(report, baseline, narrowed=narrowed)))
        case _:
            return _for_programs(report, output, baseline)


def _for_programs(report: DiagnosisReport, output: str, baseline: DiagnosisReport | None) -> str:
    match output:
        case "sarif":
            from holmes.cli.render.scan_sarif import sarif_report

            return sarif_report(report, baseline)
        case "junit":
            from holmes.cli.render.scan_junit import junit_report

            return junit_report(report)
        case "yaml":
            import yaml

            document = report_to_document(report)
            return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH).rstrip()
        case _:
            return report_to_json(report)


def headline(report: DiagnosisReport, *, narrowed: bool = False) -> str:
    """Return the headline, for example `3 incidents (2 critical, 1 warning) in namespace shop`.

    Never claims that all objects are healthy.
    """
    place = place_of(report)
    if not report.incidents:
        reservation = "" if report.complete else "; some checks could not run"
        if is_empty(report):
            return f"{empty_note(report)}{reservation}"
        chosen = " that match --kind, --selector, --rule or --severity" if narrowed else ""
        return f"No incidents found{chosen} {place}{reservation}"
    counts = Counter(incident.severity for incident in report.incidents)
    parts = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity])
    return f"{counted(len(report.incidents), 'incident')} ({parts}) {place}"


def _table(
    report: DiagnosisReport, baseline: DiagnosisReport | None, *, colours: bool, narrowed: bool, width: int
) -> Iterator[str]:
    """Yield one line for each incident: severity, culprit and the beginning of its cause."""
    yield from _heading(report, narrowed=narrowed)
    marks = dict.fromkeys(_marks(report, baseline), " NEW")
    rows = [
        (f"{each.severity.upper()}{marks.get(each.id, '')}", str(each.culprit), _cause(each), _COLOURS[each.severity])
        for each in report.incidents
    ]
    labels, culprits = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    if rows:
        yield ""
    for label, culprit, cause, colour in rows:
        line = sanitized(" ".join(f"{culprit:{min(culprits, _CULPRIT_WIDTH)}}  {cause}".split("\n")))
        shown = click.style(label.ljust(labels), fg=colour, bold=True) if colours else label.ljust(labels)
        yield f"{shown}  {shortened(line, max(_CULPRIT_WIDTH, width - labels - 2)) if width else line}"
    for line in _gone(report, baseline, narrowed=narrowed):
        yield sanitized(line)
    yield ""
    yield from _labelled("checked", (_counts(report),) if report.checked else ())
    yield from _labelled("too young", tuple(filter(None, (young_note(report),))))
    gaps = tuple(_gaps(report))
    more = (f"{len(gaps) - _FEW_GAPS} more; see -o wide",) if len(gaps) > _FEW_GAPS else ()
    yield from _labelled("not checked", (*gaps[:_FEW_GAPS], *more))
    if report.incidents:
        yield from _labelled("details", ("add -o wide",))


def _cause(incident: Incident) -> str:
    """Return the cause without the name of the culprit, which precedes it in the table."""
    text, culprit = incident.cause or incident.title, str(incident.culprit)
    return text.removeprefix(f"{culprit} ").removeprefix(f"{culprit}: ").replace(f" of {culprit}", "", 1)


def _heading(report: DiagnosisReport, *, narrowed: bool) -> Iterator[str]:
    cost = report.cost
    yield sanitized(headline(report, narrowed=narrowed))
    numbers = (counted(cost.list_calls, "list"), counted(cost.logs_read, "log"), counted(report.rules_run, "rule"))
    yield f"{', '.join(numbers)}, {cost.seconds:.1f} s"


def _wide(report: DiagnosisReport, baseline: DiagnosisReport | None, *, colours: bool, narrowed: bool) -> Iterator[str]:
    """Yield all details of each incident."""
    yield from _heading(report, narrowed=narrowed)
    marks = _marks(report, baseline)
    for incident in report.incidents:
        yield ""
        label = incident.severity.upper()
        shown = click.style(label, fg=_COLOURS[incident.severity], bold=True) if colours else label
        yield f"{shown}  {sanitized(incident.title)}  [{incident.id}]{marks.get(incident.id, '')}"
        yield from _labelled("culprit", (str(incident.culprit),))
        yield from _labelled("cause", (incident.cause,))
        yield from _labelled("evidence", tuple(map(_shown_evidence, _evidence(incident))))
        yield from _labelled("leads to", _consequences(incident))
        yield from _labelled("affects", (_names(incident),) if incident.affected else ())
        yield from _labelled("since", (_since(incident, report),) if incident.since else ())
        yield from _labelled(
            "changed", tuple(f"{each.at}  {each.object}: {each.what}" for each in incident.changed_before)
        )
        yield from (sanitized(f"  {'fix':{_LABEL_WIDTH + 1}} {line}") for line in fix_lines(incident.fix))
        yield from _labelled("next", incident.next_checks[:2])
    for line in _gone(report, baseline, narrowed=narrowed):
        yield sanitized(line)
    yield ""
    yield from _labelled("checked", (_counts(report),) if report.checked else ())
    yield from _labelled("too young", tuple(filter(None, (young_note(report),))))
    yield from _labelled("not checked", tuple(_gaps(report)))


def _markdown(report: DiagnosisReport, baseline: DiagnosisReport | None, *, narrowed: bool) -> Iterator[str]:
    yield f"# {headline(report, narrowed=narrowed)}"
    marks = _marks(report, baseline)
    for incident in report.incidents:
        yield ""
        yield f"## {incident.severity}: {incident.title}{marks.get(incident.id, '')}"
        yield f"`{incident.culprit}` · {incident.id}{f' · since {_since(incident, report)}' if incident.since else ''}"
        yield ""
        yield incident.cause
        yield ""
        for each in _evidence(incident):
            yield f"- `{each.object}` {each.path}: `{_short(each.value).replace('`', chr(39))}`"
        for consequence in _consequences(incident):
            yield f"- leads to: {consequence}"
        if incident.affected:
            yield f"- affects: {_names(incident)}"
        for change in incident.changed_before:
            yield f"- recent change ({change.at}): {change.object}: {change.what}"
        for line in fix_lines(incident.fix):
            yield f"- fix (not run): {line}"
        for check in incident.next_checks[:2]:
            yield f"- next: {check}"
    yield from _gone(report, baseline, narrowed=narrowed)
    yield ""
    if report.checked:
        yield f"Checked: {_counts(report)}."
    yield from (f"- too young: {note}" for note in filter(None, (young_note(report),)))
    yield from (f"- not checked: {gap}" for gap in _gaps(report))


def _gaps(report: DiagnosisReport) -> Iterator[str]:
    """Yield at most 60 of the checks that could not run."""
    for gap in report.not_checked[:_MOST_GAPS]:
        yield f"{gap.what}: {gap.why}"
    if len(report.not_checked) > _MOST_GAPS:
        yield f"{len(report.not_checked) - _MOST_GAPS:,} more; see -o json"


def _labelled(label: str, texts: tuple[str, ...]) -> Iterator[str]:
    """Yield wrapped texts, with a label before the first text."""
    indent = " " * (_LABEL_WIDTH + 4)
    for index, text in enumerate(texts):
        start = f"  {label if index == 0 else '':{_LABEL_WIDTH + 1}} "
        yield textwrap.fill(
            sanitized(" ".join(text.split())),
            _WIDTH,
            initial_indent=start,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _evidence(incident: Incident) -> tuple[Evidence, ...]:
    return incident.evidence[:_MOST_EVIDENCE]


def _shown_evidence(evidence: Evidence) -> str:
    return f"{evidence.object} {evidence.path} = {_short(evidence.value)}"


def _short(value: str) -> str:
    return shortened(value, _LONGEST_VALUE + 1)


def _consequences(incident: Incident) -> tuple[str, ...]:
    """Return the consequences of the cause: each workload with its most severe symptom."""
    told: dict[str, str] = {}
    for symptom in incident.symptoms:
        where = symptom.culprit if symptom.subject.kind in {"Pod", "ReplicaSet"} else symptom.subject
        told.setdefault(str(where), f"{where}: {symptom.title}")
    told.pop(str(incident.culprit), None)
    return tuple(told.values())[:_MOST_EVIDENCE]


def _names(incident: Incident) -> str:
    names = [str(ref) for ref in incident.affected if ref != incident.culprit] or [str(incident.culprit)]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    pods = f" ({counted(incident.affected_pods, 'pod')})" if incident.affected_pods else ""
    return ", ".join(names[:_MOST_NAMES]) + more + pods


def _since(incident: Incident, report: DiagnosisReport) -> str:
    since, now = moment(incident.since), moment(report.taken_at)
    ago = f" ({duration(now - since)} ago)" if since is not None and now is not None else ""
    return f"{incident.since}{ago}"


def _counts(report: DiagnosisReport) -> str:
    return ", ".join(
        f"{each.total} {_plural(each.kind) if each.total != 1 else each.kind}"
        f"{f' ({each.affected} affected)' if each.affected else ''}"
        for each in report.checked
    )


def _plural(kind: str) -> str:
    """Return the plural of a kind, for example `Pods`, `Ingresses` or `NetworkPolicies`."""
    if kind.endswith("y"):
        return f"{kind.removesuffix('y')}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _marks(report: DiagnosisReport, baseline: DiagnosisReport | None) -> dict[str, str]:
    if baseline is None:
        return {}
    return {incident.id: "  NEW" for incident in compare(baseline, report).new}


def _gone(report: DiagnosisReport, baseline: DiagnosisReport | None, *, narrowed: bool) -> Iterator[str]:
    if baseline is None:
        return
    compared = compare(baseline, report, narrowed=narrowed)
    for title, incidents in (
        (f"Resolved since the baseline of {baseline.taken_at}:", compared.gone),
        (f"Not scanned this time, but in the baseline of {baseline.taken_at}:", compared.unknown),
    ):
        if incidents:
            yield ""
            yield title
        for incident in incidents:
            yield f"- {' '.join(incident.title.split())}: {incident.culprit} [{incident.id}]"
