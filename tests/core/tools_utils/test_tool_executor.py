"""Whatever a call does, the model gets a result it can act on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.toolsets import FunctionToolset, echo_toolset, tool


def call(name: str, arguments: str = "{}", *, malformed: str | None = None) -> ToolCall:
    return ToolCall(id=ToolCallId("call-1"), name=name, arguments=arguments, malformed=malformed)


async def test_a_call_runs_with_coerced_arguments() -> None:
    toolset = echo_toolset()
    result = await ToolExecutor([toolset]).run(call("echo", '{"text": 5}'))
    assert result == ToolResult(status="success", data="5")
    assert toolset.seen[0].arguments == {"text": "5"}


async def test_an_unknown_tool_answers_with_the_nearest_names() -> None:
    result = await ToolExecutor([echo_toolset()]).run(call("ecko"))
    assert result.status == "error"
    assert result.error == "Unknown tool 'ecko'. Did you mean echo?"


async def test_malformed_arguments_answer_with_what_was_written() -> None:
    result = await ToolExecutor([echo_toolset()]).run(call("echo", malformed="text: hello"))
    assert result.error == "The arguments of 'echo' are not a JSON object: 'text: hello'. Send valid JSON."


async def test_an_exception_in_a_tool_is_an_error_result(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(invocation: ToolInvocation) -> ToolResult:
        raise KeyError(invocation.tool.name)

    executor = ToolExecutor([FunctionToolset(bodies=((tool("broken"), broken),))])
    result = await executor.run(call("broken"))
    assert result == ToolResult(status="error", error="The tool 'broken' failed: KeyError: 'broken'")
    assert "tool broken failed" in caplog.text


async def test_cancelling_is_not_turned_into_a_result() -> None:
    async def endless(invocation: ToolInvocation) -> ToolResult:
        await asyncio.sleep(3600)
        raise AssertionError(invocation)

    executor = ToolExecutor([FunctionToolset(bodies=((tool("endless"), endless),))])
    task = asyncio.create_task(executor.run(call("endless")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_at_most_sixteen_calls_run_at_once() -> None:
    running, most = 0, 0

    async def count(_: ToolInvocation) -> ToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return ToolResult(status="success", data="done")

    executor = ToolExecutor([FunctionToolset(bodies=((tool("count"), count),))])
    await asyncio.gather(*(executor.run(call("count")) for _ in range(50)))
    assert most == 16


def test_two_tools_of_one_name_are_refused_with_both_toolsets() -> None:
    with pytest.raises(ToolError, match="Tool 'echo' is defined by toolset 'test/functions' and toolset 'other'"):
        ToolExecutor([echo_toolset(), FunctionToolset(bodies=echo_toolset().bodies, name="other")])


def test_a_call_that_cannot_be_read_is_described_all_the_same() -> None:
    executor = ToolExecutor([echo_toolset()])
    assert executor.describe(call("echo", '{"text": "a\\nb"}')) == "echo(a b)"
    assert executor.describe(call("ecko", '{"a": 1}')) == 'ecko({"a": 1})'


async def test_arguments_that_are_nested_too_deeply_are_an_error_that_the_model_can_act_on() -> None:
    executor = ToolExecutor([echo_toolset()])
    deep = call("echo", '{"text": ' + "[" * 20_000 + "]" * 20_000 + "}")
    result = await executor.run(deep)
    assert result == ToolResult(status="error", error="The arguments of 'echo' are nested too deeply. Send flat JSON.")
    assert executor.describe(deep).startswith("echo(")


async def test_a_call_is_prepared_once_however_often_it_is_asked_about() -> None:
    toolset = echo_toolset()
    executor, wanted = ToolExecutor([toolset]), call("echo", '{"text": 5}')
    assert executor.problem(wanted) is None
    assert executor.needs_approval(wanted) is False
    await executor.run(wanted)
    await executor.run(wanted)
    assert toolset.seen[0].arguments is toolset.seen[1].arguments
    await executor.run(replace(wanted, arguments='{"text": 6}'))
    assert toolset.seen[2].arguments == {"text": "6"}
