"""The cost of a step of the loop outside model and tools, and the modules it crosses: `python benchmarks/loop.py`.

Runs the real loop with a scripted model and a trivial tool on conversations of 10k, 100k and 400k tokens, and prints
the CPU time of a step, all of which is the loop's own. The window is so large that no token has to be counted. The 100k
conversation also runs in a window of 128k tokens, where every step counts. The cost of encoding the history and the
bundled tools for the provider is separate, because that part must touch every message of every request.

Exits with code 1 when a limit is exceeded. A step at 100k tokens, encoding included, takes at most 5 ms in either
window. The loop alone takes at 400k tokens at most twice the time of 10k. A plain iteration executes functions of at
most five modules of `holmes.core`, not counting `holmes.core.truncation`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import holmes
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
from tests.support.result_stores import MemoryStore
from tests.support.toolsets import echo_toolset

STEPS = 60
MAX_MILLISECONDS_AT_100K = 5.0
MAX_GROWTH = 2.0
RESULT_TOKENS = 500
HUGE_WINDOW_TOKENS = 2_000_000
REAL_WINDOW_TOKENS = 128_000
CORE = Path(holmes.__file__).resolve().parent / "core"
MAX_CORE_MODULES = 5


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


def core_modules_of_an_iteration() -> list[str]:
    """The modules of `holmes.core` whose functions a plain iteration executes, in the order of their first call.

    The iteration lasts from the first request to the second. It has one tool call, whose result is stored, and neither
    compaction nor spill nor hook. The modules of `holmes.core.truncation` are left out.
    """
    called: dict[str, None] = {}
    requests = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and requests == 1 and frame.f_code.co_filename.startswith(str(CORE)):
            module = Path(frame.f_code.co_filename).relative_to(CORE)
            if module.parts[0] != "truncation":
                called[module.as_posix()] = None

    def reply(_: ModelRequest) -> ScriptedReply:
        nonlocal requests
        requests += 1
        return ScriptedReply(tool_calls=(scripted_call("echo", text="a line"),) if requests == 1 else (), text="done")

    async def run() -> None:
        loop = build_loop([ScriptedModel(reply)], [echo_toolset()], store=MemoryStore())
        async for _ in loop.call_stream(conversation(3_000)):
            pass

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        asyncio.run(run())
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(called)


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
    modules = core_modules_of_an_iteration()
    print(
        f"  {len(modules)} modules of holmes.core in one iteration (at most {MAX_CORE_MODULES}): {', '.join(modules)}"
    )
    is_fast = slowest <= MAX_MILLISECONDS_AT_100K and growth <= MAX_GROWTH
    return 0 if is_fast and len(modules) <= MAX_CORE_MODULES else 1


if __name__ == "__main__":
    sys.exit(main())
