"""Each named policy in the real loop does what the documents of its system say, and `balanced` what ours say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holmes.app.context_policies import context_policy
from holmes.core.hooks import Always, CompactContext, Hook, TurnCount
from holmes.core.policies import named_policy
from holmes.core.policy import ContextPolicy, TriggerPolicy
from holmes.llm.scripted import ScriptedModel, ScriptedReply
from holmes.settings.load import load_settings
from holmes.stores.result_store import FileResultStore
from holmes.values.errors import ModelError
from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    CompactionFailed,
    HistoryCompacted,
    HookFired,
    ModelSwitched,
    RunFailed,
    ToolResultsMasked,
)
from holmes.values.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelLimits
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.counting_model import CountingModel, is_summary_request, pairing_errors, tool_call
from tests.support.investigations import QUESTION, build_loop
from tests.support.toolsets import FunctionToolset, tool

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.core.hooks import Moment
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

LINE = "2026-11-22T01:00:{:02d}Z checkout-{} GET /cart took {} ms\n"


async def logs(invocation: ToolInvocation) -> ToolResult:
    """As many log lines as asked for, about 25 tokens each, different in each part."""
    part = int(str(invocation.arguments["part"]))
    lines = int(str(invocation.arguments["lines"]))
    return ToolResult(status="success", data="".join(LINE.format(n % 60, part, n * 7 % 900) for n in range(lines)))


class Played:
    """A run of `rounds` rounds that read `lines` log lines each: what was sent, and what happened."""

    def __init__(self, folder: Path, policy: ContextPolicy, *, rounds: int, lines: int, window: int) -> None:
        self.requests: list[ModelRequest] = []
        self.summaries = 0
        self.events: list[AgentEvent] = []
        self._rounds, self._lines = rounds, lines
        self._model = CountingModel(self._answer, window_tokens=window, max_output_tokens=4_000)
        self._policy, self._folder = policy, folder

    def _answer(self, request: ModelRequest) -> AssistantMessage:
        if is_summary_request(request):
            self.summaries += 1
            return AssistantMessage(text="Nothing was found in the logs of checkout.")
        self.requests.append(request)
        if len(self.requests) > self._rounds:
            return AssistantMessage(text="Nothing is wrong.")
        number = len(self.requests)
        call = tool_call(f"c{number}", "logs", f'{{"lines": "{self._lines}", "part": "{number}"}}')
        return AssistantMessage(text=f"I look at part {number}.", tool_calls=(call,))

    async def play(self) -> Played:
        loop = build_loop(
            [self._model],
            [FunctionToolset(bodies=((tool("logs", "lines", "part"), logs),))],
            store=FileResultStore(self._folder),
            policy=self._policy,
            max_steps=self._rounds + 5,
        )
        self.events = [event async for event in loop.call_stream(QUESTION)]
        assert isinstance(self.events[-1], AnswerFinished), self.events[-1]
        assert all(pairing_errors(request.messages) == [] for request in self.requests)
        return self

    def all(self, kind: type[AgentEvent]) -> list[AgentEvent]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def after_compaction(self) -> tuple[Message, ...]:
        """The first request that has a summary in it."""
        return next(
            tuple(request.messages)
            for request in self.requests
            if any(isinstance(m, UserMessage) and m.kind == "summary" for m in request.messages)
        )


@pytest.mark.row("K1", "C2")
async def test_holmesgpt_leaves_prompt_question_and_summary_and_no_tail(tmp_path: Path) -> None:
    played = await Played(tmp_path, named_policy("holmesgpt"), rounds=12, lines=100, window=32_000).play()
    assert played.summaries == 1
    assert played.all(ToolResultsMasked) == []
    first = played.after_compaction()
    assert [type(message) for message in first] == [SystemMessage, UserMessage, UserMessage]
    assert [message.kind for message in first if isinstance(message, UserMessage)] == ["request", "summary"]


@pytest.mark.row("P1", "P10")
async def test_octo_puts_old_results_away_before_every_request_and_trims_to_two_fifths(tmp_path: Path) -> None:
    octo = named_policy("octo")
    played = await Played(tmp_path, octo, rounds=16, lines=80, window=200_000).play()
    last = [message for message in played.requests[-1].messages if isinstance(message, ToolMessage)]
    assert [message.masked for message in last] == [True] * (len(last) - 5) + [False] * 5
    assert played.summaries == 0
    trimming = replace(octo, strategy="truncate", trigger=TriggerPolicy(threshold_pct=None, tokens=9_000))
    trimmed = await Played(tmp_path, trimming, rounds=30, lines=80, window=200_000).play()
    sizes = [event for event in trimmed.all(HistoryCompacted) if isinstance(event, HistoryCompacted)]
    assert 1 <= len(sizes) <= 10
    assert all(0.30 < event.tokens_after / event.tokens_before < 0.50 for event in sizes)


@pytest.mark.row("P2", "C5", "K10")
async def test_flowllm_compacts_first_and_summarises_only_what_is_still_above_three_quarters(tmp_path: Path) -> None:
    flowllm = named_policy("flowllm")
    large = await Played(tmp_path / "large", flowllm, rounds=10, lines=150, window=200_000).play()
    masks = large.all(ToolResultsMasked)
    assert masks
    assert all(isinstance(event, ToolResultsMasked) and event.policy == "preview" for event in masks)
    assert all(len(after.messages) >= len(before.messages) for before, after in pairwise(large.requests))
    # Results below 2,000 tokens cannot be masked, so everything is left, and is summarised once it is above 20,000.
    small = await Played(tmp_path / "small", flowllm, rounds=30, lines=50, window=200_000).play()
    assert small.all(ToolResultsMasked) == []
    assert small.summaries >= 1
    assert small.all(CompactionFailed) == []
    kept = small.after_compaction()
    assert isinstance(kept[-1], ToolMessage)
    assert len(kept) <= 5


@pytest.mark.row("S1", "C8")
async def test_digitorn_compacts_by_its_hook_and_rests_for_two_turns_whatever_the_clock_says(tmp_path: Path) -> None:
    digitorn = named_policy("digitorn")
    hooks = tuple(replace(hook, cooldown=0.0) for hook in digitorn.hooks)
    policy = replace(digitorn, hooks=hooks)
    played = await Played(tmp_path, policy, rounds=40, lines=30, window=16_000).play()
    fired = [event.text for event in played.events if isinstance(event, HookFired)]
    assert "conversation compacted" in fired
    turns = [
        number
        for number, (before, after) in enumerate(pairwise(played.requests), start=2)
        if len(after.messages) < len(before.messages)
    ]
    assert turns
    assert all(later - earlier > 2 for earlier, later in pairwise(turns))


@pytest.mark.row("P4", "P5", "P6", "S2")
async def test_altimate_leaves_the_newest_40k_tokens_of_output_alone_and_frees_20k_at_least(tmp_path: Path) -> None:
    played = await Played(tmp_path, named_policy("altimate"), rounds=60, lines=100, window=200_000).play()
    masks = [event for event in played.all(ToolResultsMasked) if isinstance(event, ToolResultsMasked)]
    assert masks
    for request in played.requests:
        results = [message for message in request.messages if isinstance(message, ToolMessage)]
        assert not any(message.masked for message in results[-2:])
    results = [message for message in played.requests[-1].messages if isinstance(message, ToolMessage)]
    whole = [message for message in results if not message.masked]
    assert len(whole) * 100 * 20 >= 40_000


@pytest.mark.row("C4", "C8")
async def test_with_compaction_off_no_hook_of_the_policy_compacts_either(tmp_path: Path) -> None:
    settings = load_settings(
        {"HOME": str(tmp_path), "HOLMES_CONTEXT_POLICY": "digitorn", "ENABLE_CONVERSATION_HISTORY_COMPACTION": "false"}
    )
    policy = context_policy(settings, settings.model_chain()[0])
    played = await Played(tmp_path, policy, rounds=12, lines=20, window=32_000).play()
    assert played.all(HistoryCompacted) == []
    assert played.all(HookFired) == []


@pytest.mark.row("C8", "C2")
async def test_a_hook_of_the_user_leaves_the_triggers_as_they_are(tmp_path: Path) -> None:
    late = Hook(id="late", on="turn_start", condition=TurnCount(count=900), action=CompactContext())
    played = await Played(tmp_path, ContextPolicy(hooks=(late,)), rounds=30, lines=100, window=32_000).play()
    sizes = [event.tokens_before for event in played.events if isinstance(event, HistoryCompacted)]
    assert sizes
    assert all(size < 32_000 for size in sizes)
    assert max(size + 4_000 for size in sizes) < 32_000


@pytest.mark.row("C8", "S2")
async def test_hooks_that_have_nothing_to_compact_never_end_a_run(tmp_path: Path) -> None:
    moments: tuple[Moment, ...] = ("turn_start", "turn_end") * 3
    hooks = tuple(
        Hook(id=f"h{number}", on=moment, condition=Always(), action=CompactContext())
        for number, moment in enumerate(moments)
    )
    played = await Played(tmp_path, ContextPolicy(hooks=hooks), rounds=2, lines=2, window=32_000).play()
    assert {event.text for event in played.events if isinstance(event, HookFired)} == {"not compacted"}


def sized(window: int, name: str, *script: ModelError | ScriptedReply) -> ScriptedModel:
    limits = ModelLimits(context_window_tokens=window, max_output_tokens=1_000)
    return ScriptedModel(script, name=name, limits=limits)


DOWN = ModelError("the provider is down", provider="p", model="big", retryable=False)
LONG_QUESTION: tuple[Message, ...] = (SystemMessage(text="You are Holmes."), user_text("why? " * 3_000))


async def test_a_chain_goes_on_to_the_first_model_that_is_large_enough(tmp_path: Path) -> None:
    chain = (sized(64_000, "big", DOWN), sized(4_000, "small"), sized(64_000, "spare", ScriptedReply(text="done")))
    loop = build_loop(chain, store=FileResultStore(tmp_path))
    events = [event async for event in loop.call_stream(LONG_QUESTION)]
    assert isinstance(events[-1], AnswerFinished)
    assert [event.to_model for event in events if isinstance(event, ModelSwitched)] == ["small", "spare"]


async def test_a_chain_that_ends_with_too_small_a_model_says_what_broke_first(tmp_path: Path) -> None:
    loop = build_loop((sized(64_000, "big", DOWN), sized(4_000, "small")), store=FileResultStore(tmp_path))
    end = [event async for event in loop.call_stream(LONG_QUESTION)][-1]
    assert isinstance(end, RunFailed)
    assert "'big' failed: the provider is down" in end.error
    assert "does not fit in the model's context window of 4,000 tokens" in end.error
