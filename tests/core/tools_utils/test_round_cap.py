"""All results of one round fit their cap together: the largest give way, small ones stay, and no byte is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.tool_context_window_limiter import (
    SMALLEST_RESULT_TOKENS,
    cap_round,
    spill_oversized_tool_result,
)
from holmes.tokens import TokenCounter
from holmes.values.messages import Image, Part, Text, ToolCallId, ToolMessage
from tests.support.conversations import png, texts
from tests.support.result_stores import FullDisk, MemoryStore

COUNTER = TokenCounter()
POLICY = SpillPolicy()


def result(number: int, text: str, *pictures: Image, tool_name: str = "kubectl_logs") -> ToolMessage:
    parts: tuple[Part, ...] = (Text(text=text), *pictures)
    return ToolMessage(call_id=ToolCallId(f"call-{number}"), tool_name=tool_name, status="success", parts=parts)


def log(number: int, lines: int) -> str:
    return "".join(f"2026-11-21T10:00:{line % 60:02d}Z WARN shard {number}-{line} is slow\n" for line in range(lines))


async def capped(
    messages: Sequence[ToolMessage], cap: int, store: MemoryStore | None = None
) -> tuple[ToolMessage, ...]:
    return await cap_round(messages, cap, COUNTER, POLICY, store)


def total(messages: Sequence[ToolMessage]) -> int:
    return sum(map(COUNTER.count_message, messages))


@pytest.mark.row("T1", "I5")
async def test_a_round_within_its_cap_is_the_same_objects() -> None:
    messages = [result(number, log(number, lines)) for number, lines in enumerate((20, 200, 20, 5))]
    assert not all(new is old for new, old in zip(await capped(messages, total(messages) - 1), messages, strict=True))
    for cap in (total(messages), 10**6):
        same = await capped(messages, cap, MemoryStore())
        assert all(after is before for after, before in zip(same, messages, strict=True))


@pytest.mark.row("I6")
async def test_only_as_many_of_the_largest_as_it_takes_become_pointers_in_call_order() -> None:
    messages = [result(number, log(number, lines)) for number, lines in enumerate((300, 10, 200, 5, 300))]
    weights = [COUNTER.count_message(message) for message in messages]
    store = MemoryStore()
    after = await capped(messages, sum(weights) // 2, store)
    assert [message.call_id for message in after] == [message.call_id for message in messages]
    assert total(after) <= sum(weights) // 2
    assert sorted(message.spilled for message in after) == [False] * 3 + [True] * 2
    assert [after[index] is messages[index] for index in (1, 2, 3)] == [True] * 3
    for index in (0, 4):
        (stored,) = after[index].stored
        assert store.contents[stored.id][0].decode() == messages[index].text
        assert stored.id in after[index].text
        assert "the limit for the 5 results of this step is" in after[index].text
        assert "Preview (" in after[index].text


async def test_twenty_parallel_pointers_of_a_small_window_shrink_too() -> None:
    store = MemoryStore()
    pointers = [
        (
            await spill_oversized_tool_result(
                result(number, log(number, 900)), cap_tokens=1_200, counter=COUNTER, store=store
            )
        ).message
        for number in range(20)
    ]
    assert all(message.spilled for message in pointers)
    for cap in (8_000, 2_400):
        after = await capped(pointers, cap, store)
        assert total(after) <= cap
        for message in after:
            assert message.stored[0].id in message.text
            assert message.stored[0].id in store.contents


async def test_a_pointer_that_is_shortened_keeps_its_explanations_before_its_preview() -> None:
    store = MemoryStore()
    outcome = await spill_oversized_tool_result(
        result(1, " ".join(f"word{number * 7919 % 10_007}" for number in range(30_000))),
        cap_tokens=25_000,
        counter=COUNTER,
        store=store,
    )
    before = COUNTER.count_message(outcome.message)
    assert before > 600
    (after,) = await capped([outcome.message], before - 300, store)
    assert COUNTER.count_message(after) <= before - 300
    assert "Do not guess what is not shown" in after.text
    assert after.text.endswith("[The rest of this preview was cut. The whole result is stored.]")


@pytest.mark.row("T10")
@pytest.mark.parametrize(("store", "reason"), [(None, "disabled"), (FullDisk(), "No space left on device")])
async def test_without_storage_both_ends_stay_and_the_text_says_what_is_lost(
    store: FullDisk | None, reason: str
) -> None:
    messages = [result(number, log(number, 300)) for number in range(3)]
    cap = total(messages) // 2
    after = await capped(messages, cap, store)
    assert total(after) <= cap
    cut = [message for message in after if message.text != messages[int(message.call_id[-1])].text]
    assert cut
    for message in cut:
        number = int(message.call_id[-1])
        assert message.text.startswith(f"2026-11-21T10:00:00Z WARN shard {number}-0 is slow\n")
        assert f"shard {number}-299 is slow" in message.text
        assert reason in message.text
        assert not message.stored
        assert message.status == "success"


@pytest.mark.row("T11")
@pytest.mark.parametrize("store", [MemoryStore(), None], ids=["stored", "lost"])
@pytest.mark.parametrize("cap", [900, 1_500, 3_000])
async def test_every_error_of_a_round_keeps_its_first_500_characters(cap: int, store: MemoryStore | None) -> None:
    text = "Error: cannot list pods in the namespace shop, ask an admin. " * 200
    errors = [replace(result(number, text), status="error") for number in range(3)]
    spilled = [
        (await spill_oversized_tool_result(error, cap_tokens=1_200, counter=COUNTER, store=MemoryStore())).message
        for error in errors
    ]
    for round_ in (errors, spilled):
        after = await capped(round_, cap, store)
        assert total(after) <= cap
        assert all(message.text.startswith(text[:500].rstrip()) for message in after)


@pytest.mark.row("T12")
async def test_what_was_read_from_the_store_is_cut_and_never_stored_again() -> None:
    store = MemoryStore()
    read = [result(number, log(number, 400), tool_name="read_stored_result_lines") for number in range(3)]
    after = await capped(read, total(read) // 3, store)
    assert total(after) <= total(read) // 3
    assert not store.contents
    assert all("Request this part alone" in message.text for message in after)


async def test_pictures_count_and_go_to_the_store_with_their_result() -> None:
    store = MemoryStore()
    messages = [result(number, "a chart", png(1_000 + number, 1_000)) for number in range(4)]
    after = await capped(messages, total(messages) * 7 // 10, store)
    assert total(after) <= total(messages) * 7 // 10
    moved = [message for message in after if message.spilled]
    assert len(moved) == 2
    assert all("read_image_file" in message.text and len(message.stored) == 2 for message in moved)


ROUNDS = st.lists(
    st.tuples(texts(800), st.sampled_from(["whole", "stored", "read", "picture"])), min_size=1, max_size=8
)


@pytest.mark.row("I4", "I5", "I6", "I7")
@settings(max_examples=100, deadline=None)
@given(ROUNDS, st.integers(30, 5_000), st.booleans())
async def test_any_round_is_within_its_cap_and_the_second_time_nothing_changes(
    drawn: list[tuple[str, str]], cap: int, works: bool
) -> None:
    store = MemoryStore()
    messages: list[ToolMessage] = []
    for number, (text, kind) in enumerate(drawn):
        tool_name = "search_stored_result" if kind == "read" else "kubectl_get"
        message = result(number, text, *((png(400, 400),) if kind == "picture" else ()), tool_name=tool_name)
        if kind == "stored":
            message = (
                await spill_oversized_tool_result(message, cap_tokens=900, counter=COUNTER, store=store, label=True)
            ).message
        messages.append(message)
    down = store if works else FullDisk()
    after = await capped(messages, cap, down)
    if total(messages) <= cap:
        assert all(new is old for new, old in zip(after, messages, strict=True))
        return
    assert total(after) <= max(cap, SMALLEST_RESULT_TOKENS * len(messages))
    assert total(after) <= total(messages)
    for old, new in zip(messages, after, strict=True):
        assert replace(new, parts=(), stored=(), spilled=False) == replace(old, parts=(), stored=(), spilled=False)
        if new is not old and works and old.tool_name != "search_stored_result" and old.parts[0] != Text(text=""):
            assert {stored.id for stored in new.stored} <= set(store.contents)
            assert new.stored
    again = await capped(after, cap, down)
    assert all(new is old for new, old in zip(again, after, strict=True))
