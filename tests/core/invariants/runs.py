"""Whole runs of the loop over a script: random tool outputs that return in random order, and a model that plays along.

The loop, the spill, the stages and the store are the real ones; only the model is scripted.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from holmes.core.loop_run import LoopParts, LoopPrompts
from holmes.core.model_chain import LoopModel
from holmes.core.policies import POLICY_NAMES, named_policy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.values.events import AnswerFinished, RunFailed
from holmes.values.messages import AssistantMessage, Message, ToolMessage
from holmes.values.stats import RequestStats
from holmes.values.tools import ToolResult
from tests.core.invariants.stages import SUMMARY
from tests.core.truncation.summaries import RecordingSteps
from tests.support.conversations import LINE_KINDS, one_line, output_text, png, wild_histories
from tests.support.counting_model import Answer, CountingModel, tool_call
from tests.support.toolsets import FunctionToolset, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from holmes.tokens import TokenCounter
    from holmes.values.errors import ModelError
    from holmes.values.events import AgentEvent
    from holmes.values.model import ModelReply, ModelRequest
    from holmes.values.tools import ResultStore, ToolInvocation

PROMPTS = LoopPrompts(compaction="Summarise.", last_step="Answer now.", empty_reply="Your reply was empty.")
ANSWER = AssistantMessage(text="The database refuses connections.")
MOST_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`start` is the conversation that is continued; each seed of `rounds` makes one reply and its tool outputs."""

    policy: str
    window_tokens: int
    start: tuple[Message, ...]
    rounds: tuple[int, ...]
    factor: float = 1.0


def scripts(
    policies: Sequence[str] = POLICY_NAMES,
    *,
    most_rounds: int = 8,
    start_rounds: int = 4,
    factors: Sequence[float] = (1.0,),
) -> SearchStrategy[Script]:
    """Random scripts on windows so small that compactions happen."""
    return st.builds(
        Script,
        policy=st.sampled_from(policies),
        window_tokens=st.sampled_from([4_000, 6_000, 8_000]),
        start=wild_histories(start_rounds, 150),
        rounds=st.lists(st.integers(0, 1_000_000), min_size=3, max_size=most_rounds).map(tuple),
        factor=st.sampled_from(factors),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedModel(LoopModel):
    """Keeps the counters that it makes, so that a test can ask what was tokenized."""

    counters: list[TokenCounter] = field(default_factory=list)

    def make_counter(self) -> TokenCounter:
        self.counters.append(LoopModel.make_counter(self))
        return self.counters[-1]


@dataclass(slots=True, kw_only=True)
class Run:
    """One run. `outputs` is everything that tools returned, in the order in which they returned it."""

    script: Script
    model: CountingModel
    watched: WatchedModel
    events: list[AgentEvent] = field(default_factory=list)
    outputs: list[ToolResult] = field(default_factory=list)

    @property
    def last(self) -> AnswerFinished | RunFailed:
        """How it ended."""
        event = self.events[-1]
        assert isinstance(event, AnswerFinished | RunFailed)
        return event

    @property
    def agent_requests(self) -> list[ModelRequest]:
        """The requests of the agent, without those for summaries."""
        return [request for request in self.model.raw_requests if request.tool_choice == "auto"]


REFUSAL = RequestStats(prompt_tokens=7, cost=0.03, calls=1)


async def play(
    script: Script, store: ResultStore | None, *, summarise: Answer = lambda _: SUMMARY, longest_line: int = 0
) -> Run:
    """Run the loop to its end. `longest_line` adds a line of so many bytes to every fifth output."""
    replies = iter(range(len(script.rounds)))

    def answer(request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        if request.tool_choice == "none":
            return summarise(request)
        number = next(replies, None)
        return ANSWER if number is None else _reply(number, script.rounds[number], request)

    model = CountingModel(
        answer,
        window_tokens=script.window_tokens,
        max_output_tokens=script.window_tokens // 8,
        factor=script.factor,
        refusal_stats=REFUSAL,
    )
    watched = WatchedModel(model=model, policy=named_policy(script.policy))
    run = Run(script=script, model=model, watched=watched)

    async def body(invocation: ToolInvocation) -> ToolResult:
        seed = int(str(invocation.arguments["seed"]))
        result = _tool_result(seed, longest_line)
        for _ in range(random.Random(seed).randrange(4)):  # noqa: S311  test data
            await asyncio.sleep(0)
        run.outputs.append(result)
        return result

    parts = LoopParts(
        models=(watched,),
        executor=ToolExecutor([FunctionToolset(bodies=((tool("kubectl_get", "seed"), body),))]),
        store=store,
        prompts=PROMPTS,
        steps=RecordingSteps(),
    )
    run.events = [event async for event in ToolCallingLLM(parts, max_steps=MOST_STEPS).call_stream(script.start)]
    return run


def _reply(number: int, seed: int, request: ModelRequest) -> AssistantMessage:
    """Up to four calls; now and then the call of the round before again, a long text, or a citation."""
    chance = random.Random(seed)  # noqa: S311  test data
    seeds = [seed * 31 + index for index in range(1 + seed % 4)]
    if seed % 7 == 0 and number:
        seeds[0] = _RECURRING
    calls = tuple(
        tool_call(f"call-{number}-{index}-{seed}", "kubectl_get", f'{{"seed": "{one}"}}')
        for index, one in enumerate(seeds)
    )
    text = f"Looking at {number}. " + "The pod web-1 is not ready. " * (chance.randrange(30) if seed % 5 == 0 else 0)
    shown = [message for message in request.messages if isinstance(message, ToolMessage) and message.stored]
    if shown and seed % 3 == 0:
        text += f" It failed [[{chance.choice(shown).stored[0].id}:1-1]]."
    return AssistantMessage(text=text, tool_calls=calls)


_RECURRING = 1_000_004


def _tool_result(seed: int, longest_line: int) -> ToolResult:
    text = output_text(seed)
    if longest_line and seed % 5 == 0:
        text += one_line(LINE_KINDS[seed // 5 % len(LINE_KINDS)], longest_line, seed)
    images = (png(100 + seed % 900, 200, padding=seed % 90),) if seed % 12 == 0 else ()
    if seed % 11 == 0:
        return ToolResult(status="error", error="exit code 1", data=text, images=images, return_code=1)
    return ToolResult(status="success", data=text, images=images)
