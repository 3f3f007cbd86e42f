"""Small windows get fewer tools, so that there is room for the investigation."""

from __future__ import annotations

import pytest

from holmes.app.investigator import ESSENTIAL_TOOLS, SCHEMA_SHARE, fit_tools
from holmes.tokens import TokenCounter
from tests.app.test_golden_prompt import shipped_toolsets

COUNTER = TokenCounter()


@pytest.mark.parametrize("window", [4_000, 8_000, 12_000, 15_999])
def test_a_small_window_keeps_the_essential_tools_and_what_there_is_room_for(window: int) -> None:
    toolsets = shipped_toolsets()
    fitted = fit_tools(toolsets, window, COUNTER)
    offered = [tool for toolset in fitted.toolsets for tool in toolset.tools]
    names = [tool.name for tool in offered]
    everything = [tool.name for toolset in toolsets for tool in toolset.tools]
    assert set(names) >= ESSENTIAL_TOOLS
    assert [name for name in everything if name in names] == names
    assert sorted((*names, *fitted.left_out)) == sorted(everything)
    assert fitted.left_out
    essential = COUNTER.count_tools(tuple(tool for tool in offered if tool.name in ESSENTIAL_TOOLS))
    assert COUNTER.count_tools(tuple(offered)) <= max(essential, window * SCHEMA_SHARE)


def test_from_16k_on_everything_is_offered_as_it_is() -> None:
    toolsets = shipped_toolsets()
    fitted = fit_tools(toolsets, 16_000, COUNTER)
    assert fitted.toolsets == tuple(toolsets)
    assert fitted.left_out == ()


def test_tools_that_fit_a_small_window_stay_all() -> None:
    toolsets = shipped_toolsets()[:1]
    small = fit_tools(toolsets, 15_000, COUNTER)
    assert small.left_out == ()
    assert small.toolsets == tuple(toolsets)
