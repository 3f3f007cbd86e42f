"""No rule fails on a malformed object: missing fields, fields of another type, absurd values.

The objects of all row cases are damaged at random, with fixed seeds, and every rule runs on the result.
"""

from __future__ import annotations

import copy
import random
from typing import Any, Final

import pytest
import yaml

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from tests.diagnosis.row_cases import ROWS, state_of

ABSURD: Final[tuple[Any, ...]] = (
    None, True, -1, 10**30, 1.5, "", "x" * 5_000, "2026-13-45T99:00:00Z", [], {}, [None], [[]], {"": None}, "\x00",
)  # fmt: skip
KEPT: Final = {"age", "kind", "name", "metadata", "namespace", "object", "reason"}
"""Fields that the builder of the cases requires."""
SEEDS: Final = range(12)


def raw_cases() -> list[dict[str, Any]]:
    return [case for path in sorted(ROWS.glob("*.yaml")) for case in yaml.safe_load(path.read_text(encoding="utf-8"))]


CASES: Final = raw_cases()


def damage(value: Any, chance: random.Random, share: float) -> Any:  # noqa: ANN401  whatever YAML holds
    """A copy in which some values are absurd and some are missing."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            if key in KEPT or chance.random() > share:
                kept[key] = damage(item, chance, share)
            elif chance.random() < 0.7:
                kept[key] = copy.deepcopy(chance.choice(ABSURD))
        return kept
    if isinstance(value, list):
        return [damage(item, chance, share) for item in value]
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_fails_on_damaged_objects(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  an order, no secret
    rules = all_rules()
    for case in chance.sample(CASES, 60):
        damaged: dict[str, Any] = {key: case[key] for key in ("events", "logs") if key in case}
        damaged["objects"] = damage(case.get("objects", []), chance, chance.choice((0.03, 0.1, 0.3)))
        try:
            state = state_of(damaged)
        except (AttributeError, TypeError, ValueError, KeyError, OverflowError):
            continue  # The builder of the cases could not create a cluster from it.
        incidents_of(run_rules(rules, state).findings, state)
