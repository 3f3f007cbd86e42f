"""Every result is stored, also one that stays whole; a label says where; a store that fails changes nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, spill_oversized_tool_result
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.values.messages import Image, Part, Text, ToolCallId, ToolMessage, ToolStatus
from holmes.values.tools import label_of, output_text, result_label
from tests.support.conversations import png, texts
from tests.support.result_stores import FullDisk, MemoryStore

COUNTER = TokenCounter()


def result(*parts: Part | str, status: ToolStatus = "success") -> ToolMessage:
    made = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return ToolMessage(call_id=ToolCallId("call-1"), tool_name="kubectl_get", status=status, parts=made)


async def spill(
    message: ToolMessage,
    store: MemoryStore | FileResultStore | None,
    *,
    cap: int = 1_000,
    label: bool = True,
    policy: SpillPolicy | None = None,
) -> SpillOutcome:
    return await spill_oversized_tool_result(
        message, cap_tokens=cap, counter=COUNTER, store=store, label=label, policy=policy or SpillPolicy()
    )


@pytest.mark.row("I6", "N6")
async def test_a_small_result_is_stored_stays_whole_and_says_where_it_lies(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    outcome = await spill(result("3 pods\n", png(40, 40)), store)
    text, picture = outcome.message.stored
    assert outcome.message.parts == (Text(text="3 pods\n"), png(40, 40), Text(text=f"[result {text.id}]"))
    assert (outcome.spilled, outcome.stored) == (False, True)
    assert (await store.read(text.id))[0] == b"3 pods\n"
    assert (await store.read(picture.id))[0] == png(40, 40).data
    assert (await spill(outcome.message, store)).message is outcome.message


async def test_without_citations_the_text_is_exactly_the_output() -> None:
    outcome = await spill(result("3 pods\n"), MemoryStore(), label=False)
    assert outcome.message.parts == (Text(text="3 pods\n"),)
    assert outcome.stored


@pytest.mark.parametrize("store", [None, FullDisk()], ids=["switched off", "full disk"])
@pytest.mark.row("T10")
async def test_a_small_result_that_cannot_be_stored_simply_stays(store: FullDisk | None) -> None:
    message = result("3 pods\n")
    outcome = await spill(message, store)
    assert outcome.message is message
    assert (outcome.spilled, outcome.stored) == (False, False)


@pytest.mark.row("T2")
async def test_a_text_that_fits_only_without_its_label_stays_whole_without_it() -> None:
    message = result("word " * 300)
    stored = replace(message, stored=(await spill(message, MemoryStore())).message.stored)
    labelled = COUNTER.count_message(replace(stored, parts=(*stored.parts, Text(text=result_label(stored.stored)))))
    for cap, has_label in ((labelled, True), (labelled - 1, False), (COUNTER.count_message(message), False)):
        outcome = await spill(message, MemoryStore(), cap=cap)
        assert not outcome.spilled
        assert (label_of(outcome.message) is not None) == has_label
        assert output_text(outcome.message) == message.text
    assert (await spill(message, MemoryStore(), cap=COUNTER.count_message(message) - 1)).spilled


@pytest.mark.row("T3")
async def test_the_cap_in_characters_spills_what_the_tokens_would_let_pass() -> None:
    policy = SpillPolicy(char_limit=2_000)
    text = "a pod is not ready because its probe fails\n" * 100
    assert not (await spill(result(text), MemoryStore(), cap=25_000)).spilled
    assert not (await spill(result(text[:2_000]), MemoryStore(), cap=25_000, policy=policy)).spilled
    outcome = await spill(result(text), MemoryStore(), cap=25_000, policy=policy)
    assert outcome.spilled
    assert len(outcome.message.text) <= 2_000
    assert "the limit is 25,000 tokens and 2,000 characters" in outcome.message.text
    assert "Preview (" in outcome.message.text


@pytest.mark.row("T8")
async def test_the_share_and_the_most_of_a_preview_are_the_policys() -> None:
    log = "".join(f"2026-11-21T10:00:00Z ERROR shard {number} of {number % 7} refused\n" for number in range(3_000))
    sizes = [
        COUNTER.count_text((await spill(result(log), MemoryStore(), cap=8_000, policy=policy)).message.text)
        for policy in (
            SpillPolicy(preview_share=0.01),
            SpillPolicy(preview_share=0.05),
            SpillPolicy(preview_share=0.9, preview_max_tokens=100),
        )
    ]
    assert sizes[0] < sizes[1]
    assert sizes[2] < 500


@pytest.mark.row("T12")
@pytest.mark.parametrize("marks", [{"spilled": True}, {"masked": True}], ids=["a pointer", "a mask"])
async def test_what_is_a_pointer_or_a_mask_already_is_never_spilled_again(marks: dict[str, bool]) -> None:
    store = MemoryStore()
    message = replace(result("word " * 5_000), spilled="spilled" in marks, masked="masked" in marks)
    assert (await spill(message, store, cap=10)).message is message
    assert not store.contents


@pytest.mark.row("T12")
async def test_a_stored_result_that_meets_a_smaller_cap_points_at_what_is_stored() -> None:
    store = MemoryStore()
    whole = (await spill(result("word " * 900), store)).message
    pointer = (await spill(whole, FullDisk(), cap=300)).message
    assert pointer.spilled
    assert pointer.stored == whole.stored
    assert whole.stored[0].id in pointer.text
    assert "900 lines" not in pointer.text


@pytest.mark.row("T8")
async def test_the_pointer_to_json_offers_a_query_and_numbers_lines_as_the_tools_do() -> None:
    pods = [{"name": f"pod-{number}", "phase": "Failed" if number == 77 else "Running"} for number in range(2_000)]
    outcome = await spill(result(json.dumps(pods)), MemoryStore(), cap=2_000)
    assert "query_stored_result evaluates a jq expression" in outcome.message.text
    assert "pod-77" in outcome.message.text
    assert f"{4 * 2_000 + 2:,} lines" in outcome.message.text, "one-line JSON is read with one value per line"


async def test_a_call_that_waits_for_approval_has_no_output_to_store() -> None:
    store = MemoryStore()
    message = result("Not run: this call requires approval.", status="approval_required")
    assert (await spill(message, store)).message is message
    assert not store.contents


@pytest.mark.row("I6", "I4", "I7")
@settings(max_examples=80, deadline=None)
@given(texts(3_000), st.integers(60, 3_000), st.booleans(), st.booleans())
async def test_every_byte_is_in_the_store_whatever_happens_to_the_message(
    text: str, cap: int, picture: bool, label: bool
) -> None:
    store = MemoryStore()
    message = result(text, *((png(500, 500),) if picture else ()))
    outcome = await spill(message, store, cap=cap, label=label)
    contents = [store.contents[stored.id][0] for stored in outcome.message.stored]
    expected = [text.encode("utf-8", "surrogatepass")] if text else []
    assert contents == expected + [part.data for part in message.parts if isinstance(part, Image)]
    assert COUNTER.count_message(outcome.message) <= cap
    if not outcome.spilled:
        assert output_text(outcome.message) == text
    again = await spill(outcome.message, store, cap=cap, label=label)
    assert again.message is outcome.message
