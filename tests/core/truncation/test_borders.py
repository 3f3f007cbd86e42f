"""The numbers of the table at their borders: exactly so many, one more, one less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.core.policies import named_policy
from holmes.core.policy import (
    ContextPolicy,
    KeepPolicy,
    MaskingPolicy,
    SafetyPolicy,
    SpillPolicy,
    SummaryPolicy,
    TriggerPolicy,
)
from holmes.core.truncation.context import HistoryBudget
from holmes.core.truncation.input_context_window_limiter import (
    compact_after_overflow,
    compact_if_necessary,
    is_triggered,
)
from holmes.core.truncation.plan import Room
from holmes.core.truncation.summary import split_groups
from holmes.core.truncation.truncate import emergency_room
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import AssistantMessage, Message, SystemMessage, Text, ToolMessage, UserMessage, user_text
from holmes.values.tools import Tool
from tests.core.truncation.masking.support import MemoryStore, conversation, result
from tests.core.truncation.masking.support import budget as masking_budget
from tests.core.truncation.masking.support import history_of as masked_history
from tests.core.truncation.masking.test_plan import EAGER, many, planned
from tests.core.truncation.summaries import context_for, round_of
from tests.support.counting_model import CountingModel

COUNTER = TokenCounter()
TOOLS = (Tool(name="kubectl_get", description="Get."), Tool(name="kubectl_logs", description="Read."))
NO_MASKS = MaskingPolicy(enabled=False)


def never() -> CountingModel:
    def asked(_: object) -> AssistantMessage:
        raise AssertionError("no model is asked")

    return CountingModel(asked, window_tokens=200_000)


def rounds(count: int, words: int = 400) -> History:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text("why?")]
    for number in range(count):
        messages.extend(round_of(f"c{number}", f"{number} " + "word " * words))
    return History(messages, COUNTER)


def budget(trigger: TriggerPolicy, **sizes: int) -> HistoryBudget:
    given = {"window_tokens": 200_000, "reserve_tokens": 4_000, "schema_tokens": 1_000, "max_output_tokens": 8_000}
    return HistoryBudget(**{**given, **sizes}, system_tokens=0, policy=ContextPolicy(trigger=trigger))


OFF = TriggerPolicy(threshold_pct=None)


@pytest.mark.row("C2")
@pytest.mark.parametrize(
    ("trigger", "total"),
    [
        (TriggerPolicy(threshold_pct=95), 190_000 - 4_000),
        (TriggerPolicy(threshold_pct=100), 200_000 - 4_000),
        (TriggerPolicy(threshold_pct=50), 100_000 - 4_000),
        (replace(OFF, tokens=100_000), 100_000),
        (replace(OFF, fraction=0.7), 140_000),
        (replace(OFF, fraction=1.0), 196_000),
        (replace(OFF, pressure=0.75), 147_000),
        (replace(OFF, pressure=1.0), 196_000),
        (replace(OFF, reserved=20_000), 180_000),
        (replace(OFF, reserved=8_001), 191_999),
        (replace(OFF, reserved=7_999), 192_000),
        (replace(OFF, reserved=100_001), 100_000),
        (replace(OFF, tokens=50_000, fraction=0.2), 40_000),
        (OFF, 196_000),
    ],
)
def test_each_trigger_begins_above_its_own_number_and_the_smallest_counts(trigger: TriggerPolicy, total: int) -> None:
    assert budget(trigger).history_limit_tokens == total - 1_000


@pytest.mark.row("C2")
@pytest.mark.parametrize(("output", "total"), [(19_999, 180_000), (20_001, 179_999), (64_000, 136_000)])
def test_what_is_reserved_is_the_larger_of_the_number_and_what_the_model_can_write(output: int, total: int) -> None:
    made = budget(replace(OFF, reserved=20_000), max_output_tokens=output)
    assert made.history_limit_tokens == total - 1_000
    small = budget(replace(OFF, reserved=20_000), window_tokens=32_000, max_output_tokens=output)
    assert small.history_limit_tokens == 16_000 - 1_000


@pytest.mark.row("C2")
async def test_the_trigger_by_messages_begins_above_its_number_and_leaves_the_system_prompt_out() -> None:
    history = rounds(5)
    assert len(history) == 12
    for limit, triggered in ((11, False), (10, True), (12, False)):
        trigger = replace(OFF, messages=limit)
        assert is_triggered(history, budget(trigger)) == triggered
        policy = ContextPolicy(trigger=trigger, masking=NO_MASKS, strategy="truncate", keep=KeepPolicy().counting(2))
        outcome = await compact_if_necessary(history, context_for(never(), policy=policy))
        assert (outcome.history is not history) == triggered


@pytest.mark.row("T2")
@pytest.mark.parametrize(
    ("pct", "cap"), [(100, 8_000), (100.0001, 25_000), (99.9, 7_992), (0, 25_000), (0.1, 8), (-5, 25_000)]
)
def test_a_share_of_exactly_100_is_a_share_and_one_beyond_is_none(pct: float, cap: int) -> None:
    assert SpillPolicy(max_pct=pct).cap_tokens(8_000) == cap


@pytest.mark.row("P1")
def test_exactly_the_last_messages_are_not_old_and_the_one_before_is() -> None:
    paths = MaskingPolicy(kind="path", larger_than_characters=100)
    made = [(result(f"c{number}", f"{number} " + "x" * 4_000),) for number in range(7)]
    for newest, masked in ((14, 0), (13, 0), (12, 1), (11, 1), (10, 2), (2, 6), (1, 6), (0, 7)):
        assert len(planned(replace(paths, older_than_messages=newest), *made)) == masked


@pytest.mark.row("P1")
@pytest.mark.parametrize(("characters", "masked"), [(3_999, []), (4_000, []), (4_001, ["old"])])
def test_exactly_4000_characters_are_not_larger(characters: int, masked: list[str]) -> None:
    assert planned(MaskingPolicy(kind="path"), (result("old", "x" * characters),), *many(5)) == masked


@pytest.mark.row("P4")
@pytest.mark.parametrize(("count", "masked"), [(1, []), (2, []), (3, ["c0"]), (4, ["c0", "c1"])])
def test_exactly_two_turns_are_protected(count: int, masked: list[str]) -> None:
    policy = MaskingPolicy(protect_tokens=0, minimum_tokens=0)
    assert planned(policy, *many(count)) == masked


@pytest.mark.row("P5", "P6")
def test_a_result_is_old_when_exactly_the_protected_tokens_are_newer() -> None:
    made = many(3, 20)
    newer = sum(COUNTER.count_message(each) for (each,) in made[1:])
    for protected, masked in ((newer, ["c0"]), (newer + 1, []), (newer - 1, ["c0"])):
        assert planned(replace(EAGER, protect_tokens=protected), *made, window_tokens=800_000) == masked
    assert 39_000 < newer - 1_000 < 40_000 < newer, "the documented number lies between two of them"
    documented = replace(EAGER, protect_tokens=MaskingPolicy().protect_tokens)
    assert planned(documented, *made, window_tokens=800_000) == ["c0"]
    assert planned(documented, made[0], *many(2, 19), window_tokens=800_000) == []


@pytest.mark.row("P2")
def test_a_total_and_a_result_of_exactly_the_number_are_not_above_it() -> None:
    made = [(result("big", "pod " * 3_000),), *many(1)]
    policy = MaskingPolicy(kind="preview", max_tool_message_tokens=2_000)
    weight = COUNTER.count_message(made[0][0])
    assert planned(replace(policy, max_total_tokens=0, max_tool_message_tokens=weight), *made) == []
    assert planned(replace(policy, max_total_tokens=0, max_tool_message_tokens=weight - 1), *made) == ["big"]
    total = masked_history(conversation(*made)).tokens()
    assert planned(replace(policy, max_total_tokens=total), *made) == []
    assert planned(replace(policy, max_total_tokens=total - 1), *made) == ["big"]


def overflow_budget(window: int, keep: KeepPolicy, share: float = 0.5) -> HistoryBudget:
    policy = ContextPolicy(keep=keep, safety=SafetyPolicy(emergency_share=share))
    return replace(masking_budget(NO_MASKS, window_tokens=window), policy=policy, schema_tokens=300)


@pytest.mark.row("S3")
def test_the_emergency_keeps_half_of_the_window_of_the_tail_of_the_newest_round_and_of_the_messages() -> None:
    history = rounds(60)
    keep = KeepPolicy().counting(9)
    made = overflow_budget(40_000, keep)
    usual, room = Room.of(made, 0), emergency_room(history, made)
    assert room.history_tokens == min(20_000 - 300, int(history.tokens() * 0.6))
    assert emergency_room(history, overflow_budget(20_000, keep)).history_tokens == 10_000 - 300
    assert emergency_room(history, overflow_budget(20_000, keep, 0.25)).history_tokens == 5_000 - 300
    assert (room.tail_messages, room.tail_tokens) == (4, usual.tail_tokens // 2)
    assert room.newest_round_tokens == usual.newest_round_tokens // 2
    by_tokens = emergency_room(history, overflow_budget(40_000, KeepPolicy()))
    assert by_tokens.tail_messages is None
    assert 0 < by_tokens.tail_tokens == Room.of(overflow_budget(40_000, KeepPolicy()), 0).tail_tokens // 2


@pytest.mark.row("S3")
@pytest.mark.parametrize(("keep", "kept"), [(10, 6), (4, 2), (20, 10)])
async def test_after_an_overflow_half_of_keep_recent_stays_in_whole_rounds(keep: int, kept: int) -> None:
    history = rounds(20, 50)
    policy = ContextPolicy(masking=NO_MASKS, keep=KeepPolicy().counting(keep))
    outcome = await compact_after_overflow(history, context_for(never(), policy=policy))
    after = outcome.history.messages()
    assert after[-kept:] == history.messages()[-kept:]
    assert len(after) == 3 + kept


@pytest.mark.row("K8", "S3")
@pytest.mark.parametrize("reminder", [True, False])
@pytest.mark.parametrize("emergency", [True, False])
async def test_the_reminder_follows_a_truncation_and_an_emergency_in_the_same_message(
    emergency: bool, reminder: bool
) -> None:
    history = rounds(40, 200)
    trigger = replace(OFF, tokens=5_000)
    plain = ContextPolicy(trigger=trigger, masking=NO_MASKS, strategy="truncate")
    policy = replace(plain, summary=replace(plain.summary, reminder=reminder))
    context = context_for(never(), policy=policy, tools=TOOLS)
    outcome = await (compact_after_overflow if emergency else compact_if_necessary)(history, context)
    line = outcome.history[2]
    assert isinstance(line, UserMessage)
    assert line.parts[0] == Text(text="[Earlier messages truncated]")
    expected = Text(text="Available tools, as before: kubectl_get, kubectl_logs.")
    assert (line.parts[-1] == expected) == reminder


@pytest.mark.row("C5", "P2")
@pytest.mark.parametrize(
    ("every_step", "small", "large", "summarised"),
    [
        (True, 15, 12_000, False),
        (True, 15, 9_000, False),
        (True, 15, 6_500, True),
        (True, 15, 4_000, True),
        (False, 11, 9_000, False),
        (False, 11, 6_500, False),
        (False, 11, 4_500, True),
    ],
)
async def test_masks_are_enough_when_at_most_three_quarters_are_left(
    every_step: bool, small: int, large: int, summarised: bool
) -> None:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text("why?")]
    messages += round_of("big", "word " * large, stored="0f1e2d3c4b5a")
    for number in range(small):
        messages += round_of(f"c{number}", f"{number} " + "word " * 1_500)
    history = History(messages, COUNTER)
    left = history.tokens() - large + 300
    assert (left <= 0.75 * history.tokens()) != summarised
    flowllm = named_policy("flowllm")
    policy = replace(
        flowllm,
        masking=replace(flowllm.masking, every_step=every_step),
        summary=replace(flowllm.summary, compress_above_tokens=10_000),
    )
    model = CountingModel(lambda _: AssistantMessage(text="Nothing was found."), window_tokens=200_000)
    outcome = await compact_if_necessary(history, context_for(model, policy=policy, store=MemoryStore()))
    assert bool(model.requests) == summarised
    masked = [message for message in outcome.history if isinstance(message, ToolMessage) and message.masked]
    assert [message.call_id for message in masked] == ([] if summarised else ["big"])


@pytest.mark.row("K5")
@pytest.mark.parametrize(
    ("wanted", "usable", "cap"),
    [
        (None, 200_000, 4_096),
        (None, 16_000, 2_000),
        (1_024, 200_000, 1_024),
        (1_024, 2_000, 500),
        (9_000, 80_000, 9_000),
    ],
)
def test_a_summary_takes_at_most_what_is_set_and_a_quarter_of_what_is_usable(
    wanted: int | None, usable: int, cap: int
) -> None:
    policy = ContextPolicy(summary=SummaryPolicy(max_tokens=wanted))
    made = replace(budget(OFF, window_tokens=usable, reserve_tokens=0, schema_tokens=0), policy=policy)
    assert made.summary_tokens == cap


@pytest.mark.row("K10")
def test_a_group_is_filled_to_exactly_the_threshold_and_doubled_only_as_often_as_it_takes() -> None:
    said: tuple[Message, ...] = tuple(user_text(f"{number}") for number in range(8))
    for threshold, most, sizes in (
        (200, 9, [2, 2, 2, 2]),
        (199, 9, [1] * 8),
        (100, 4, [2, 2, 2, 2]),
        (100, 3, [4, 4]),
        (100, 2, [4, 4]),
    ):
        groups = split_groups(said, [100] * 8, threshold, most)
        assert [len(group) for group in groups] == sizes
