"""Compares the result of a scan with the expectations of a scenario.

Only incidents of severity critical or warning count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from holmes.values.findings import SEVERITIES, DiagnosisReport, Incident, Severity
from tests.diagnosis.scenarios.model import Expectation, Expected, Places, Scenario, replace_placeholders


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The outcome of one scenario. When `error` is set, all other fields are empty.

    `culprit` and `value`: every expected incident is among the first ones and names the exact object, or the changed
    field or value. `blamed` are innocent culprits, `extra` other unexpected incidents. `refused` are the steps of fixes
    that the API server refuses.
    """

    scenario: str
    expectation: Expectation
    blind: bool
    error: str = ""
    shown: bool = True
    culprit: bool = False
    value: bool = False
    blamed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    expected: str = ""
    got: str = ""
    seconds: float = 0
    list_calls: int = 0
    requests: int = 0

    @property
    def right(self) -> bool:
        """Every expected incident was found, no innocent object is a culprit, and every fix can be applied."""
        found = self.expectation == "healthy" or (self.culprit and self.value)
        return self.shown and not self.error and found and not (self.blamed or self.refused)


def unjudged(scenario: Scenario, error: str, *, shown: bool) -> Score:
    """The score of a scenario that did not show its fault, or whose scan failed."""
    return Score(
        scenario=scenario.name,
        expectation=scenario.expectation,
        blind=scenario.header.blind,
        error=error,
        shown=shown,
        expected=_describe_expected(scenario),
    )


def judge(scenario: Scenario, report: DiagnosisReport, places: Places, *, top_only: bool = True) -> Score:
    """The score of one scan. Without `top_only`, the expected incidents may be anywhere among the severe ones."""
    header = scenario.header
    serious = tuple(each for each in report.incidents if each.severity != "info")
    culprit, value, matched = _best_match(header.expected, serious, places, top_only=top_only)
    others = tuple(each for each in serious if each not in matched)
    blamed = tuple(
        incident
        for incident in others
        if (scenario.expectation == "healthy" and _is_worse(incident, header.tolerated))
        or any(target.matches(incident.culprit, places) for target in header.innocent)
    )
    return Score(
        scenario=scenario.name,
        expectation=scenario.expectation,
        blind=header.blind,
        culprit=culprit,
        value=value,
        blamed=tuple(_describe(each) for each in blamed),
        extra=tuple(_describe(each) for each in others if each not in blamed),
        expected=_describe_expected(scenario),
        got=" | ".join(_describe(each) for each in report.incidents[: max(1, len(header.expected))]) or "nothing",
        seconds=report.cost.seconds,
        list_calls=report.cost.list_calls,
        requests=report.cost.requests,
    )


def _best_match(
    expected: Sequence[Expected], serious: Sequence[Incident], places: Places, *, top_only: bool
) -> tuple[bool, bool, tuple[Incident, ...]]:
    """Whether each expected incident has a separate match with the right culprit and the right words.

    The order of several expected incidents is free. Also returns the matched incidents.
    """
    best: tuple[bool, bool, tuple[Incident, ...]] = (False, False, ())
    candidates = serious[: len(expected)] if top_only else serious
    for chosen in permutations(candidates, len(expected)):
        pairs = tuple(zip(expected, chosen, strict=True))
        culprit = all(_names_culprit(each, incident, places) for each, incident in pairs)
        value = all(_names_values(each, incident, places) for each, incident in pairs)
        best = max(best, (culprit, value, chosen if culprit else ()), key=lambda one: one[:2])
    return best


def _names_culprit(expected: Expected, incident: Incident, places: Places) -> bool:
    return any(target.matches(incident.culprit, places) for target in expected.culprit)


def _names_values(expected: Expected, incident: Incident, places: Places) -> bool:
    words = _words(incident).casefold()
    wanted = ((each,) if isinstance(each, str) else each for each in expected.evidence)
    return all(any(replace_placeholders(one, places).casefold() in words for one in each) for each in wanted)


def _words(incident: Incident) -> str:
    lines = [incident.title, incident.cause]
    for finding in incident.findings:
        lines += [finding.title, finding.cause]
        lines += [f"{each.path} {each.value}" for each in finding.evidence]
    return "\n".join(lines)


def _is_worse(incident: Incident, tolerated: Severity) -> bool:
    return SEVERITIES.index(incident.severity) < SEVERITIES.index(tolerated)


def _describe(incident: Incident) -> str:
    return f"{incident.severity} {incident.rule_id} {incident.culprit}: {incident.cause}"


def _describe_expected(scenario: Scenario) -> str:
    parts = (
        f"{' or '.join(map(str, each.culprit))} with "
        + ", ".join(one if isinstance(one, str) else "/".join(one) for one in each.evidence)
        for each in scenario.header.expected
    )
    return "; ".join(parts) or "no incident"
