"""Hooks in the loop: each condition, each action, cooldowns, and what a hook may not break (C8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.core.hooks import (
    Always,
    CallTool,
    CompactContext,
    ContextPressure,
    Hook,
    InjectMessage,
    Log,
    MessageCount,
    ToolCalls,
    TurnCount,
    auto_compact_hook,
)
from holmes.core.policy import ContextPolicy, MaskingPolicy, SummaryPolicy
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.values.events import AnswerFinished, HistoryCompacted, HookFired
from holmes.values.messages import AssistantMessage, SystemMessage, UserMessage
from tests.support.counting_model import CountingModel, is_summary_request, pairing_errors, tool_call
from tests.support.investigations import build_loop, events_of
from tests.support.toolsets import echo_toolset

if TYPE_CHECKING:
    from holmes.core.hooks import Action, Condition, Moment
    from holmes.values.model import ModelRequest

LINE = Log(message="turn {turn}: {tokens} tokens, {messages} messages {other}")


def policy_with(*hooks: Hook) -> ContextPolicy:
    return ContextPolicy(hooks=hooks)


def hook(
    condition: Condition, action: Action = LINE, on: Moment = "turn_start", name: str = "h", cooldown: float = 0.0
) -> Hook:
    return Hook(id=name, condition=condition, action=action, on=on, cooldown=cooldown)


def three_rounds() -> ScriptedModel:
    echo = ScriptedReply(tool_calls=(scripted_call("echo", text="some words"),) * 2)
    return ScriptedModel([echo, echo, echo, ScriptedReply(text="done")])


async def fired(policy: ContextPolicy, model: ScriptedModel | None = None) -> list[HookFired]:
    events = await events_of(build_loop([model or three_rounds()], [echo_toolset()], policy=policy))
    assert isinstance(events[-1], AnswerFinished)
    return [event for event in events if isinstance(event, HookFired)]


@pytest.mark.row("C8")
@pytest.mark.parametrize(
    ("condition", "turns"),
    [
        (Always(), [1, 2, 3, 4]),
        (TurnCount(count=2), [2]),
        (ToolCalls(threshold=3), [3, 4]),
        (MessageCount(threshold=4), [3, 4]),
        (ContextPressure(threshold=0.5), []),
        (ContextPressure(threshold=0.0), [1, 2, 3, 4]),
        (ContextPressure(), []),
    ],
)
async def test_a_condition_holds_at_its_turns(condition: Condition, turns: list[int]) -> None:
    lines = [event.text for event in await fired(policy_with(hook(condition)))]
    assert [int(line.removeprefix("turn ").split(":")[0]) for line in lines] == turns
    assert all(line.endswith("messages {other}") for line in lines)


async def test_turn_end_sees_the_results_of_the_turn() -> None:
    at_start = await fired(policy_with(hook(TurnCount(count=1))))
    at_end = await fired(policy_with(hook(TurnCount(count=1), on="turn_end")))
    assert at_start[0].text.endswith(" 1 messages {other}")
    assert at_end[0].text.endswith(" 4 messages {other}")


async def test_a_cooldown_keeps_a_hook_quiet_and_belongs_to_it_alone() -> None:
    events = await fired(policy_with(hook(Always(), cooldown=3_600.0, name="slow"), hook(Always(), name="fast")))
    assert [event.hook_id for event in events] == ["slow", "fast", "fast", "fast", "fast"]


@pytest.mark.row("C8")
async def test_an_injected_message_is_a_marked_user_message_so_that_the_prefix_stays() -> None:
    model = three_rounds()
    policy = policy_with(
        hook(TurnCount(count=2), InjectMessage(message="Think of DNS."), name="dns"),
        hook(TurnCount(count=3), InjectMessage(message="plain", role="user"), name="said"),
    )
    events = await events_of(build_loop([model], [echo_toolset()], policy=policy))
    end = events[-1]
    assert isinstance(end, AnswerFinished)
    notes = [message.text for message in end.messages if isinstance(message, UserMessage) and message.kind == "note"]
    assert notes == ["[Reminder from hook 'dns'] Think of DNS.", "plain"]
    assert sum(isinstance(message, SystemMessage) for message in end.messages) == 1
    assert pairing_errors(end.messages) == []


@pytest.mark.row("C8")
async def test_a_tool_that_a_hook_calls_joins_as_a_note_and_a_wrong_one_is_only_told() -> None:
    calls = (
        CallTool(action="echo", module="test/functions", params={"text": "from the hook"}),
        CallTool(action="echo", module="other"),
        CallTool(action="nothing"),
    )
    hooks = tuple(hook(TurnCount(count=2), call, name=f"h{number}") for number, call in enumerate(calls))
    events = await events_of(build_loop([three_rounds()], [echo_toolset()], policy=policy_with(*hooks)))
    end = events[-1]
    assert isinstance(end, AnswerFinished)
    texts = [event.text for event in events if isinstance(event, HookFired)]
    assert texts[0] == "echo(from the hook): success"
    assert texts[1] == "toolset 'other' has no tool 'echo'"
    assert texts[2].endswith(": error")
    notes = [message.text for message in end.messages if isinstance(message, UserMessage) and message.kind == "note"]
    assert notes[0] == "[Hook 'h0' called echo]\nfrom the hook"


def growing(rounds: int, requests: list[ModelRequest]) -> CountingModel:
    def answer(request: ModelRequest) -> AssistantMessage:
        if is_summary_request(request):
            return AssistantMessage(text="Nothing was found so far.")
        requests.append(request)
        if len(requests) > rounds:
            return AssistantMessage(text="done")
        words = f"number {len(requests)} " + "checkout failed " * 400
        return AssistantMessage(text="", tool_calls=(tool_call(f"c{len(requests)}", "echo", f'{{"text": "{words}"}}'),))

    return CountingModel(answer, window_tokens=32_000, max_output_tokens=4_000)


BARE = ContextPolicy(masking=MaskingPolicy(enabled=False), summary=SummaryPolicy(reminder=False, verify_entities=False))


@pytest.mark.row("C8", "C5")
@pytest.mark.parametrize("strategy", ["summarize", "truncate"])
async def test_a_hook_compacts_with_its_own_strategy_and_tail(strategy: str) -> None:
    requests: list[ModelRequest] = []
    action = CompactContext(strategy="summarize" if strategy == "summarize" else "truncate", keep_recent=2)
    policy = replace(BARE, hooks=(hook(TurnCount(count=8), action),))
    events = await events_of(build_loop([growing(9, requests)], [echo_toolset()], policy=policy))
    compacted = [event for event in events if isinstance(event, HistoryCompacted)]
    assert [event.strategy for event in compacted] == [strategy]
    assert [event.text for event in events if isinstance(event, HookFired)] == ["conversation compacted"]
    assert len(requests[7].messages) < len(requests[6].messages)


@pytest.mark.row("C8")
async def test_with_auto_compact_the_hook_compacts_and_rests_until_the_window_is_full() -> None:
    requests: list[ModelRequest] = []
    policy = replace(BARE, hooks=(auto_compact_hook(0.5),))
    events = await events_of(build_loop([growing(30, requests)], [echo_toolset()], policy=policy))
    assert isinstance(events[-1], AnswerFinished)
    kinds = [event.hook_id for event in events if isinstance(event, HookFired)]
    compactions = [event for event in events if isinstance(event, HistoryCompacted)]
    # Within 30 seconds the hook fires once; after that only the hard limit compacts, and nothing overflows.
    assert kinds == ["_auto_compact"]
    assert compactions[0].tokens_before < 20_000
    assert all(event.tokens_before > 25_000 for event in compactions[1:])
    assert len(compactions) >= 2
