"""The loop can be read in one sitting: a plain iteration crosses few modules."""

from __future__ import annotations

from benchmarks.loop import MAX_CORE_MODULES, core_modules_of_an_iteration


def test_a_plain_iteration_executes_functions_of_at_most_five_modules_of_core() -> None:
    modules = core_modules_of_an_iteration()
    assert "tool_calling_llm.py" in modules, "the trace saw nothing, so this test proves nothing"
    assert len(modules) <= MAX_CORE_MODULES == 5, modules
