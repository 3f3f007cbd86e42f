"""An expression that is compiled late behaves like one that is compiled at once."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import holmes
from holmes.values.expressions import LazyExpression, expression


def test_it_finds_what_a_compiled_expression_finds() -> None:
    late, compiled = expression(r"(?P<word>b+)", re.IGNORECASE), re.compile(r"(?P<word>b+)", re.IGNORECASE)
    assert late.sub("-", "aBbc") == compiled.sub("-", "aBbc") == "a-c"
    assert [match["word"] for match in late.finditer("bcB")] == ["b", "B"]
    assert (late.pattern, late.flags, late.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_it_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="'LazyExpression' object has no attribute 'find'"):
        getattr(expression("a"), "find")  # noqa: B009  mypy would refuse the attribute


def test_every_expression_of_a_module_is_valid() -> None:
    found = 0
    for module in pkgutil.walk_packages(holmes.__path__, "holmes."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, LazyExpression):
                    re.compile(value.pattern)
                    found += 1
    assert found > 100
