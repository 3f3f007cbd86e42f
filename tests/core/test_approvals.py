"""Calls that need a person."""

from __future__ import annotations

from dataclasses import dataclass, field

from holmes.core.tools_utils.tool_executor import ApprovalGate
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.toolsets import FunctionToolset, echo, tool


@dataclass(slots=True)
class FixedAnswer:
    answer: bool
    asked: list[str] = field(default_factory=list)

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        assert invocation.tool.name in description
        self.asked.append(description)
        return self.answer


def toolset() -> FunctionToolset:
    return FunctionToolset(bodies=((tool("read_file", "text"), echo), (tool("run_command", "text"), echo)))


def invocation(name: str) -> ToolInvocation:
    return ToolInvocation(call_id=ToolCallId("1"), tool=tool(name, "text"), arguments={"text": "hello"})


async def test_a_call_that_matches_no_pattern_runs_unasked() -> None:
    approver = FixedAnswer(answer=False)
    result = await ApprovalGate(toolset(), ("run_*",), approver).call(invocation("read_file"))
    assert (result.status, approver.asked) == ("success", [])


async def test_an_approved_call_runs() -> None:
    approver = FixedAnswer(answer=True)
    result = await ApprovalGate(toolset(), ("run_*",), approver).call(invocation("run_command"))
    assert (result.data, approver.asked) == ("hello", ["run_command(hello)"])


async def test_a_refused_call_does_not_run_and_says_so() -> None:
    inner = toolset()
    result = await ApprovalGate(inner, ("run_*",), FixedAnswer(answer=False)).call(invocation("run_command"))
    assert result.status == "approval_required"
    assert "refused" in str(result.error)
    assert inner.seen == []


async def test_nobody_to_ask_means_not_run() -> None:
    inner = toolset()
    result = await ApprovalGate(inner, ("run_*",), None).call(invocation("run_command"))
    assert (result.status, inner.seen) == ("approval_required", [])
