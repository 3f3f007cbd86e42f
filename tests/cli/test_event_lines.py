"""What people read of a run: each line says what happened, with the numbers that count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.cli.render.event_lines import Detail, PlotSpace, event_lines
from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.result_store import FileResultStore
from holmes.values.events import (
    AttemptDiscarded,
    CompactionStarted,
    ContextOverflowed,
    HistoryCompacted,
    ToolCallFinished,
    ToolResultsMasked,
    ToolResultSpilled,
)
from holmes.values.messages import Image, ResultId, StoredResult
from holmes.values.stats import RequestStats
from tests.cli.events import LOGS, PODS, finished, tool_message
from tests.support.charts import MEMORY
from tests.support.investigations import build_loop, events_of
from tests.support.toolsets import echo_toolset

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.events import AgentEvent

COMPACTED = HistoryCompacted(
    strategy="summarize",
    tokens_before=130_000,
    tokens_after=9_000,
    messages_before=40,
    messages_after=5,
    summary="s",
    stats=RequestStats(calls=1, cost=0.02),
)


def line(event: AgentEvent) -> str:
    (only,) = event_lines(event, Detail())
    return only.text


def spilled(limit: str, *, stored: bool = True) -> ToolResultSpilled:
    return ToolResultSpilled(call=LOGS, tokens=14_100, cap_tokens=25_000, stored=stored, limit=limit)


def stored(size_bytes: int) -> StoredResult:
    return StoredResult(id=ResultId("0123456789ab"), path=None, size_bytes=size_bytes, media_type="text/plain")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            spilled("the limit is 25,000 tokens and 20,000 characters"),
            (
                "  result of kubernetes_logs is too large (14.1k tokens; "
                "the limit is 25,000 tokens and 20,000 characters): it is stored, and the model sees a preview"
            ),
        ),
        (
            spilled("", stored=False),
            (
                "  result of kubernetes_logs is too large (14.1k tokens; the limit is 25,000 tokens): "
                "it cannot be stored, so the model must request less"
            ),
        ),
        (
            CompactionStarted(tokens=12_500, trigger_tokens=21_000),
            "  compacting the conversation: 12.5k of at most 21k tokens",
        ),
        (
            CompactionStarted(tokens=22_500, trigger_tokens=21_000),
            "  compacting the conversation: 22.5k tokens, compacted above 21k",
        ),
        (COMPACTED, "  older messages summarised: 130k → 9k tokens, 40 → 5 messages, $0.020"),
        (
            replace(COMPACTED, flagged=("payment-0", "10.0.0.9"), lost=True),
            (
                "  older messages summarised: 130k → 9k tokens, 40 → 5 messages, $0.020; "
                "2 names not found in the conversation: payment-0, 10.0.0.9; "
                "removed messages could not be stored and are lost"
            ),
        ),
        (
            replace(COMPACTED, strategy="emergency", stats=RequestStats(compactions=1)),
            "  conversation cut to fit: 130k → 9k tokens, 40 → 5 messages",
        ),
        (
            ToolResultsMasked(count=3, policy="fingerprint", tokens_before=30_000, tokens_after=12_000),
            "  3 old tool results shortened to one line each: 30k → 12k tokens",
        ),
        (
            ContextOverflowed(model="m", reason="too long", window_tokens=32_768),
            "  m rejected the conversation as too long (its context window has 32.8k tokens): too long",
        ),
        (
            AttemptDiscarded(model="m", reason="503", retry_in_seconds=0),
            "  m failed, retrying now: 503",
        ),
    ],
)
def test_each_line_says_what_happened(event: AgentEvent, text: str) -> None:
    assert line(event) == text


def test_a_loss_is_a_warning() -> None:
    for event in (replace(COMPACTED, lost=True), spilled("", stored=False)):
        assert [each.style for each in event_lines(event, Detail())] == ["warning"]


def test_a_call_whose_result_was_moved_away_shows_the_size_of_the_result() -> None:
    pointer = replace(tool_message(PODS, "Too large.\nStored as 0123456789ab."), spilled=True)
    moved = replace(pointer, stored=(stored(20_000_000),))
    assert line(finished(PODS, moved)) == "✓ kubectl_get call-1 · 1.2 s · 20 MB, stored"


def test_a_picture_is_no_empty_result() -> None:
    message = tool_message(PODS, "")
    picture = Image(data=b"x", media_type="image/png")
    assert line(finished(PODS, replace(message, parts=(picture,)))).endswith("· 1 image")
    assert line(finished(PODS, replace(message, parts=(*tool_message(PODS, "a").parts, picture, picture)))).endswith(
        "· 1 line, 2 images"
    )
    assert line(finished(PODS, message)).endswith("· 0 lines")


async def test_a_real_run_names_the_limit_that_was_passed_and_the_real_size(tmp_path: Path) -> None:
    text = "an ordinary line\n" * 200
    replies = [ScriptedReply(tool_calls=(scripted_call("echo", text=text),)), ScriptedReply(text="done")]
    policy = ContextPolicy(spill=SpillPolicy(char_limit=2_000))
    store = FileResultStore(tmp_path)
    events = await events_of(build_loop([ScriptedModel(replies)], [echo_toolset()], store=store, policy=policy))
    shown = [line(event) for event in events if isinstance(event, ToolResultSpilled | ToolCallFinished)]
    limit = "the limit is 19,200 tokens and 2,000 characters"
    assert f"{limit}): it is stored, and the model sees a preview" in shown[0]
    assert shown[1].endswith("3.4 KB, stored")


def test_a_chart_is_drawn_below_its_call_where_there_is_space() -> None:
    ended = replace(finished(PODS, tool_message(PODS, "x")), chart=replace(MEMORY, title="a\x1b[2J b"))
    first, *plot = event_lines(ended, Detail(), PlotSpace(columns=60, encoding="ascii"))
    assert first == event_lines(ended, Detail())[0]
    assert len(event_lines(ended, Detail())) == 1
    assert plot[0].text == "  a b"
    assert all(len(each.text) <= 60 and each.text.isascii() for each in plot)
    assert sum("|" in each.text and "*" in each.text for each in plot) >= 2
