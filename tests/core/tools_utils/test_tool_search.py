"""Tools that requests do not contain: found by words, and run as what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from holmes.core.tools_utils.tool_executor import ApprovalGate, ToolExecutor
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.on_demand import called
from holmes.values.tools import ToolInvocation, Toolset
from tests.core.tools_utils.test_tool_executor import call
from tests.support.toolsets import FunctionToolset, echo, echo_toolset, tool


def toolset(name: str, *tools: str, instructions: str = "") -> FunctionToolset:
    return FunctionToolset(
        bodies=tuple((tool(each, "name"), echo) for each in tools), name=name, instructions=instructions
    )


ARGO = toolset("argocd/core", "argocd_out_of_sync", "argocd_history", instructions="Applications are synced from Git.")
CERTIFICATES = toolset("cert-manager/core", "certificate_chain", "certificate_issuers")


def use(name: str, arguments: object) -> ToolCall:
    return call("use_tool", json.dumps({"name": name, "arguments": arguments}))


async def find(executor: ToolExecutor, query: str) -> str:
    return (await executor.run(call("find_tools", json.dumps({"query": query})))).data


def test_requests_contain_the_offered_tools_and_the_two_that_reach_the_others() -> None:
    executor = ToolExecutor([echo_toolset(), ARGO])
    offering = executor.offering({"echo"})
    assert [each.name for each in offering.tools] == ["echo", "find_tools", "use_tool"]
    assert [each.name for each in executor.tools] == ["echo", "argocd_out_of_sync", "argocd_history"]


async def test_what_find_tools_returns_runs_with_use_tool() -> None:
    executor = ToolExecutor([echo_toolset(), ARGO, CERTIFICATES]).offering({"echo"})
    found = await find(executor, "why is the app out of sync in ArgoCD")
    assert found.startswith("## argocd_out_of_sync (toolset argocd/core)\nthe tool argocd_out_of_sync\nparameters: {")
    assert "about argocd/core: Applications are synced from Git." in found
    assert "certificate" not in found
    used = use("argocd_out_of_sync", {"name": "shop"})
    assert (await executor.run(used)).data == "shop"
    assert executor.toolset_name(used) == "argocd/core"
    assert executor.describe(used) == "argocd_out_of_sync(shop)"


@pytest.mark.parametrize("query", ["certificates", "expired Certificate?", "cert-manager", "issuer of a certificate"])
async def test_words_need_not_be_exact(query: str) -> None:
    found = await find(ToolExecutor([echo_toolset(), ARGO, CERTIFICATES]), query)
    assert "## certificate_chain (toolset cert-manager/core)" in found
    assert "argocd" not in found


@pytest.mark.parametrize("query", ["", "   ", "zzz qqq"])
async def test_a_query_that_fits_nothing_lists_all_names(query: str) -> None:
    found = await find(ToolExecutor([echo_toolset(), ARGO]), query)
    assert found.endswith("test/functions: echo\nargocd/core: argocd_out_of_sync, argocd_history")
    assert found.startswith("No tool fits") == bool(query.strip())


async def test_use_tool_needs_the_approval_of_the_tool_that_it_runs() -> None:
    gated: list[Toolset] = [ApprovalGate(ARGO, ("argocd_history",), None)]
    executor = ToolExecutor(gated).offering(())
    assert executor.needs_approval(use("argocd_history", {"name": "x"}))
    assert not executor.needs_approval(use("argocd_out_of_sync", {"name": "x"}))
    assert (await executor.run(use("argocd_history", {"name": "x"}))).status == "approval_required"
    # Hidden in a second use_tool, it is not even found.
    nested = use("use_tool", {"name": "argocd_history", "arguments": {"name": "x"}})
    assert (await executor.run(nested)).status == "error"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('{"name": "argocd_histroy", "arguments": {}}', "Unknown tool 'argocd_histroy'. Did you mean argocd_history"),
        ('{"name": "argocd_history", "arguments": {}}', "parameter 'name' is required"),
        ('{"name": "argocd_history", "arguments": {"app": 1}}', "unknown parameter 'app'"),
        ('{"name": "argocd_history", "arguments": "shop"}', "The arguments of 'argocd_history' are not a JSON object"),
        ('{"name": "argocd_history", "arguments": [1]}', "The arguments of 'argocd_history' are not a JSON object"),
        ('{"arguments": {}}', "parameter 'name' is required"),
        ('{"name": 5}', "The arguments of use_tool are not valid"),
        ('{"name": "use_tool", "arguments": {}}', "The arguments of use_tool are not valid"),
        ("{}", "parameter 'name' is required"),
    ],
)
async def test_a_wrong_call_of_use_tool_says_how_to_correct_it(arguments: str, error: str) -> None:
    result = await ToolExecutor([ARGO]).run(call("use_tool", arguments))
    assert result.status == "error"
    assert error in str(result.error)


def test_inner_arguments_as_text_are_read() -> None:
    inner = called(use("argocd_history", '{"name": "shop"}'))
    assert inner == ToolCall(id=ToolCallId("call-1"), name="argocd_history", arguments='{"name": "shop"}')
    assert called(call("echo", "{}")) == call("echo", "{}")


async def test_tools_that_a_server_offers_since_are_found_and_those_that_it_removed_are_not() -> None:
    now: list[Toolset] = [ARGO]

    async def renew() -> Sequence[Toolset]:
        return now

    executor = ToolExecutor([ARGO], renew=renew)
    offering = executor.offering(())
    now[:] = [CERTIFICATES]
    assert (await offering.run(use("certificate_chain", {"name": "x"}))).status == "error"
    assert "certificate_chain" in await find(offering, "certificate")
    assert (await offering.run(use("certificate_chain", {"name": "x"}))).data == "x"
    assert (await offering.run(use("argocd_history", {"name": "x"}))).status == "error"
    assert [each.name for each in offering.tools] == ["find_tools", "use_tool"]


async def test_tools_stay_when_their_server_does_not_answer() -> None:
    async def renew() -> Sequence[Toolset]:
        raise ToolError("the connection is refused")

    executor = ToolExecutor([ARGO], renew=renew).offering(())
    assert "argocd_history" in await find(executor, "argocd history")
    assert (await executor.run(use("argocd_history", {"name": "x"}))).data == "x"


async def test_limits_of_concurrent_calls_hold_for_use_tool() -> None:
    import asyncio

    running, most = 0, 0

    async def count(invocation: ToolInvocation) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return await echo(invocation)

    counting = FunctionToolset(bodies=((tool("count", "name"), count),))  # type: ignore[arg-type]
    executor = ToolExecutor([counting], max_concurrent=3).offering(())
    await asyncio.gather(*(executor.run(use("count", {"name": str(index)})) for index in range(12)))
    assert most == 3
