"""Runs for the tests of telemetry: real loops around a scripted model, and given events as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.values.events import AgentEvent
from holmes.values.stats import RequestStats
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.toolsets import FunctionToolset, tool

MODEL = "anthropic/claude-sonnet-4-5"
FALLBACK = "gpt-4.1"
STATS = RequestStats(
    prompt_tokens=1_000,
    completion_tokens=50,
    cached_tokens=800,
    cache_creation_tokens=100,
    reasoning_tokens=20,
    cost=0.25,
    calls=1,
)


def settings_of(home: Path, **variables: str) -> Settings:
    """The settings with these variables, for `MODEL` and its fallbacks."""
    return load_settings({"HOME": str(home), "MODEL": MODEL, "FALLBACK_MODELS": FALLBACK, **variables})


def two_tools(*, together: int = 2) -> FunctionToolset:
    """`left` works as soon as `together` calls are under way at once; `right` too, but fails then."""
    barrier = asyncio.Barrier(together)

    async def left(invocation: ToolInvocation) -> ToolResult:
        await barrier.wait()
        return ToolResult(status="success", data=f"found {invocation.arguments['text']}")

    async def right(_: ToolInvocation) -> ToolResult:
        await barrier.wait()
        return ToolResult(status="error", error="no such pod: the-private-name")

    return FunctionToolset(bodies=((tool("left", "text"), left), (tool("right", "text"), right)))


def scripted(*replies: ScriptedReply, name: str = MODEL) -> ScriptedModel:
    """A model that says this."""
    return ScriptedModel(replies, name=name)


def two_calls_then_an_answer() -> ScriptedModel:
    """Calls `left` and `right` at once, then a tool that there is not, then answers."""
    calls = (scripted_call("left", text="the-private-name"), scripted_call("right", text="b"))
    return scripted(
        ScriptedReply(text="Let me look at the-private-name.", tool_calls=calls, stats=STATS),
        ScriptedReply(tool_calls=(scripted_call("invented_by_the_model"),), stats=STATS),
        ScriptedReply(text="The answer about the-private-name.", stats=STATS),
    )


async def stream_of(events: Sequence[AgentEvent]) -> AsyncGenerator[AgentEvent, None]:
    """These events, one by one, a moment between them."""
    for event in events:
        await asyncio.sleep(0.001)
        yield event


async def drain(stream: AsyncGenerator[AgentEvent, None]) -> list[AgentEvent]:
    """Every event of the stream."""
    return [event async for event in stream]
