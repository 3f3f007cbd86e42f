"""What teaches the loop a window, and what must not."""

from __future__ import annotations

import json

import pytest

from holmes.core.events import AnswerFinished, HistoryCompacted, PromptShortened
from holmes.core.messages import AssistantMessage, ToolCall, ToolCallId
from holmes.core.model import ModelReply, ModelRequest
from tests.support.counting_model import CountingModel, model_reply
from tests.support.investigations import build_loop, events_of
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
