"""What is kept of a run: what a compaction paid for is not lost when the run is interrupted after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holmes.cli.commands.report_file import Transcript
from holmes.stores.conversation_store import ConversationStore
from holmes.stores.result_store import FileResultStore
from holmes.values.events import AssistantReplied, HistoryCompacted, ToolResultsMasked
from holmes.values.messages import AssistantMessage, SystemMessage, ToolMessage, user_text
from holmes.values.stats import RequestStats
from tests.cli.events import ASSISTANT_CALLS, LOGS_RESULT, PODS, PODS_RESULT, QUESTION, STATS, finished
from tests.support.counting_model import CountingModel, tool_call
from tests.support.investigations import build_loop
from tests.support.toolsets import echo_toolset

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

SHORTER: tuple[Message, ...] = (
    SystemMessage(text="be thorough"),
    QUESTION,
    user_text("The pods are fine.", kind="summary"),
)


def compacted(messages: tuple[Message, ...]) -> HistoryCompacted:
    return HistoryCompacted(
        strategy="summarize",
        tokens_before=9,
        tokens_after=3,
        messages_before=9,
        messages_after=3,
        summary="s",
        stats=RequestStats(),
        messages=messages,
    )


def masked(messages: tuple[Message, ...]) -> ToolResultsMasked:
    return ToolResultsMasked(count=1, policy="path", tokens_before=9, tokens_after=3, messages=messages)


@pytest.mark.row("K11")
@pytest.mark.parametrize("shorten", [compacted, masked])
def test_an_interrupted_run_goes_on_from_its_last_compaction(shorten: object, tmp_path: Path) -> None:
    assert callable(shorten)
    after = AssistantReplied(message=AssistantMessage(text="So it is the disk."), stats=STATS, model="m")
    events: list[AgentEvent] = [
        AssistantReplied(message=ASSISTANT_CALLS, stats=STATS, model="m"),
        finished(PODS, PODS_RESULT),
        shorten(SHORTER),
        after,
    ]
    store = ConversationStore(tmp_path, retention_days=1, limit=9)
    with store.start() as conversation:
        transcript = Transcript(conversation, pytest.fail)
        transcript.begin(QUESTION)
        for event in events:
            transcript.note(event)
        transcript.interrupted(130)
    with store.latest() or pytest.fail("nothing was kept") as kept:
        assert kept.messages == (*SHORTER, after.message)


def test_a_compaction_that_does_not_say_what_it_left_changes_nothing(tmp_path: Path) -> None:
    with ConversationStore(tmp_path, retention_days=1, limit=9).start() as conversation:
        transcript = Transcript(conversation, pytest.fail)
        transcript.begin(QUESTION)
        transcript.note(finished(PODS, LOGS_RESULT))
        transcript.note(compacted(()))
        assert conversation.messages == (QUESTION, LOGS_RESULT)


@pytest.mark.row("K11")
async def test_after_a_real_compaction_what_is_kept_is_what_the_model_sees(tmp_path: Path) -> None:
    calls = 0

    def answer(request: ModelRequest) -> AssistantMessage:
        nonlocal calls
        if not isinstance(request.messages[-1], ToolMessage) and calls:
            return AssistantMessage(text="The log was read; the disk is full.")
        calls += 1
        if calls > 12:
            return AssistantMessage(text="It is the disk.")
        arguments = json.dumps({"text": f"line {calls}: checkout failed\n" * 80})
        return AssistantMessage(text=f"step {calls}", tool_calls=(tool_call(f"c{calls}", "echo", arguments),))

    model = CountingModel(answer, window_tokens=8_000, max_output_tokens=500)
    loop = build_loop([model], [echo_toolset()], store=FileResultStore(tmp_path / "results"))
    compared = 0
    with ConversationStore(tmp_path, retention_days=1, limit=9).start() as conversation:
        transcript = Transcript(conversation, pytest.fail)
        transcript.begin(user_text("why?"))
        async for event in loop.call_stream((SystemMessage(text="be thorough"), user_text("why?"))):
            if isinstance(event, AssistantReplied) and isinstance(conversation.messages[0], SystemMessage):
                assert conversation.messages == model.requests[-1]
                compared += 1
            transcript.note(event)
    assert compared > 1
