"""Makes a report fit into a number of tokens: the top incidents keep their evidence longest. Called by `toolset.py`."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.tokens import EstimatingCounter
from holmes.values.findings_json import report_to_json
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.findings import DiagnosisReport, Evidence, Finding, Incident

_SHORT_CHARACTERS: Final = 200
_FEW_PIECES: Final = 4
_FEW_NAMES: Final = 5


def fitting_json(report: DiagnosisReport, max_tokens: int) -> str:
    """The report as JSON of at most about `max_tokens`, estimated: a larger one is spilled like any other result.

    First symptoms become names, then evidence is cut, then the last incidents are told in one sentence, then they are
    left out and counted in `omitted`. One incident always stays.
    """
    counter = EstimatingCounter()

    def fits(text: str) -> bool:
        return counter.fits(text, max_tokens)

    written = report_to_json(report)
    for fewer in (_brief_symptoms, _brief_evidence):
        if fits(written):
            return written
        report = replace(report, incidents=tuple(fewer(incident) for incident in report.incidents))
        written = report_to_json(report)
    if fits(written) or not report.incidents:
        return written
    count = len(report.incidents)
    whole = _largest(1, count, lambda number: fits(_shortened(report, number, count)))
    told = _largest(whole, count, lambda number: fits(_shortened(report, whole, number)))
    return _shortened(report, whole, told)


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest number that fits, `least` when none does."""
    return max(least, least - 1 + bisect_left(range(least, most + 1), x=True, key=lambda number: not fits(number)))


def _shortened(report: DiagnosisReport, whole: int, told: int) -> str:
    """`whole` incidents as they are, the next ones up to `told` in a sentence, the rest as a number."""
    incidents = (*report.incidents[:whole], *(_sentence(incident) for incident in report.incidents[whole:told]))
    omitted = report.omitted + len(report.incidents) - told
    return report_to_json(replace(report, incidents=incidents, omitted=omitted))


def _brief_symptoms(incident: Incident) -> Incident:
    symptoms = tuple(replace(symptom, evidence=(), because=(), next_check="") for symptom in incident.symptoms)
    return replace(incident, symptoms=symptoms)


def _brief_evidence(incident: Incident) -> Incident:
    findings = tuple(_brief(finding) for finding in incident.findings[:_FEW_PIECES])
    symptoms = tuple(replace(symptom, cause="") for symptom in incident.symptoms[:_FEW_NAMES])
    return replace(incident, findings=findings, symptoms=symptoms, affected=incident.affected[:_FEW_NAMES])


def _brief(finding: Finding) -> Finding:
    return replace(finding, evidence=tuple(_cut(each) for each in finding.evidence[:_FEW_PIECES]), because=())


def _cut(evidence: Evidence) -> Evidence:
    return replace(evidence, value=shortened(evidence.value, _SHORT_CHARACTERS + 1))


def _sentence(incident: Incident) -> Incident:
    return replace(incident, findings=(), symptoms=(), affected=(), changed_before=())
