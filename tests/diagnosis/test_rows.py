"""Every row of the catalogue fires on its faults, names culprit and value, and ignores similar healthy states."""

from __future__ import annotations

import pytest

from holmes.diagnosis.engine import all_rules, findings_of
from tests.diagnosis.row_cases import ROWS, RowCase, all_cases

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{case.rule_id}: {case.name}" for case in CASES])
def test_a_rule_fires_on_its_fault_and_not_on_what_only_looks_like_it(case: RowCase) -> None:
    rule = next(each for each in all_rules() if each.id == case.rule_id)
    found = findings_of(rule, case.state)
    if not case.fires:
        assert found == (), f"fires on a healthy state: {found}"
        return
    assert found, "does not fire"
    matching = [
        finding
        for finding in found
        if case.culprit in {"", str(finding.culprit)}
        and case.subject in {"", str(finding.subject)}
        and case.role in {"", finding.role}
        and case.severity in {"", finding.severity}
    ]
    assert matching, f"fires on another object: {[(str(each.culprit), str(each.subject)) for each in found]}"
    finding = matching[0]
    said = "\n".join(
        (finding.title, finding.cause, finding.next_check, *(f"{each.path} {each.value}" for each in finding.evidence))
    )
    for words in case.says:
        assert words in said, f"does not say {words!r}: {said}"
    for words in case.never_says:
        assert words not in said, f"says {words!r}: {said}"
    steps = "\n".join(f"{step.object} {step.path} {step.action}" for step in finding.fix)
    for words in case.fixes or ():
        assert words in steps, f"does not fix {words!r}: {steps}"
    assert case.fixes != () or not finding.fix, f"fixes: {steps}"
    for ref in case.because:
        assert ref in {str(each) for each in finding.because}
    assert not {*case.never_because} & {str(each) for each in finding.because}
    assert finding.evidence
    assert finding.cause


def test_every_rule_has_a_fault_and_a_healthy_look_alike() -> None:
    fires = {case.rule_id for case in CASES if case.fires}
    quiet = {case.rule_id for case in CASES if not case.fires}
    ids = {rule.id for rule in all_rules()}
    assert ids - fires == set(), "rules without a fault"
    assert ids - quiet == set(), "rules without a healthy look-alike"
    assert {path.stem for path in ROWS.glob("*.yaml")} - ids == set(), "cases of rules that do not exist"
