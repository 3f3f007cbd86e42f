"""The rules by whose ids other code decides exist, and are what their names say."""

from __future__ import annotations

import pytest

from holmes.diagnosis import rule_ids
from holmes.diagnosis.engine import all_rules

KINDS: dict[str, frozenset[str]] = {each.id: frozenset(each.row.kinds) for each in all_rules()}
NAMED: dict[str, frozenset[str]] = {
    name: frozenset({ids}) if isinstance(ids, str) else ids for name, ids in vars(rule_ids).items() if name.isupper()
}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_named_rule_exists(name: str) -> None:
    assert sorted(NAMED[name] - KINDS.keys()) == []


def test_every_rule_about_horizontal_autoscalers_is_named_as_such() -> None:
    about = {rule_id for rule_id, kinds in KINDS.items() if "HorizontalPodAutoscaler" in kinds}
    assert about == rule_ids.AUTOSCALING
