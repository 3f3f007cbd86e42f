"""What an interrupted run is said to have cost: everything that was paid, once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.cli.commands.report_file import Transcript
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.conversation_store import ConversationStore
from holmes.values.errors import ModelError
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    ContextOverflowed,
    HistoryCompacted,
    ModelSwitched,
    RunFailed,
    RunningCost,
)
from holmes.values.messages import AssistantMessage
from holmes.values.stats import RequestStats
from tests.support.investigations import QUESTION, build_loop
from tests.support.toolsets import echo_toolset

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.events import AgentEvent


def spent(cost: float, compactions: int = 0) -> RequestStats:
    return RequestStats(cost=cost, calls=1, compactions=compactions)


def discarded(cost: float) -> AttemptDiscarded:
    return AttemptDiscarded(model="m", reason="503", retry_in_seconds=1, stats=spent(cost))


def replied(stats: RequestStats) -> AssistantReplied:
    return AssistantReplied(message=AssistantMessage(text="I look."), stats=stats, model="m")


COMPACTED = HistoryCompacted(
    strategy="summarize",
    tokens_before=9,
    tokens_after=3,
    messages_before=9,
    messages_after=3,
    summary="s",
    stats=spent(4, compactions=1),
)
SWITCHED = ModelSwitched(from_model="m", to_model="n", reason="503")
OVERFLOWED = ContextOverflowed(model="m", reason="too long")


def total(*events: AgentEvent) -> tuple[float, int]:
    running = RunningCost()
    for event in events:
        running.note(event)
    return running.stats.cost, running.stats.calls


def test_replies_and_compactions_add_up_whether_adopted_or_not() -> None:
    failed = CompactionFailed(reason="empty", stats=spent(8))
    assert total(replied(spent(1)), COMPACTED, failed, replied(spent(2))) == (15, 4)


def test_a_failed_attempt_counts_until_the_reply_that_includes_it_comes() -> None:
    assert total(replied(spent(1)), discarded(2), discarded(4)) == (7, 3)
    assert total(replied(spent(1)), discarded(2), replied(replace(spent(10), calls=2))) == (11, 3)


def test_failed_attempts_at_a_summary_are_part_of_the_compaction() -> None:
    assert total(discarded(1), COMPACTED) == (4, 1)


def test_attempts_of_a_model_that_was_given_up_stay_counted() -> None:
    for given_up in (SWITCHED, OVERFLOWED):
        assert total(discarded(2), given_up, replied(spent(1))) == (3, 2)


def test_the_end_of_the_run_knows_better() -> None:
    end = spent(100)
    answer = AnswerFinished(text="a", messages=(), stats=end, steps=1, model="m")
    failure = RunFailed(error="e", exit_code=1, messages=(), stats=end)
    for last in (answer, failure):
        assert total(replied(spent(1)), discarded(2), last) == (100, 1)


async def test_a_real_run_costs_before_its_last_event_what_that_event_says(tmp_path: Path) -> None:
    failing = ScriptedModel(
        [
            ScriptedReply(tool_calls=(scripted_call("echo", text="a"),), stats=spent(1)),
            ModelError("down", provider="p", model="first", retryable=False),
        ],
        name="first",
    )
    second = ScriptedModel(
        [
            ScriptedReply(tool_calls=(scripted_call("echo", text="b"),), stats=spent(2)),
            ScriptedReply(text="done", stats=spent(4)),
        ],
        name="second",
    )
    store = ConversationStore(tmp_path, retention_days=1, limit=9)
    with store.start() as conversation:
        transcript = Transcript(conversation, lambda _: None)
        before = RequestStats()
        async for event in build_loop([failing, second], [echo_toolset()]).call_stream(QUESTION):
            before = transcript.stats
            transcript.note(event)
    assert isinstance(event, AnswerFinished)
    assert before == event.stats == transcript.stats
    assert before.cost == 7
