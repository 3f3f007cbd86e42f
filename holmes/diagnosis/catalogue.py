"""All rules: whatever the modules of `holmes.diagnosis.rules` define. Called by scans, `holmes rules` and the docs."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from holmes.diagnosis import rules
from holmes.diagnosis.rule import Rule
from holmes.values.errors import ConfigError


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, sorted by id. Raises `ValueError` when two have the same id."""
    found: dict[str, Rule] = {}
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, Rule):
                continue
            if found.setdefault(value.id, value) is not value:
                message = f"two rules have the id {value.id!r}"
                raise ValueError(message)
    return tuple(found[rule_id] for rule_id in sorted(found))


def chosen_rules(ids: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules with these ids, written in any case; all of them for none. Raises `ConfigError` for an unknown id."""
    if not ids:
        return all_rules()
    known = {rule.id.lower(): rule for rule in all_rules()}
    for written in ids:
        if written.lower() not in known:
            message = f"there is no rule {written!r}; `holmes rules list` shows all"
            raise ConfigError(message)
    wanted = {written.lower() for written in ids}
    return tuple(rule for rule_id, rule in known.items() if rule_id in wanted)
