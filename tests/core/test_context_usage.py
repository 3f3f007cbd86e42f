"""What people ask of a conversation between two questions: `/compact` and `/context`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.core.context_usage import ContextUsage, compact_conversation, context_usage
from holmes.core.hooks import Always, CompactContext, Hook, Log, MessageCount, auto_compact_hook
from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy, TriggerPolicy
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.values.events import HistoryCompacted, HistoryReplaced, RunFailed
from holmes.values.messages import AssistantMessage, SystemMessage, Text, ToolCallId, ToolMessage, user_text
from holmes.values.steps import DirectStepRunner
from tests.support.counting_model import CountingModel, pairing_errors, tool_call
from tests.support.investigations import PROMPTS
from tests.support.toolsets import echo_toolset

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.messages import Message

COUNTER = TokenCounter()


def parts_of(model: CountingModel, folder: Path, policy: ContextPolicy | None = None) -> LoopParts:
    return LoopParts(
        models=(LoopModel(model=model, policy=policy or ContextPolicy()),),
        executor=ToolExecutor([echo_toolset()]),
        store=FileResultStore(folder),
        prompts=PROMPTS,
        steps=DirectStepRunner(),
    )


def conversation(rounds: int) -> tuple[Message, ...]:
    messages: list[Message] = [SystemMessage(text="You are Holmes."), user_text("why?")]
    for number in range(rounds):
        call = tool_call(f"c{number}", "echo", '{"text": "x"}')
        result = Text(text=f"line {number}: checkout failed\n" * 60)
        messages += [
            AssistantMessage(text=f"step {number}", tool_calls=(call,)),
            ToolMessage(call_id=ToolCallId(f"c{number}"), tool_name="echo", status="success", parts=(result,)),
        ]
    return (*messages, AssistantMessage(text="It is the disk."))


@pytest.mark.row("C10")
async def test_compact_makes_a_conversation_shorter_long_before_the_trigger(tmp_path: Path) -> None:
    model = CountingModel(lambda _: AssistantMessage(text="The disk was found full."), window_tokens=200_000)
    before = conversation(60)
    events = [event async for event in compact_conversation(parts_of(model, tmp_path), before)]
    end = events[-1]
    assert isinstance(end, HistoryReplaced)
    assert any(isinstance(event, HistoryCompacted) for event in events)
    assert sum(map(COUNTER.count_message, end.messages)) < sum(map(COUNTER.count_message, before)) / 2
    assert end.messages[:2] == before[:2]
    assert end.messages[-1] == before[-1]
    assert pairing_errors(end.messages) == []
    assert (end.stats.compactions, end.stats.compaction_tokens) == (1, end.stats.total_tokens)


async def test_what_cannot_fit_is_told_and_the_conversation_stays(tmp_path: Path) -> None:
    model = CountingModel(lambda _: AssistantMessage(text=""), window_tokens=2_000, max_output_tokens=500)
    messages = (SystemMessage(text="word " * 3_000), user_text("why?"))
    events = [event async for event in compact_conversation(parts_of(model, tmp_path), messages)]
    (end,) = events
    assert isinstance(end, RunFailed)
    assert "does not fit in the model's context window of 2,000 tokens" in end.error
    assert end.messages == messages


@pytest.mark.row("C11")
async def test_usage_adds_up_by_role_and_grows_with_what_the_provider_counts(tmp_path: Path) -> None:
    model = CountingModel(lambda _: AssistantMessage(text=""), window_tokens=32_000, max_output_tokens=4_000)
    parts, messages = parts_of(model, tmp_path), conversation(5)
    usage = await context_usage(parts, messages)
    tools = COUNTER.count_tools(parts.executor.tools)
    assert usage.used_tokens == tools + sum(map(COUNTER.count_message, messages))
    assert dict(usage.by_role)["system"] == COUNTER.count_message(messages[0])
    assert (usage.window_tokens, usage.reserve_tokens) == (32_000, 4_000)
    assert usage.trigger_tokens == int(32_000 * 0.95) - 4_000
    parts.models[0].calibration.observe(10_000, 15_000)
    calibrated = await context_usage(parts, messages)
    assert 1.45 < calibrated.used_share / usage.used_share < 1.55


OFF = TriggerPolicy(enabled=False)


async def usage_of(folder: Path, messages: tuple[Message, ...], policy: ContextPolicy, window: int) -> ContextUsage:
    model = CountingModel(lambda _: AssistantMessage(text=""), window_tokens=window, max_output_tokens=1_000)
    return await context_usage(parts_of(model, folder, policy), messages)


@pytest.mark.row("C11")
@pytest.mark.parametrize(
    ("policy", "window", "compaction"),
    [
        (ContextPolicy(), 200_000, "later"),
        (ContextPolicy(), 4_000, "due"),
        (ContextPolicy(trigger=OFF), 4_000, "off"),
        (ContextPolicy(trigger=TriggerPolicy(messages=10)), 200_000, "due"),
        (ContextPolicy(trigger=TriggerPolicy(messages=23)), 200_000, "later"),
        (ContextPolicy(trigger=OFF, hooks=(auto_compact_hook(0.01),)), 200_000, "due"),
        (ContextPolicy(hooks=(auto_compact_hook(0.9),)), 200_000, "later"),
        (ContextPolicy(hooks=(auto_compact_hook(None),)), 4_000, "due"),
        (
            ContextPolicy(hooks=(Hook(id="m", condition=MessageCount(threshold=10), action=CompactContext()),)),
            200_000,
            "due",
        ),
        (ContextPolicy(hooks=(Hook(id="m", condition=Always(), action=Log(message="x")),)), 200_000, "later"),
    ],
)
async def test_usage_says_what_the_loop_will_do_next(
    policy: ContextPolicy, window: int, compaction: str, tmp_path: Path
) -> None:
    usage = await usage_of(tmp_path, conversation(10), policy, window)
    assert usage.compaction == compaction


async def test_messages_and_hooks_count_for_when_it_is_compacted(tmp_path: Path) -> None:
    policy = ContextPolicy(trigger=TriggerPolicy(messages=30), hooks=(auto_compact_hook(0.5),))
    usage = await usage_of(tmp_path, conversation(10), policy, 100_000)
    assert usage.messages_left == 30 - (len(conversation(10)) - 1)
    assert usage.trigger_tokens == (100_000 - 1_000) // 2


async def test_right_after_a_compaction_it_rests(tmp_path: Path) -> None:
    model = CountingModel(lambda _: AssistantMessage(text="The disk was found full."), window_tokens=200_000)
    parts = parts_of(model, tmp_path, ContextPolicy(trigger=TriggerPolicy(messages=2)))
    events = [event async for event in compact_conversation(parts, conversation(60))]
    assert isinstance(events[-1], HistoryReplaced)
    assert (await context_usage(parts, events[-1].messages)).compaction == "resting"
    assert (await context_usage(parts, conversation(60))).compaction == "due"
