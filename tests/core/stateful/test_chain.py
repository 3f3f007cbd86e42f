"""The next model of the chain is asked when its window is larger than that of the first really is."""

from __future__ import annotations

import pytest

from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.values.events import AnswerFinished
from holmes.values.messages import AssistantMessage, SystemMessage, user_text
from tests.core.stateful.provider import overflow
from tests.support.counting_model import CountingModel
from tests.support.investigations import build_loop, events_of

ANSWER = AssistantMessage(text="The disk is full.")


@pytest.mark.row("S3", "S4")
async def test_an_overflow_that_states_a_smaller_window_leads_to_a_model_that_is_larger_than_that() -> None:
    first = CountingModel(lambda _: overflow(8_000), window_tokens=64_000)
    second = CountingModel(lambda _: ANSWER, window_tokens=16_000, max_output_tokens=1_000)
    loop = build_loop([first, second], policy=ContextPolicy(spill=SpillPolicy(max_pct=0, max_tokens=1_000_000)))
    end = (await events_of(loop, (SystemMessage(text="You find faults."), user_text("why " * 7_400))))[-1]
    assert isinstance(end, AnswerFinished)
    assert end.text == ANSWER.text
    assert len(first.requests) == 1
