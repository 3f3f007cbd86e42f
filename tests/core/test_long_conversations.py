"""Conversations of a thousand rounds on windows of every size, against a provider that counts more than we do."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holmes.stores.result_store import FileResultStore
from holmes.values.events import AnswerFinished, HistoryCompacted, ToolResultsMasked
from holmes.values.messages import AssistantMessage
from holmes.values.tools import ToolResult
from tests.support.counting_model import CountingModel, is_summary_request, pairing_errors, tool_call
from tests.support.investigations import QUESTION, build_loop
from tests.support.long_form import count
from tests.support.toolsets import FunctionToolset, tool

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.model import ModelRequest
    from holmes.values.tools import ToolInvocation

ROUNDS = count(long=1_000, short=200)
RESETS = (HistoryCompacted, ToolResultsMasked)


async def pods(invocation: ToolInvocation) -> ToolResult:
    """A table that is different for each call, of 20 to 600 lines."""
    number = int(str(invocation.arguments["number"]))
    lines = 20 + number * 37 % 60 + (400 if number % 50 == 0 else 0)
    table = "\n".join(f"shop   checkout-{number}-{line}   1/1   Running   0   {line}h" for line in range(lines))
    return ToolResult(status="success", data=table)


def next_reply(number: int) -> AssistantMessage:
    """What the model says in its round `number`: one to three calls, after the last round the answer."""
    if number > ROUNDS:
        return AssistantMessage(text="Nothing is wrong with checkout.")
    calls = tuple(
        tool_call(f"c{number}-{index}", "list_pods", f'{{"number": "{number * 3 + index}"}}')
        for index in range(1 + number % 3)
    )
    return AssistantMessage(text=f"Looking at part {number}.", tool_calls=calls)


@pytest.mark.row("C1", "I3", "K13", "N9", "S3")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("window", [8_000, 32_000, 128_000, 200_000])
async def test_many_rounds_end_with_an_answer_and_keep_the_prefix_between_compactions(
    window: int, tmp_path: Path
) -> None:
    agent_requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> AssistantMessage:
        if is_summary_request(request):
            return AssistantMessage(text="The pods of shop were listed; nothing was found yet. " * 10)
        agent_requests.append(request)
        return next_reply(len(agent_requests))

    model = CountingModel(answer, window_tokens=window, max_output_tokens=8_000, factor=1.3)
    tools = FunctionToolset(bodies=((tool("list_pods", "number"), pods),))
    loop = build_loop([model], [tools], store=FileResultStore(tmp_path), max_steps=ROUNDS + 50)
    resets, last = 0, None
    async for event in loop.call_stream(QUESTION):
        resets += isinstance(event, RESETS)
        last = event
    assert isinstance(last, AnswerFinished), last
    assert last.text == "Nothing is wrong with checkout."
    assert last.steps == ROUNDS + 1
    assert pairing_errors(last.messages) == []
    assert all(request.messages[0] is agent_requests[0].messages[0] for request in agent_requests)
    breaks = sum(
        after.messages[: len(before.messages)] != before.messages for before, after in pairwise(agent_requests)
    )
    assert breaks <= resets
    assert resets < ROUNDS / 2
    assert model.refused <= 3  # it takes one refusal at most to learn how the provider counts
