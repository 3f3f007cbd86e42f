"""Masking loses nothing, never breaks a conversation, and doing it twice is doing it once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import MaskingPolicy
from holmes.core.truncation.masks import mask_old_results, plan_masks, shrink_to_pointers
from holmes.stores.result_store import FileResultStore
from holmes.values.messages import Image, SystemMessage, ToolMessage, UserMessage
from holmes.values.tools import output_text
from tests.core.truncation.masking.support import (
    COUNTER,
    MemoryStore,
    budget,
    context,
    conversation,
    history_of,
    result,
    unstored,
)
from tests.support.conversations import histories, png
from tests.support.counting_model import pairing_errors

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.messages import Message

TEXT = "pod checkout OOMKilled\n" * 400
EAGER = MaskingPolicy(protect_rounds=0, protect_tokens=0, minimum_tokens=0)
POLICIES = st.builds(
    MaskingPolicy,
    kind=st.sampled_from(["fingerprint", "preview", "path"]),
    protect_rounds=st.integers(0, 3),
    protect_tokens=st.sampled_from([0, 500, 40_000]),
    minimum_tokens=st.sampled_from([0, 1_000]),
    max_total_tokens=st.sampled_from([0, 2_000]),
    max_tool_message_tokens=st.sampled_from([20, 200, 2_000]),
    keep_recent_messages=st.integers(0, 4),
    older_than_messages=st.integers(0, 12),
    larger_than_characters=st.sampled_from([0, 100, 4_000]),
)


async def test_results_that_are_not_stored_are_stored_before_they_are_masked(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    picture = png(800, 600)
    messages = conversation((unstored(result("c1", TEXT, picture)),))
    history = history_of(messages)
    outcome = await mask_old_results(history, plan_masks(history, budget(EAGER)), context(EAGER, store))
    masked = outcome.history[3]
    assert isinstance(masked, ToolMessage)
    assert (outcome.masked_count, masked.masked, masked.spilled, outcome.failure) == (1, True, False, None)
    assert outcome.tokens_before == history.tokens()
    assert outcome.tokens_after == outcome.history.tokens() < history.tokens()
    text, image = masked.stored
    assert (await store.read(text.id))[0] == TEXT.encode()
    assert (await store.read(image.id))[0] == picture.data
    assert f"full output: {text.id}, {image.id}]" in masked.text


async def test_what_cannot_be_stored_is_left_whole_and_the_rest_is_masked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    broken = FileResultStore(tmp_path / "file" / "results")
    history = history_of(conversation((unstored(result("lost", TEXT)),), (result("kept", TEXT),)))
    plan = plan_masks(history, budget(EAGER))
    assert len(plan.masks) == 2
    for store in (broken, None):
        outcome = await mask_old_results(history, plan, context(EAGER, store))
        assert outcome.history[3] is history[3]
        assert outcome.masked_count == 1
        assert outcome.failure
        assert "fingerprint" not in outcome.failure
    only = history_of(history.messages()[:4])
    outcome = await mask_old_results(only, plan_masks(only, budget(EAGER)), context(EAGER, None))
    assert outcome.history is only
    assert (outcome.masked_count, outcome.tokens_after) == (0, outcome.tokens_before)


async def test_an_empty_plan_changes_nothing() -> None:
    history = history_of(conversation((result("c1", TEXT),)))
    plan = plan_masks(history, budget(MaskingPolicy()))
    outcome = await mask_old_results(history, plan, context(MaskingPolicy(), MemoryStore()))
    assert outcome.history is history
    assert (plan.masks, plan.freed_tokens, outcome.masked_count) == ((), 0, 0)


async def test_a_result_that_was_stored_between_plan_and_mask_is_not_stored_again() -> None:
    store = MemoryStore()
    history = history_of(conversation((unstored(result("c1", TEXT)),)))
    plan = plan_masks(history, budget(EAGER))
    stored_meanwhile = history.replaced(conversation((result("c1", TEXT),)))
    outcome = await mask_old_results(stored_meanwhile, plan, context(EAGER, store))
    assert outcome.masked_count == 1
    assert store.contents == {}


def test_error_results_and_what_was_read_back_age_as_any_other() -> None:
    error = replace(result("e", "Error: " + TEXT), status="error")
    read_back = result("r", TEXT, tool_name="read_stored_result_lines")
    plan = plan_masks(history_of(conversation((error,), (read_back,))), budget(EAGER))
    assert [(mask.masked.status, mask.masked.tool_name) for mask in plan.masks] == [
        ("error", "kubectl_get"),
        ("success", "read_stored_result_lines"),
    ]


@pytest.mark.row("P8")
@settings(max_examples=150)
@given(messages=histories(), policy=POLICIES)
async def test_masking_keeps_the_conversation_valid_loses_nothing_and_is_idempotent(
    messages: tuple[Message, ...], policy: MaskingPolicy
) -> None:
    store = MemoryStore()
    history = history_of(messages)
    plan = plan_masks(history, budget(policy, window_tokens=20_000))
    outcome = await mask_old_results(history, plan, context(policy, store))
    after = outcome.history.messages()
    assert pairing_errors(after) == []
    assert len(after) == len(messages)
    if outcome.masked_count:
        assert outcome.history.tokens() < history.tokens()
        if all(mask.is_stored for mask in plan.masks):
            assert history.tokens() - outcome.history.tokens() == plan.freed_tokens
    else:
        assert outcome.history is history
    for old, new in zip(messages, after, strict=True):
        if new is old:
            continue
        assert isinstance(old, ToolMessage)
        assert isinstance(new, ToolMessage)
        assert replace(new, parts=old.parts, stored=old.stored, masked=old.masked) == old
        if not old.stored:
            stored = [store.contents[item.id][0] for item in new.stored]
            pictures = [part.data for part in old.parts if isinstance(part, Image)]
            assert stored == [output_text(old).encode("utf-8", "surrogatepass"), *pictures]
    again = plan_masks(outcome.history, budget(policy, window_tokens=20_000))
    assert (await mask_old_results(outcome.history, again, context(policy, store))).history is outcome.history


@settings(max_examples=100)
@given(messages=histories(), share=st.integers(0, 100))
def test_a_tail_shrinks_until_it_fits_oldest_first_and_no_further(messages: tuple[Message, ...], share: int) -> None:
    before = history_of(messages).tokens()
    cap_tokens = before * share // 100
    shrunk = shrink_to_pointers(messages, cap_tokens, COUNTER)
    after = history_of(shrunk).tokens()
    changed = [position for position, message in enumerate(shrunk) if message is not messages[position]]
    assert pairing_errors(shrunk) == []
    assert after <= before
    assert all(isinstance(m, SystemMessage | UserMessage) is False for m in (shrunk[p] for p in changed))
    if changed:
        # One less would not have been enough.
        spared = (*shrunk[: changed[-1]], *messages[changed[-1] :])
        assert history_of(spared).tokens() > cap_tokens
    if after > cap_tokens:
        assert shrink_to_pointers(shrunk, cap_tokens, COUNTER) == shrunk
        assert shrink_to_pointers(messages, 0, COUNTER) == shrunk


def test_a_tail_spares_what_fits_what_is_not_stored_and_what_is_protected() -> None:
    messages = conversation(
        (unstored(result("a", TEXT)),),
        (result("b", TEXT, tool_name="skill"),),
        (result("c", TEXT),),
        (result("d", TEXT),),
    )
    total = history_of(messages).tokens()
    assert shrink_to_pointers(messages, total, COUNTER) == messages
    shrunk = shrink_to_pointers(messages, total - 10, COUNTER, protected_tools=("skill",))
    assert [message.call_id for message in shrunk if isinstance(message, ToolMessage) and message.masked] == ["c"]
    shrunk = shrink_to_pointers(messages, 0, COUNTER, protected_tools=("skill",))
    assert [message.call_id for message in shrunk if isinstance(message, ToolMessage) and message.masked] == ["c", "d"]
