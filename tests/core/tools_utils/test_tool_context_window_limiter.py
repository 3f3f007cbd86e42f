"""A result that is too large becomes a pointer within the cap; nothing is lost, and nothing else breaks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import PreviewKind, SpillPolicy
from holmes.core.tools_utils.tool_context_window_limiter import (
    spill_oversized_tool_result,
    spill_oversized_user_message,
)
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter, utf8_bytes
from holmes.tokens.history import History
from holmes.values.messages import Part, Text, ToolCallId, ToolMessage, ToolStatus, UserKind, user_text
from tests.support.conversations import png, texts
from tests.support.result_stores import FullDisk, MemoryStore

COUNTER = TokenCounter()
NOISE = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(20_000))
LOG = "".join(
    f"2026-11-21T10:00:{n % 60:02d}Z ERROR checkout-{n} 10.0.0.{n % 255}:5432 refused\n" for n in range(3_000)
)
STATUSES = st.sampled_from(["success", "error", "no_data"])
HARD_TEXTS = {
    "log": LOG,
    "hex": NOISE.hex(),
    "base64": base64.b64encode(NOISE).decode(),
    "cjk": "检查容器失败" * 20_000,
    "emoji": "😀🚀" * 20_000,
    "one line of 5 MB": "x1y2 " * 1_000_000,
    "one word of 1 MB": "a" * 1_000_000,
    "spaces": " " * 3_500_000,
    "newlines": "\n" * 500_000,
    "binary": NOISE.decode("latin-1"),
    "invalid utf-8": NOISE.decode("utf-8", "surrogateescape"),
    "replaced utf-8": NOISE.decode("utf-8", "replace"),
    "json": json.dumps([{"name": f"pod-{number}", "restarts": number} for number in range(20_000)]),
}


def result(text: str = "", *more: Part, status: ToolStatus = "success") -> ToolMessage:
    parts = (*((Text(text=text),) if text else ()), *more)
    return ToolMessage(call_id=ToolCallId("call-1"), tool_name="kubectl_logs", status=status, parts=parts)


@pytest.mark.row("T1", "T8", "I7")
@pytest.mark.parametrize("cap", [8, 60, 400, 4_800, 25_000])
@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS.keys())
async def test_pointer_and_preview_are_within_the_cap_by_the_real_tokenizer(text: str, cap: int) -> None:
    store = MemoryStore()
    outcome = await spill_oversized_tool_result(result(text), cap_tokens=cap, counter=COUNTER, store=store)
    assert outcome.spilled
    assert outcome.stored
    assert outcome.tokens > cap
    assert TokenCounter().count_message(outcome.message) <= cap
    content, stored = await store.read(outcome.message.stored[0].id)
    assert content.decode("utf-8", "surrogateescape") == text
    assert stored.media_type == ("application/json" if text is HARD_TEXTS["json"] else "text/plain")
    again = await spill_oversized_tool_result(outcome.message, cap_tokens=cap, counter=COUNTER, store=store)
    assert again.message is outcome.message


@pytest.mark.row("T1", "I7")
@settings(max_examples=200, deadline=None)
@given(
    texts(3_000), st.integers(4, 2_000), st.sampled_from(["success", "error", "no_data"]), st.booleans(), st.booleans()
)
async def test_any_result_is_untouched_or_a_pointer_within_the_cap(
    text: str, cap: int, status: ToolStatus, picture: bool, works: bool
) -> None:
    message = result(text, *((png(700, 700),) if picture else ()), status=status)
    store = MemoryStore() if works else FullDisk()
    outcome = await spill_oversized_tool_result(message, cap_tokens=cap, counter=COUNTER, store=store)
    if COUNTER.count_message(message) <= cap:
        assert not outcome.spilled
        assert outcome.message.parts is message.parts
        assert len(outcome.message.stored) == (len(message.parts) if works else 0)
        return
    assert COUNTER.count_message(outcome.message) <= cap
    assert outcome.stored == works
    assert outcome.message.status == (status if works else "error")
    assert len(outcome.message.stored) == (len(message.parts) if works else 0)
    assert (outcome.message.call_id, outcome.message.tool_name) == (message.call_id, message.tool_name)


@pytest.mark.row("T2")
async def test_a_result_of_exactly_the_cap_passes_untouched() -> None:
    message = result("word " * 500)
    cap = COUNTER.count_message(message)
    for limit, same in ((cap, True), (cap - 1, False)):
        outcome = await spill_oversized_tool_result(message, cap_tokens=limit, counter=COUNTER, store=MemoryStore())
        assert (outcome.message.parts is message.parts) == same
        assert outcome.spilled != same
        assert outcome.tokens == cap


@pytest.mark.row("T5", "T7", "T8", "T15")
async def test_the_pointer_says_what_a_model_needs_to_go_on(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    message = result(LOG, png(800, 600))
    outcome = await spill_oversized_tool_result(message, cap_tokens=4_000, counter=COUNTER, store=store)
    text = outcome.message.text
    log_id, picture_id = (stored.id for stored in outcome.message.stored)
    assert f"{len(LOG) + len(png(800, 600).data):,} bytes, 3,000 lines" in text
    assert "the limit is 4,000 tokens" in text
    assert f"stored as result {log_id} (file {tmp_path / 'kubectl_logs_call-1.txt'})" in text
    assert f'search_stored_result(result_id="{log_id}"' in text
    assert f'read_stored_result_lines(result_id="{log_id}"' in text
    assert f"result {picture_id} (file {tmp_path / 'kubectl_logs_call-1.png'})" in text
    assert f'read_image_file(result="{picture_id}")' in text
    assert "Do not guess what is not shown" in text
    hints = (
        "narrow the query",
        "a pattern",
        "a field or label selector",
        "a namespace",
        "a time range",
        "ask the user",
    )
    assert [hint for hint in hints if hint not in text] == []
    assert "summarize_stored_result" in text
    assert "query_stored_result" not in text, "a log is not JSON"
    assert re.search(r"\nPreview \(.*3,000.*\):\n", text)
    assert "ERROR checkout-" in text
    assert (
        abs(int(re.findall(r"about ([\d,]+) tokens", text)[0].replace(",", "")) / COUNTER.count_message(message) - 1)
        < 0.05
    )
    assert (tmp_path / "kubectl_logs_call-1.txt").read_text() == LOG


@pytest.mark.row("T7")
async def test_pictures_alone_can_be_over_the_cap() -> None:
    store = MemoryStore()
    message = result("", png(1_000, 1_000), png(1_200, 1_000))
    outcome = await spill_oversized_tool_result(message, cap_tokens=600, counter=COUNTER, store=store)
    assert [stored.media_type for stored in outcome.message.stored] == ["image/png", "image/png"]
    assert outcome.message.parts == (Text(text=outcome.message.text),)
    assert outcome.message.text.count("read_image_file") == 2
    assert (await store.read(outcome.message.stored[0].id))[0] == png(1_000, 1_000).data


@pytest.mark.row("T11")
async def test_the_first_500_characters_of_an_error_stay_inline() -> None:
    error = "Error (exit code 1): forbidden: " + "x" * 468 + "y" * 90_000
    message = result(error, status="error")
    outcome = await spill_oversized_tool_result(message, cap_tokens=2_000, counter=COUNTER, store=MemoryStore())
    assert outcome.message.status == "error"
    assert outcome.message.text.startswith(error[:500] + "\n[...]\nToo large")
    dropped = await spill_oversized_tool_result(message, cap_tokens=2_000, counter=COUNTER, store=None)
    assert dropped.message.text.startswith(error[:500])


@pytest.mark.row("T11", "T3")
@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("preview", ["head", "structured"])
@pytest.mark.parametrize("char_limit", [None, 900])
@pytest.mark.parametrize("spare", [20, 60, 200, 2_000])
async def test_an_error_keeps_its_first_500_characters_however_little_room_there_is_beside_them(
    works: bool, preview: PreviewKind, char_limit: int | None, spare: int
) -> None:
    for error in ("Error: cannot list pods in the namespace shop, ask an admin. " * 2_000, f"Error: {NOISE.hex()}"):
        cap = COUNTER.count_text(f"{error[:500]}\n[...]\n") + spare
        policy = SpillPolicy(preview=preview, preview_share=1.0, char_limit=char_limit)
        store = MemoryStore() if works else None
        outcome = await spill_oversized_tool_result(
            result(error, status="error"), cap_tokens=cap, counter=COUNTER, store=store, policy=policy
        )
        assert outcome.message.text.startswith(error[:500].rstrip())
        assert COUNTER.count_message(outcome.message) <= cap
        assert not works or outcome.message.stored[0].id in outcome.message.text


@pytest.mark.row("T10")
@pytest.mark.parametrize(("store", "reason"), [(None, "disabled"), (FullDisk(), "No space left on device")])
async def test_without_storage_the_data_is_dropped_and_the_model_asked_to_narrow(
    store: FullDisk | None, reason: str
) -> None:
    outcome = await spill_oversized_tool_result(result(LOG), cap_tokens=1_000, counter=COUNTER, store=store)
    assert (outcome.message.status, outcome.spilled, outcome.stored) == ("error", True, False)
    assert outcome.message.stored == ()
    assert reason in outcome.message.text
    assert "Narrow the query" in outcome.message.text
    assert "checkout-7" not in outcome.message.text


@pytest.mark.row("I14")
async def test_counting_stays_linear_in_what_was_offered() -> None:
    for text in (LOG, LOG[:50_000], LOG[:4_000], HARD_TEXTS["base64"], HARD_TEXTS["cjk"]):
        for cap in (1_200, 4_800, 12_000, 25_000):  # windows from 8k to 200k
            counter = TokenCounter()
            outcome = await spill_oversized_tool_result(
                result(text), cap_tokens=cap, counter=counter, store=MemoryStore()
            )
            History([outcome.message], counter).tokens()
            assert counter.bytes_tokenized <= 1.05 * utf8_bytes(text) + 2 * utf8_bytes(outcome.message.text)


@pytest.mark.row("T16")
async def test_a_long_user_message_is_spilled_by_characters_or_tokens_and_keeps_both_ends() -> None:
    for text, cap, limit in ((f"Why?\n{LOG}the end", 250_000, 30_000), (f"Why?\n{LOG}the end", 3_000, 10**9)):
        store = MemoryStore()
        message = await spill_oversized_user_message(
            user_text(text), cap_tokens=cap, char_limit=limit, counter=COUNTER, store=store
        )
        assert message.kind == "request"
        assert COUNTER.count_message(message) <= cap
        assert len(message.text) <= limit
        assert "\nWhy?\n2026" in message.text
        assert message.text.endswith("the end")
        (content,) = store.contents.values()
        assert content[0].decode() == text
        again = await spill_oversized_user_message(
            message, cap_tokens=cap, char_limit=limit, counter=COUNTER, store=store
        )
        assert again is message


@pytest.mark.row("T16")
@settings(max_examples=100, deadline=None)
@given(texts(3_000), st.integers(20, 2_000), st.integers(200, 20_000), st.booleans())
async def test_any_user_message_is_untouched_or_bounded_and_the_second_time_nothing_changes(
    text: str, cap: int, limit: int, works: bool
) -> None:
    message = user_text(text)
    store = MemoryStore() if works else None
    spilled = await spill_oversized_user_message(
        message, cap_tokens=cap, char_limit=limit, counter=COUNTER, store=store
    )
    assert COUNTER.count_message(spilled) <= cap
    if works:
        assert len(spilled.text) <= limit
        assert (spilled is message) == (len(text) <= limit and COUNTER.count_message(message) <= cap)
    again = await spill_oversized_user_message(spilled, cap_tokens=cap, char_limit=limit, counter=COUNTER, store=store)
    assert again is spilled


@pytest.mark.row("T16")
@pytest.mark.parametrize("kind", ["request", "attachment"])
async def test_a_user_message_of_exactly_a_limit_passes_and_one_above_it_does_not(kind: UserKind) -> None:
    message = user_text("word " * 8_000, kind=kind)
    tokens, characters = COUNTER.count_message(message), len(message.text)
    for cap, limit, same in (
        (tokens, characters, True),
        (tokens - 1, characters, False),
        (tokens, characters - 1, False),
    ):
        spilled = await spill_oversized_user_message(
            message, cap_tokens=cap, char_limit=limit, counter=COUNTER, store=MemoryStore()
        )
        assert (spilled is message) == same


@pytest.mark.row("T16")
async def test_a_users_question_is_never_dropped_when_storage_is_off() -> None:
    message = await spill_oversized_user_message(
        user_text(f"Why?\n{LOG}the end"), cap_tokens=2_000, char_limit=30_000, counter=COUNTER, store=None
    )
    assert message.text.startswith("Why?\n2026")
    assert "the end\n[" in message.text
    assert "middle of this message was dropped" in message.text
    fits = user_text("word " * 8_000)
    same = await spill_oversized_user_message(fits, cap_tokens=25_000, char_limit=30_000, counter=COUNTER, store=None)
    assert same is fits


@pytest.mark.row("T16")
async def test_pictures_of_a_user_stay_in_sight_beside_a_spilled_text_unless_they_are_too_large_themselves() -> None:
    for cap, stay in ((4_000, True), (1_500, False)):
        message = replace(user_text(LOG), parts=(Text(text=LOG), png(1_000, 1_000)))
        store = MemoryStore()
        spilled = await spill_oversized_user_message(
            message, cap_tokens=cap, char_limit=30_000, counter=COUNTER, store=store
        )
        assert COUNTER.count_message(spilled) <= cap
        assert (spilled.parts[1:] == (png(1_000, 1_000),)) == stay
        assert len(store.contents) == (1 if stay else 2)


@pytest.mark.row("T16")
async def test_only_what_the_user_said_is_spilled() -> None:
    summary = user_text(LOG, kind="summary")
    assert (
        await spill_oversized_user_message(
            summary, cap_tokens=100, char_limit=100, counter=COUNTER, store=MemoryStore()
        )
        is summary
    )


async def test_a_text_of_20_mb_is_spilled_without_tokenizing_it_and_off_the_event_loop(tmp_path: Path) -> None:
    counter = TokenCounter()
    line = "2026-11-21T10:00:00Z ERROR checkout connection to 10.0.0.7:5432 refused\n"
    message = ToolMessage(
        call_id=ToolCallId("c"), tool_name="t", status="success", parts=(Text(text=line * (20_000_000 // len(line))),)
    )
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    watching = asyncio.create_task(watch())
    outcome = await spill_oversized_tool_result(message, cap_tokens=1, counter=counter, store=FileResultStore(tmp_path))
    watching.cancel()
    assert outcome.stored
    assert counter.bytes_tokenized < 100_000
    assert turns > 5
