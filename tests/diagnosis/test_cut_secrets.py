"""No rule truncates a text so that half of a secret remains, which redaction would not recognise."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

import pytest

from holmes.diagnosis.engine import all_rules, findings_of
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.reports import masked_report
from holmes.kubernetes.cluster_state import ClusterState
from holmes.kubernetes.one_list import slim
from holmes.redaction.redactor import Redactor
from holmes.values.errors import mask_errors
from holmes.values.findings import DiagnosisReport, ScanCost
from holmes.values.findings_json import report_to_json
from tests.diagnosis.row_cases import ROWS, raw_cases, state_of

# Truncating a text anywhere cuts one of them in half. These are not real secrets.
TOKEN: Final = "ghp" + "_" + "a1B2c3D4e5F6" * 3
TOKENS: Final = " ".join([TOKEN] * 60)
_SPOKEN: Final = frozenset({"message", "value", "data", "args", "command", "annotations"})


@pytest.fixture
def redactor() -> Iterator[Redactor]:
    redactor = Redactor(b"k" * 16)
    mask_errors(redactor.redact)
    yield redactor
    mask_errors(None)


def _talkative(value: Any, *, spoken: bool = False) -> Any:  # noqa: ANN401  whatever YAML holds
    """A copy in which every free text is followed by tokens."""
    if isinstance(value, dict):
        return {key: _talkative(each, spoken=spoken or key in _SPOKEN) for key, each in value.items()}
    if isinstance(value, list):
        return [_talkative(each, spoken=spoken) for each in value]
    return f"{value} {TOKENS}" if spoken and isinstance(value, str) else value


def _state(raw: dict[str, Any]) -> ClusterState:
    talkative = {**raw, **{part: _talkative(raw.get(part, [])) for part in ("objects", "events")}}
    talkative["logs"] = {
        path: "\n".join(f"{line} {TOKENS}" if line.strip() else line for line in text.splitlines())
        for path, text in raw.get("logs", {}).items()
    }
    return state_of(copy.deepcopy(talkative))


def _report(rule_id: str, raw: dict[str, Any]) -> DiagnosisReport:
    state = _state(raw)
    rule = next(each for each in all_rules() if each.id == rule_id)
    return DiagnosisReport(
        taken_at="2026-11-22T05:00:00Z",
        namespaces=(),
        incidents=incidents_of(findings_of(rule, state), state),
        checked=(),
        not_checked=(),
        rules_run=1,
        cost=ScanCost(list_calls=0, requests=0, logs_read=0, seconds=0.0),
    )


@pytest.mark.parametrize("rule_id", sorted(path.stem for path in ROWS.glob("*.yaml")))
def test_what_a_rule_says_of_long_texts_has_no_part_of_a_token(rule_id: str, redactor: Redactor) -> None:
    for raw in raw_cases(ROWS / f"{rule_id}.yaml"):
        if raw["fires"]:
            said = report_to_json(masked_report(_report(rule_id, raw), redactor.redact))
            assert "ghp_" not in said, said[said.find("ghp_") - 200 : said.find("ghp_") + 60]


def test_a_long_value_of_a_configmap_is_kept_without_the_token_at_its_end() -> None:
    kept = slim({"metadata": {"name": "web"}, "data": {"log": " ".join([TOKEN] * 500)}}, "ConfigMap")["data"]
    assert isinstance(kept, dict)
    assert str(kept["log"]).split() == [TOKEN] * (16_384 // (len(TOKEN) + 1))
