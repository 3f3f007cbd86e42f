"""Custom resources of well-known operators: failed, healthy, progressing and suspended are told apart."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from holmes.diagnosis.engine import all_rules, findings_of
from holmes.diagnosis.facts.custom_table import row_of, table
from holmes.values.findings import Finding
from tests.diagnosis.row_cases import state_of

_FILE: Final = Path(__file__).with_name("custom_status.yaml")
_CONDITION: Final = re.compile(r"(?P<type>[^=]+)=(?P<status>\w+) ?(?P<reason>[^:]*)(?:: (?P<message>.*))?")
_RULES: Final = [rule for rule in all_rules() if rule.id in {"G01", "G02", "G03"}]
_MINUTES: Final = 60
_HOURS: Final = 3600


@cache
def written() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(_FILE.read_text())
    return found


@dataclass(frozen=True, kw_only=True)
class Example:
    group: str
    kind: str
    outcome: str
    status: dict[str, Any]

    def findings(self, age: int) -> list[Finding]:
        """What the rules find when the object was made, and last changed, `age` seconds ago."""
        status = deepcopy(self.status)
        spec, annotations = status.pop("spec", {}), status.pop("annotations", {})
        if isinstance(status.get("conditions"), list):
            status["conditions"] = [_condition(each, age) for each in status["conditions"]]
        made = {
            "apiVersion": f"{self.group}/v1", "kind": self.kind, "spec": spec, "status": status,
            "metadata": {"name": "orders", "age": age, "generation": 1, "annotations": annotations},
        }  # fmt: skip
        state = state_of({"objects": [made]})
        return [finding for rule in _RULES for finding in findings_of(rule, state)]


def _condition(raw: Any, age: int) -> Any:  # noqa: ANN401  whatever YAML holds
    found = _CONDITION.fullmatch(raw) if isinstance(raw, str) else None
    said = {key: value for key, value in found.groupdict().items() if value} if found else raw
    return {**said, "lastTransitionTime": {"ago": age}}


def examples() -> list[Example]:
    return [
        Example(group=group, kind=kind, outcome=outcome, status=status)
        for name, outcomes in written().items()
        for group, _, kind in [name.partition("/")]
        for outcome, status in outcomes.items()
    ]


@pytest.mark.parametrize("each", examples(), ids=lambda each: f"{each.group}/{each.kind}: {each.outcome}")
def test_the_state_of_a_custom_resource_is_read_as_its_operator_means_it(each: Example) -> None:
    late = [finding for age in (2 * _HOURS, 23 * _HOURS) for finding in each.findings(age)]
    faults = [finding for finding in late if finding.severity != "info"]
    match each.outcome:
        case "bad" | "weak":
            assert {finding.severity for finding in faults} == {"critical" if each.outcome == "bad" else "warning"}
            assert "WHY" not in str(each.status) or "WHY" in faults[0].cause, faults[0].cause
            assert all(finding.evidence for finding in faults)
        case "good" | "quiet":
            assert late == []
            assert each.findings(3 * _MINUTES) == []
        case "slow":
            assert each.findings(3 * _MINUTES) == []
            assert {finding.severity for finding in each.findings(23 * _HOURS)} == {"warning"}
        case "held":
            assert [(finding.rule_id, finding.severity) for finding in late] == [("G03", "info")] * 2
        case _:
            pytest.fail(f"unknown outcome {each.outcome}")


def test_every_row_of_the_table_has_a_fault_and_a_healthy_object() -> None:
    told = {(name.partition("/")[0], name.partition("/")[2]): set(outcomes) for name, outcomes in written().items()}
    for (group, kind), row in table().items():
        # Kinds that share a row share the examples.
        alike = [told[key] for key in told if row_of(key[1], key[0]) == row]
        found = set[str]().union(*alike)
        assert "good" in found, f"{group}/{kind} has no healthy object"
        if row.fields or row.good or row.bad:
            assert found & {"bad", "weak", "slow", "held", "quiet"}, f"{group}/{kind} has no other object"
