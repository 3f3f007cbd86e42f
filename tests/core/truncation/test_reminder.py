"""A compacted history says which tools are at hand, in few words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.summary_message import reminder_text
from holmes.values.tools import Tool
from tests.core.truncation.summaries import COUNTER


def tools_of(names: list[str]) -> tuple[Tool, ...]:
    return tuple(Tool(name=name, description="") for name in names)


@pytest.mark.row("K8")
def test_few_tools_are_named_and_many_are_counted_by_their_first_word() -> None:
    few = reminder_text(tools_of(["kubectl_get", "prometheus_query"]))
    assert few == "Available tools, as before: kubectl_get, prometheus_query."
    many = reminder_text(
        tools_of([f"kubectl_{n}" for n in range(30)] + [f"grafanaPanel{n}" for n in range(3)] + ["bash"])
    )
    assert "34 in total: kubectl (30), grafana (3), bash (1)." in many
    assert reminder_text(tools_of([f"x_{n}" for n in range(20)])).endswith("x_19.")
    assert "21 in total: x (21)." in reminder_text(tools_of([f"x_{n}" for n in range(21)]))
    assert reminder_text(()) == ""


WORDS = (
    "kubectl",
    "get",
    "prometheus",
    "query",
    "range",
    "logs",
    "fetch",
    "grafana",
    "dashboard",
    "mcp",
    "aws",
    "list",
)


@pytest.mark.row("K8")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map("_".join), max_size=200, unique=True))
def test_it_never_takes_more_than_150_tokens_and_counts_every_tool(names: list[str]) -> None:
    text = reminder_text(tools_of(names))
    assert COUNTER.count_text(text) <= 150
    assert len(names) <= 20 or f"{len(names):,} in total" in text
