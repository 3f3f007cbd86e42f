"""The stages on random histories under every policy: what stays, what shrinks, what changes nothing the second time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.policies import named_policy
from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, spill_oversized_tool_result
from holmes.core.truncation.context import budget_of
from holmes.core.truncation.input_context_window_limiter import (
    compact_after_overflow,
    compact_if_necessary,
    compact_on_request,
)
from holmes.core.truncation.masks import mask_old_results, plan_masks
from holmes.core.truncation.plan import repair_pairing
from holmes.tokens.history import History
from holmes.values.errors import CompactionInsufficientError
from holmes.values.events import HistoryCompacted, ToolResultsMasked
from holmes.values.messages import AssistantMessage, Message, SystemMessage, Text, ToolMessage, user_text
from tests.core.invariants.stages import (
    FEW,
    MANY,
    POLICIES,
    SUMMARY,
    TOOLS,
    WINDOWS,
    context_of,
    counter_of,
    history_of,
    requests_of,
    summarising,
)
from tests.support.conversations import LINE_KINDS, one_line, whole_histories, wild_histories
from tests.support.counting_model import CountingModel, EventLog, pairing_errors
from tests.support.result_stores import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.core.policy import ContextPolicy
    from holmes.core.truncation.context import CompactionContext, CompactionOutcome

    Operation = Callable[[History, CompactionContext], Awaitable[CompactionOutcome]]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Generating overly large repr")]
OPERATIONS = st.sampled_from([compact_if_necessary, compact_on_request, compact_after_overflow])
LINES = st.tuples(st.sampled_from(LINE_KINDS), st.sampled_from([1_000_000, 1_250_000, 2_000_000]))
BALANCED = named_policy("balanced")


def with_line(messages: tuple[Message, ...], kind: str, size_bytes: int) -> tuple[Message, ...]:
    """`messages` with a line of megabytes in the first result, if there is one."""
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            giant = replace(message, parts=(Text(text=one_line(kind, size_bytes)),))
            return (*messages[:index], giant, *messages[index + 1 :])
    return messages


@pytest.mark.row("I1", "I4")
@MANY
@given(wild_histories(14, 30))
def test_repair_restores_the_pairing_and_changes_nothing_the_second_time(messages: tuple[Message, ...]) -> None:
    check_repair(messages)


@pytest.mark.row("I1", "I4")
@FEW
@given(wild_histories(6, 30), LINES)
def test_repair_restores_the_pairing_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int]
) -> None:
    check_repair(with_line(messages, *line))


def check_repair(messages: tuple[Message, ...]) -> None:
    repaired = repair_pairing(messages)
    assert pairing_errors(repaired) == []
    again = repair_pairing(repaired)
    assert [id(message) for message in again] == [id(message) for message in repaired]
    others = [message for message in messages if not isinstance(message, ToolMessage)]
    assert len([message for message in repaired if not isinstance(message, ToolMessage)]) == len(others)


@pytest.mark.timeout(600)
@pytest.mark.row("I1", "I2", "I5")
@MANY
@given(whole_histories(12, 150), POLICIES, WINDOWS, OPERATIONS, st.booleans())
async def test_every_operation_shrinks_or_returns_the_same_object_and_keeps_prompt_and_pairing(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, operation: Operation, stores: bool
) -> None:
    await check_operation(messages, policy, window, operation, MemoryStore() if stores else None)


@pytest.mark.row("I1", "I2", "I5")
@FEW
@given(whole_histories(6, 150), LINES, POLICIES, WINDOWS, OPERATIONS)
async def test_every_operation_shrinks_or_returns_the_same_object_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], policy: ContextPolicy, window: int, operation: Operation
) -> None:
    await check_operation(with_line(messages, *line), policy, window, operation, MemoryStore())


async def check_operation(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, operation: Operation, store: MemoryStore | None
) -> None:
    model = summarising(window, policy)
    history = history_of(messages, policy)
    try:
        outcome = await operation(history, context_of(model, policy, store=store))
    except CompactionInsufficientError:
        return
    after = outcome.history
    assert after is history or after.tokens() < history.tokens()
    assert history.messages() == messages
    assert pairing_errors(after) == []
    assert [message for message in after if isinstance(message, SystemMessage)] == [messages[0]]
    assert after[0] is messages[0]
    for request in model.raw_requests:
        assert not request.tools or (request.messages[0] is messages[0] and request.tools == TOOLS)


@pytest.mark.timeout(600)
@pytest.mark.row("I4")
@MANY
@given(whole_histories(12, 150), POLICIES, WINDOWS, st.booleans())
async def test_masking_twice_is_masking_once(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, stores: bool
) -> None:
    await check_masking(messages, policy, window, MemoryStore() if stores else None)


@pytest.mark.row("I4")
@FEW
@given(whole_histories(6, 150), LINES, POLICIES, WINDOWS)
async def test_masking_twice_is_masking_once_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], policy: ContextPolicy, window: int
) -> None:
    await check_masking(with_line(messages, *line), policy, window, MemoryStore())


async def check_masking(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int, store: MemoryStore | None
) -> None:
    policy = replace(policy, masking=replace(policy.masking, max_total_tokens=1_000, max_tool_message_tokens=150))
    policy = replace(policy, masking=replace(policy.masking, minimum_tokens=100, protect_tokens=500))
    history = history_of(messages, policy)
    context = context_of(summarising(window, policy), policy, store=store)
    budget = budget_of(history, context)
    once = await mask_old_results(history, plan_masks(history, budget, can_store=store is not None), context)
    assert once.history is history or once.history.tokens() < history.tokens()
    again = replace(context, step_name="step-8/compaction-0")
    twice = await mask_old_results(once.history, plan_masks(once.history, budget, can_store=store is not None), again)
    assert twice.history is once.history
    assert twice.masked_count == 0


@pytest.mark.timeout(600)
@pytest.mark.row("I4")
@MANY
@given(whole_histories(12, 150), POLICIES, st.sampled_from([4_000, 8_000, 16_000]))
async def test_compacting_twice_is_compacting_once(
    messages: tuple[Message, ...], policy: ContextPolicy, window: int
) -> None:
    context = context_of(summarising(window, policy), policy, store=MemoryStore())
    history = history_of(messages, policy)
    try:
        once = await compact_if_necessary(history, context)
    except CompactionInsufficientError:
        return
    context.guard.step_succeeded()
    budget = budget_of(once.history, context)
    if once.history is not history and once.history.tokens() > budget.history_limit_tokens:
        return  # what stays is above the trigger, so it is no compaction below it
    twice = await compact_if_necessary(once.history, replace(context, step_name="step-8/compaction-0"))
    assert twice.history is once.history


@pytest.mark.timeout(600)
@pytest.mark.row("I9")
@MANY
@given(
    whole_histories(10, 150),
    WINDOWS,
    OPERATIONS,
    st.tuples(st.integers(0, 2_500), st.integers(0, 2_500), st.booleans()),
)
async def test_task_and_last_request_survive_byte_for_byte_or_an_error_says_that_they_cannot(
    messages: tuple[Message, ...], window: int, operation: Operation, words: tuple[int, int, bool]
) -> None:
    task, last, again = words
    asked = user_text("why? 中 " * (task // 4))
    end = (user_text("and then? \r\n" * (last // 4)),) if again else ()
    await check_requests((messages[0], asked, *messages[2:], *end), window, operation)


@pytest.mark.row("I9")
@FEW
@given(whole_histories(6, 150), LINES, WINDOWS, OPERATIONS)
async def test_task_and_last_request_survive_byte_for_byte_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], window: int, operation: Operation
) -> None:
    await check_requests(with_line(messages, *line), window, operation)


async def check_requests(messages: tuple[Message, ...], window: int, operation: Operation) -> None:
    context = context_of(summarising(window, BALANCED), BALANCED, store=MemoryStore())
    history = history_of(messages, BALANCED)
    requests = requests_of(messages)
    try:
        after = (await operation(history, context)).history
    except CompactionInsufficientError as error:
        says = str(error)
    else:
        kept = requests_of(after.messages())
        assert kept[0] is requests[0]
        assert kept[-1] is requests[-1]
        return
    assert "first question" in says


@pytest.mark.timeout(600)
@pytest.mark.row("I11")
@MANY
@given(whole_histories(14, 300), st.sampled_from([6_000, 8_000, 16_000]), st.booleans(), st.booleans())
async def test_right_after_a_compaction_at_most_60_percent_of_the_trigger_is_used(
    messages: tuple[Message, ...], window: int, overflow: bool, fails: bool
) -> None:
    await check_room(messages, window, overflow=overflow, fails=fails)


@pytest.mark.row("I11")
@FEW
@given(whole_histories(6, 150), LINES, st.sampled_from([6_000, 8_000, 16_000]))
async def test_right_after_a_compaction_at_most_60_percent_is_used_with_lines_of_megabytes(
    messages: tuple[Message, ...], line: tuple[str, int], window: int
) -> None:
    await check_room(with_line(messages, *line), window, overflow=False, fails=False)


async def check_room(messages: tuple[Message, ...], window: int, *, overflow: bool, fails: bool) -> None:
    log = EventLog()
    model = CountingModel(
        lambda _: AssistantMessage(text="") if fails else SUMMARY, window_tokens=window, max_output_tokens=window // 8
    )
    context = context_of(model, BALANCED, store=MemoryStore(), log=log)
    history = history_of(messages, BALANCED)
    operation = compact_after_overflow if overflow else compact_if_necessary
    try:
        after = (await operation(history, context)).history
    except CompactionInsufficientError:
        return
    if not any(isinstance(event, HistoryCompacted | ToolResultsMasked) for event in log.events):
        return
    budget = budget_of(after, context)
    fixed = {id(messages[0]), *(id(request) for request in (requests_of(messages)[0], requests_of(messages)[-1]))}
    rest = sum(context.counter.count_message(message) for message in after if id(message) not in fixed)
    assert rest <= 0.6 * (budget.history_limit_tokens + budget.schema_tokens), log.kinds


@pytest.mark.row("I4")
@MANY
@given(whole_histories(3, 600), POLICIES, st.integers(40, 1_500), st.booleans(), st.booleans())
async def test_spilling_a_pointer_or_a_kept_result_changes_nothing(
    messages: tuple[Message, ...], policy: ContextPolicy, cap: int, stores: bool, label: bool
) -> None:
    store = MemoryStore() if stores else None

    async def spilled(message: ToolMessage) -> SpillOutcome:
        return await spill_oversized_tool_result(
            message, cap_tokens=cap, counter=counter_of(policy), store=store, policy=policy.spill, label=label
        )

    for message in messages:
        if isinstance(message, ToolMessage):
            once = await spilled(message)
            twice = await spilled(once.message)
            assert twice.message is once.message
            assert not twice.spilled
