"""What teaches the loop a window, and what must not."""

from __future__ import annotations

import json

import pytest

from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import Calibration, LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.values.errors import ContextOverflow
from holmes.values.events import AnswerFinished, HistoryCompacted, PromptShortened, ToolResultsMasked
from holmes.values.messages import AssistantMessage, ToolCall, ToolCallId
from holmes.values.model import ModelReply, ModelRequest
from holmes.values.steps import DirectStepRunner
from tests.support.counting_model import CountingModel, model_reply
from tests.support.investigations import PROMPTS, QUESTION, build_loop, events_of
from tests.support.toolsets import echo_toolset

ROUNDS = 6


class Gateway:
    """Reports only the tokens that its cache did not have, whatever was sent."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, _: ModelRequest) -> AssistantMessage | ModelReply:
        self._asked += 1
        if self._asked % ROUNDS == 0:
            return AssistantMessage(text="The database refuses connections.")
        arguments = json.dumps({"text": f"{self._asked} " + "word " * 7_000})
        call = ToolCall(id=ToolCallId(f"call_{self._asked}"), name="echo", arguments=arguments)
        return model_reply(AssistantMessage(text="", tool_calls=(call,)), prompt_tokens=1_100, counted=True)


@pytest.mark.row("S5")
async def test_a_gateway_that_leaves_cached_tokens_out_makes_one_warning_and_no_smaller_window() -> None:
    model = CountingModel(Gateway(), window_tokens=128_000)
    loop = build_loop([model], [echo_toolset()])
    for _ in range(2):  # the second run has what the first one taught
        events = await events_of(loop)
        assert isinstance(events[-1], AnswerFinished)
        assert len([event for event in events if isinstance(event, PromptShortened)]) == 1
        assert not [event for event in events if isinstance(event, HistoryCompacted)]


class Moody:
    """Calls a tool with much text, then answers. Says once in between that its window is small."""

    def __init__(self) -> None:
        self.overflow: ContextOverflow | None = None
        self._asked = 0

    def __call__(self, _: ModelRequest) -> AssistantMessage | ContextOverflow:
        if self.overflow is not None and self._asked % ROUNDS == ROUNDS - 2:
            error, self.overflow = self.overflow, None
            return error
        self._asked += 1
        if self._asked % ROUNDS == 0:
            return AssistantMessage(text="The database refuses connections.")
        arguments = json.dumps({"text": f"{self._asked} " + "word " * 2_000})
        call = ToolCall(id=ToolCallId(f"call_{self._asked}"), name="echo", arguments=arguments)
        return AssistantMessage(text="", tool_calls=(call,))


@pytest.mark.row("S4")
async def test_a_window_of_an_error_makes_conversations_short_for_an_hour_and_no_longer() -> None:
    now_seconds = 0.0
    moody = Moody()
    small = LoopModel(
        model=CountingModel(moody, window_tokens=128_000),
        policy=ContextPolicy(),
        calibration=Calibration(lambda: now_seconds),
    )
    parts = LoopParts(
        models=(small,),
        executor=ToolExecutor([echo_toolset()]),
        store=None,
        prompts=PROMPTS,
        steps=DirectStepRunner(),
    )

    async def compactions() -> int:
        events = [event async for event in ToolCallingLLM(parts).call_stream(QUESTION)]
        assert isinstance(events[-1], AnswerFinished)
        return sum(isinstance(event, HistoryCompacted | ToolResultsMasked) for event in events)

    assert await compactions() == 0
    moody.overflow = ContextOverflow("too long", provider="test", model="counting", window_tokens=16_000)
    assert await compactions() > 0
    now_seconds = 3_599.0
    assert await compactions() > 0
    now_seconds = 3_600.0
    assert await compactions() == 0
