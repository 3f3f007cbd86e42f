"""Small windows get fewer tools, so that there is room for the investigation."""

from __future__ import annotations

import pytest

from holmes.app.outfits import SHORT_FORM_TOKENS, fit_tools
from holmes.prompts import render_prompt
from holmes.tokens import TokenCounter
from holmes.values.first_look import FIRST_LOOK_TOOL
from tests.app.test_golden_prompt import shipped_toolsets

COUNTER = TokenCounter()
ESSENTIAL = {FIRST_LOOK_TOOL, "kubernetes_logs", "kubectl_describe", "kubectl_get"}


@pytest.mark.parametrize("room", [1_000, 1_600, 2_200])
def test_the_essential_tools_come_first_and_all_fit(room: int) -> None:
    toolsets = shipped_toolsets()
    offered = [tool for toolset in fit_tools(toolsets, room, COUNTER) for tool in toolset.tools]
    names = [tool.name for tool in offered]
    everything = [tool.name for toolset in toolsets for tool in toolset.tools]
    assert FIRST_LOOK_TOOL in names
    assert [name for name in everything if name in names] == names
    assert COUNTER.count_tools(tuple(offered)) <= room
    assert room < 1_600 or set(names) >= ESSENTIAL


def test_tools_that_fit_stay_as_they_are() -> None:
    toolsets = shipped_toolsets()[:1]
    assert fit_tools(toolsets, 15_000, COUNTER) == tuple(toolsets)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_short_form_takes_at_most_2500_tokens(encoding: str) -> None:
    counter = TokenCounter(encoding)
    place = {"cluster_name": "production", "context_name": "admin@production", "namespace": "shop", "additions": None}
    prompt = render_prompt("system_short", {**place, "citations": True})
    offered = fit_tools(shipped_toolsets(), SHORT_FORM_TOKENS - counter.count_text(prompt), counter)
    tools = tuple(tool for toolset in offered for tool in toolset.tools)
    assert {tool.name for tool in tools} >= ESSENTIAL
    assert 1_000 < counter.count_text(prompt) + counter.count_tools(tools) <= SHORT_FORM_TOKENS
