"""Formats a scan report as JUnit XML, which CI systems display as test results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from holmes.cli.render.scan_notes import notes_of
from holmes.values.fixes import fix_lines

if TYPE_CHECKING:
    from holmes.values.findings import DiagnosisReport, Incident

_SUITE: Final = "holmes scan"
_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""


def junit_report(report: DiagnosisReport) -> str:
    """Return the report as JUnit XML.

    Each incident is a failed test, or a passed one with severity `info`. Each kind without incidents is a passed test,
    and each check that could not run and each limit of the scope is a skipped test.
    """
    cases = [
        *map(_of_incident, report.incidents),
        *(_case(each.kind, f"{each.total} checked") for each in report.checked if not each.affected),
        *(_skipped("scope", note) for note in notes_of(report)),
        *(_skipped(each.what, each.why) for each in report.not_checked),
    ]
    failures = sum(each.find("failure") is not None for each in cases)
    skipped = sum(each.find("skipped") is not None for each in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
    suite = ET.Element(
        "testsuite",
        {
            "name": f"{_SUITE} {report.cluster}".rstrip(),
            "timestamp": report.taken_at,
            "time": f"{report.cost.seconds:.1f}",
            **counts,
        },
    )
    suite.extend(cases)
    root = ET.Element("testsuites", counts)
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _case(group: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": _valid(group), "name": _valid(name)})


def _skipped(what: str, why: str) -> ET.Element:
    case = _case("not checked", what)
    ET.SubElement(case, "skipped", {"message": _valid(why)})
    return case


def _of_incident(incident: Incident) -> ET.Element:
    case = _case(incident.culprit.kind, f"{incident.culprit}: {incident.title}")
    if incident.severity == "info":
        ET.SubElement(case, "system-out").text = _valid(incident.cause)
        return case
    failure = ET.SubElement(case, "failure", {"type": incident.severity, "message": _valid(incident.title)})
    failure.text = _valid("\n".join(_details(incident)))
    return case


def _details(incident: Incident) -> list[str]:
    return [
        incident.cause,
        *(f"{each.object} {each.path} = {each.value}" for each in incident.evidence),
        *([f"since {incident.since}"] if incident.since else []),
        *(f"fix: {line}" for line in fix_lines(incident.fix)),
        *(f"next: {check}" for check in incident.next_checks),
        f"id: {incident.id}",
    ]


def _valid(text: str) -> str:
    return _INVALID.sub("\ufffd", text)
