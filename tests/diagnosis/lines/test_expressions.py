"""Every expression of the rules over event and log text finds its texts, and none of its near misses."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from holmes import triage
from holmes.diagnosis import facts, rules
from holmes.values.expressions import LazyExpression

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE: Final = yaml.safe_load((Path(__file__).parent / "expressions.yaml").read_text())
BY_CORPUS: Final = {"line_kinds", "line_patterns", "logs"}
BY_FIELDS: Final = {"custom_health", "custom_links", "custom_reasons"}
"""Modules whose expressions read fields of custom resources, not text."""
OF_ANSWERS: Final = (
    "log_calls", "log_feeds", "log_floods", "log_following", "log_policies", "log_queues", "recent_changes",
)  # fmt: skip
"""Modules of the answers whose expressions decide who is at fault by the text of a log line."""
BY_ROWS: Final = ("edges._KINDS", "pods_images._COMPILED", "unscheduled._REASONS", "admission._KNOWN")
"""Ordered alternatives. The first that matches decides, so the rows of tests/diagnosis/rows test them."""


def _expressions(value: object, path: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, (re.Pattern, LazyExpression)):
        yield path, re.compile(value.pattern, value.flags)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _expressions(each, f"{path}[{key}]")
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from _expressions(each, f"{path}[{index}]")


def _modules() -> Iterator[tuple[str, str]]:
    for package in (facts, rules):
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in BY_CORPUS | BY_FIELDS:
                yield package.__name__, module.name
    yield from ((triage.__name__, name) for name in OF_ANSWERS)


def _all() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for package, module in _modules():
        for name, value in vars(importlib.import_module(f"{package}.{module}")).items():
            for path, expression in _expressions(value, f"{module}.{name}"):
                if expression not in found.values() and not path.startswith(BY_ROWS):
                    found[path] = expression
    return found


ALL: Final = _all()


def test_every_expression_is_in_the_table() -> None:
    assert sorted(ALL) == sorted({*TABLE["expressions"], *TABLE["settings"]})


@pytest.mark.parametrize("name", sorted(TABLE["expressions"]))
def test_an_expression_finds_its_texts_and_no_near_miss(name: str) -> None:
    entry, expression = TABLE["expressions"][name], ALL[name]
    assert len(entry["find"]) >= 5
    assert len(entry["miss"]) >= 5
    assert [text for text in entry["find"] if not expression.search(text)] == []
    assert [text for text in entry["miss"] if expression.search(text)] == []
