"""Whatever is configured, the prompt with all schemas stays small, and a conversation keeps its tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holmes.app.outfits import FULL_FORM_TOKENS, SHORT_FORM_TOKENS, OutfitParts, Outfits
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.llm.scripted import ScriptedModel
from holmes.settings.load import load_settings
from holmes.tokens import TokenCounter
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.model import ModelLimits
from holmes.values.on_demand import FIND_TOOLS, USE_TOOL
from holmes.values.tools import Parameter, ParameterSchema, Tool, Toolset
from tests.app.test_golden_prompt import shipped_toolsets
from tests.support.toolsets import FunctionToolset, echo

ESSENTIAL = {FIRST_LOOK_TOOL, "kubernetes_logs", "kubectl_describe", "kubectl_get"}
FINDERS = (FIND_TOOLS, USE_TOOL)
COUNTER = TokenCounter("o200k_base")


def large(name: str, count: int, *, words: int = 60, instructions: str = "") -> Toolset:
    """A toolset of many tools, each with a long description and ten parameters."""
    parameters = tuple(
        Parameter(
            name=f"parameter_{index}", schema=ParameterSchema(types=("string",), description="one more word " * 5)
        )
        for index in range(10)
    )
    prefix = name.partition("/")[0].replace("-", "_")
    tools = (
        Tool(name=f"{prefix}_{index}", description="explains " * words, parameters=parameters) for index in range(count)
    )
    return FunctionToolset(bodies=tuple((each, echo) for each in tools), name=name, instructions=instructions)


def parts_of(tmp_path: Path, toolsets: list[Toolset], *on_demand: str, window: int = 128_000) -> OutfitParts:
    limits = ModelLimits(context_window_tokens=window, max_output_tokens=4_096, vision=False)
    return OutfitParts(
        settings=load_settings({"HOME": str(tmp_path)}),
        model=LoopModel(model=ScriptedModel([], limits=limits), policy=ContextPolicy()),
        toolsets=tuple(toolsets),
        on_demand=frozenset(on_demand),
        changing=False,
        unavailable=(),
        first_look=True,
    )


def offered(parts: OutfitParts, question: str) -> set[str]:
    tools = Outfits(parts=parts).of(question).tools
    assert tools is not None
    return set(tools)


def tokens_of(parts: OutfitParts, question: str) -> int:
    outfit = Outfits(parts=parts).of(question)
    everything = [tool for toolset in parts.toolsets for tool in toolset.tools]
    sent = (
        everything if outfit.tools is None else [*(each for each in everything if each.name in outfit.tools), *FINDERS]
    )
    return COUNTER.count_text(outfit.system.text) + COUNTER.count_tools(tuple(sent))


def test_what_fits_is_offered_whole_and_nothing_is_said_of_more_tools(tmp_path: Path) -> None:
    outfit = Outfits(parts=parts_of(tmp_path, shipped_toolsets())).of("why is checkout failing?")
    assert outfit.tools is None
    assert "find_tools" not in outfit.system.text


@pytest.mark.parametrize("question", ["why?", "why is argocd out of sync", "tickets argocd keda istio velero" * 5])
@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 1_000_000])
def test_the_prompt_and_all_schemas_stay_below_the_limit(tmp_path: Path, question: str, window: int) -> None:
    names = [f"{name}/core" for name in ("argocd", "keda", "istio", "velero", *(f"system-{n}" for n in range(40)))]
    long = "Read the manual. " * 3_000
    toolsets = [*shipped_toolsets(), *(large(name, 10) for name in names), large("tickets", 120, instructions=long)]
    parts = replace(
        parts_of(tmp_path, toolsets, *names, window=window),
        unavailable=tuple(f"system-{index}: {'cannot be reached ' * 100}" for index in range(80)),
        changing=True,
    )
    limit = min(SHORT_FORM_TOKENS, window // 4) if window <= 32_000 else FULL_FORM_TOKENS
    assert 1_000 < tokens_of(parts, question) <= limit
    if window > 8_000:
        assert offered(parts, question) >= ESSENTIAL


def test_a_question_gets_the_toolsets_that_it_names(tmp_path: Path) -> None:
    extra = [large("argocd/core", 2, words=3), large("cert-manager/core", 2, words=3)]
    parts = parts_of(tmp_path, [*shipped_toolsets(), *extra], "argocd/core", "cert-manager/core")
    usual = offered(parts, "why is checkout failing?")
    assert usual >= ESSENTIAL
    assert not usual & {"argocd_0", "cert_manager_0"}
    assert offered(parts, "Is the app checkout in ArgoCD synced?") == usual | {"argocd_0", "argocd_1"}
    # A word that all clusters speak of does not name a toolset.
    assert offered(parts, "which pods were described in the logs of the core app?") == usual
    assert "argocd/core" in Outfits(parts=parts).of("why is checkout failing?").system.text


def test_instructions_are_those_of_the_offered_toolsets(tmp_path: Path) -> None:
    told = large("argocd/core", 1, words=3, instructions="Applications come from Git.")
    parts = parts_of(tmp_path, [*shipped_toolsets(), told], "argocd/core")
    outfits = Outfits(parts=parts)
    assert "Applications come from Git." not in outfits.of("why?").system.text
    assert "Applications come from Git." in outfits.of("what does argocd say?").system.text
    assert outfits.of("why?") is outfits.of("why is checkout failing?")


def test_a_server_that_may_add_tools_brings_the_finder(tmp_path: Path) -> None:
    parts = replace(parts_of(tmp_path, shipped_toolsets()), changing=True)
    everything = {tool.name for toolset in parts.toolsets for tool in toolset.tools}
    assert offered(parts, "why?") == everything


def test_a_small_window_gets_the_essential_tools_and_the_finder(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, shipped_toolsets(), window=16_000)
    names = offered(parts, "why?")
    assert names >= ESSENTIAL
    assert len(names) < sum(len(toolset.tools) for toolset in parts.toolsets)
    assert "find_tools" in Outfits(parts=parts).of("why?").system.text
