"""What a step of the loop costs outside model and tools: `python benchmarks/loop.py`.

Runs the real loop with a scripted model and a trivial tool on conversations of 10k, 100k and 400k tokens, and prints
the CPU time of a step, all of which is the loop's own. The window is so huge that nothing must be counted; the 100k
conversation also runs in one of 128k tokens, where every step counts how full it is. What the model adapter does to
bring the history and the shipped tools onto the wire is shown beside it: that part must touch every message, since
every request carries all of them. Exits with 1 when a figure is worse than promised: a step at 100k tokens, encoding
included, at most 5 ms in either window, and the loop alone at 400k tokens at most twice what it takes at 10k.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from holmes.assets import toolset_files
from holmes.llm.codec import MessageCodec
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.kubernetes_logs.toolset import KubernetesLogsToolset
from holmes.toolsets.yaml.toolset import YamlToolset
from holmes.values.environment import Environment
from holmes.values.events import AssistantReplied, CompactionStarted
from holmes.values.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    user_text,
)
from holmes.values.model import ModelLimits, ModelRequest
from holmes.values.tools import Tool, Toolset
from tests.support.investigations import build_loop
from tests.support.toolsets import echo_toolset

STEPS = 60
MAX_MILLISECONDS_AT_100K = 5.0
MAX_GROWTH = 2.0
RESULT_TOKENS = 500
HUGE_WINDOW_TOKENS = 2_000_000
REAL_WINDOW_TOKENS = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Median CPU milliseconds of one step."""

    history_tokens: int
    window_tokens: int
    loop: float
    encoding: float


def conversation(tokens: int) -> list[Message]:
    """A history of about `tokens` tokens: many rounds with results of 500 tokens."""
    messages: list[Message] = [SystemMessage(text="You are Holmes. " * 300), user_text("why is checkout failing?")]
    for number in range(tokens // RESULT_TOKENS):
        call_id = ToolCallId(f"call-{number}")
        call = ToolCall(id=call_id, name="echo", arguments=f'{{"text": "{number}"}}')
        messages.append(AssistantMessage(text="", tool_calls=(call,)))
        text = f"{number} pod checkout restarted again " * (RESULT_TOKENS // 6)
        messages.append(ToolMessage(call_id=call_id, tool_name="echo", status="success", parts=(Text(text=text),)))
    return messages


def shipped_tools() -> tuple[Tool, ...]:
    """The tools of every toolset that is shipped, whatever this machine has installed."""
    environment = Environment()
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=()), environment)
    toolsets: list[Toolset] = [YamlToolset(definition=each, environment=environment) for each in catalogue.definitions]
    toolsets.append(KubernetesLogsToolset(environment))
    return tuple(tool for toolset in toolsets for tool in toolset.tools)


async def loop_cost(history: Sequence[Message], window_tokens: int) -> float:
    """Median CPU milliseconds of one step of the loop that goes on from `history`."""

    def reply(request: ModelRequest) -> ScriptedReply:
        if request.tool_choice == "none":
            return ScriptedReply(text="done")
        return ScriptedReply(tool_calls=(scripted_call("echo", text=f"{len(request.messages)} new line"),))

    limits = ModelLimits(context_window_tokens=window_tokens, max_output_tokens=8_000)
    loop = build_loop([ScriptedModel(reply, limits=limits)], [echo_toolset()], max_steps=STEPS)
    steps: list[float] = []
    last = time.process_time()
    async for event in loop.call_stream(history):
        if isinstance(event, CompactionStarted):
            sys.exit("the conversation does not fit the window, so this is not the cost of a plain step")
        if isinstance(event, AssistantReplied):
            now = time.process_time()
            steps.append(now - last)
            last = now
    return median(steps[2:])  # the first step admits the whole history


def encoding_cost(history: Sequence[Message]) -> float:
    """Median CPU milliseconds of bringing `history` and tools onto the wire, when all but the last message is known.

    Measured apart from the loop: the copies that litellm may change push everything else out of the processor's cache.
    """
    codec, tools = MessageCodec(provider="openai", vision=False), shipped_tools()
    times: list[float] = []
    for number in range(STEPS):
        started = time.process_time()
        codec.encode([*history, user_text(f"and {number}?")])
        codec.encode_tools(tools)
        times.append(time.process_time() - started)
    return median(times[2:])


def step_cost(tokens: int, window_tokens: int = HUGE_WINDOW_TOKENS) -> StepCost:
    """Both costs on a history of `tokens` tokens."""
    history = conversation(tokens)
    return StepCost(
        history_tokens=tokens,
        window_tokens=window_tokens,
        loop=asyncio.run(loop_cost(history, window_tokens)),
        encoding=encoding_cost(history),
    )


def median(values: list[float]) -> float:
    """In milliseconds."""
    return sorted(values)[len(values) // 2] * 1000


def main() -> int:
    """Print the table; 1 when a promise is broken."""
    small, large, huge = (step_cost(tokens) for tokens in (10_000, 100_000, 400_000))
    counted = step_cost(100_000, REAL_WINDOW_TOKENS)
    print("CPU of one step outside model and tools, median of", STEPS, "steps")
    for cost in (small, large, huge, counted):
        sizes = f"{cost.history_tokens:>7} tokens in a window of {cost.window_tokens:>7}"
        print(f"  {sizes}: loop {cost.loop:.3f} ms, wire encoding {cost.encoding:.3f} ms")
    slowest = max(cost.loop + cost.encoding for cost in (large, counted))
    growth = huge.loop / small.loop
    print(f"  a step at 100000 tokens, encoding included: {slowest:.3f} ms (at most {MAX_MILLISECONDS_AT_100K})")
    print(f"  the loop at 400000 against 10000 tokens: {growth:.2f} times (at most {MAX_GROWTH})")
    return 0 if slowest <= MAX_MILLISECONDS_AT_100K and growth <= MAX_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
