"""A policy that keeps the beginning keeps about as much of it as it says, and of a JSON array whole items."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policies import named_policy
from holmes.core.policy import SpillPolicy
from holmes.core.tools_utils.head_preview import Head, HeadRoom, head_that_fits
from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_tool_result
from holmes.tokens import EstimatingCounter, TokenCounter
from holmes.values.messages import Text, ToolCallId, ToolMessage
from tests.support.conversations import texts
from tests.support.result_stores import MemoryStore

COUNTER = TokenCounter()
LOG = "".join(f"2026-11-21T10:00:{n % 60:02d}Z INFO checkout-{n} served order {n * 7919}\n" for n in range(20_000))
ITEMS = [{"name": f"pod-{number}", "restarts": number, "labels": ["a", "b"]} for number in range(20_000)]


def room(tokens: int, characters: int | None = None) -> HeadRoom:
    return HeadRoom(tokens=tokens, characters=characters, characters_per_token=4.0)


async def spilled(text: str, policy: SpillPolicy, cap_tokens: int, counter: TokenCounter = COUNTER) -> str:
    message = ToolMessage(call_id=ToolCallId("c"), tool_name="t", status="success", parts=(Text(text=text),))
    outcome = await spill_oversized_tool_result(
        message, cap_tokens=cap_tokens, counter=counter, store=MemoryStore(), policy=policy
    )
    assert outcome.spilled
    assert counter.count_message(outcome.message) <= cap_tokens
    return outcome.message.text


def preview_of(pointer: str) -> str:
    """What stands below the line that announces the preview."""
    return pointer.split("the rest is not shown):\n", 1)[1]


@pytest.mark.row("T3")
async def test_octo_keeps_the_first_20_000_characters_less_what_says_where_the_rest_lies() -> None:
    policy = named_policy("octo").spill
    pointer = await spilled(LOG, policy, policy.cap_tokens(200_000))
    assert 18_500 < len(pointer) <= 20_000
    assert LOG.startswith(preview_of(pointer))
    assert len(preview_of(pointer)) > 18_000


@pytest.mark.row("T3")
@pytest.mark.parametrize("counter", [COUNTER, EstimatingCounter()], ids=["exact", "estimate"])
async def test_digitorn_fills_its_half_with_the_beginning(counter: TokenCounter) -> None:
    policy = named_policy("digitorn").spill
    pointer = await spilled(LOG, policy, 40_000, counter)
    assert LOG.startswith(preview_of(pointer))
    assert counter.count_text(pointer) > 30_000


@pytest.mark.row("T3")
@pytest.mark.parametrize("indent", [None, 1, 2])
async def test_of_a_json_array_the_first_items_that_fit_stay_as_valid_json(indent: int | None) -> None:
    policy = named_policy("digitorn").spill
    pointer = await spilled(json.dumps(ITEMS, indent=indent), policy, 10_000)
    shown = json.loads(preview_of(pointer))
    assert shown == ITEMS[: len(shown)]
    assert f"\nPreview (showing {len(shown):,} of 20,000 items; the rest is not shown):\n" in pointer
    assert COUNTER.count_text(pointer) > 7_500


@pytest.mark.row("T15")
@pytest.mark.parametrize("name", ["digitorn", "octo"])
@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (json.dumps([f"src/app/module_{n}/views/file_{n * 7919}.py" for n in range(5_000)]), "items"),
        (json.dumps([f"src/app/module_{n}/views/file_{n * 7919}.py" for n in range(5_000)], indent=2), "items"),
        ("".join(f"src/app/module_{n}/views/file_{n * 7919}.py\n" for n in range(5_000)), "lines"),
        ("\n".join(f"src/app/module_{n}/views/file_{n * 7919}.py" for n in range(5_000)), "lines"),
        (json.dumps({"files": [f"src/module_{n}/file_{n * 7919}.py" for n in range(4_996)]}), "lines"),
        ("[1] started\n" * 5_000, "lines"),
        ("path " * 50_000, "characters"),
    ],
    ids=["array", "indented array", "list", "list without an end", "object", "like an array", "one line"],
)
async def test_a_head_says_how_much_of_how_much_it_shows(name: str, text: str, unit: str) -> None:
    pointer = await spilled(text, named_policy(name).spill, 4_000)
    total = 250_000 if unit == "characters" else 5_000
    (shown,) = re.findall(rf"\nPreview \(showing ([\d,]+) of {total:,} {unit}; the rest is not shown\):\n", pointer)
    preview = preview_of(pointer)
    counted = {"lines": preview.count("\n"), "characters": len(preview)}
    assert int(shown.replace(",", "")) == (len(json.loads(preview)) if unit == "items" else counted[unit])
    assert "Do not guess what is not shown" in pointer
    assert all(
        hint in pointer for hint in ("narrow the query", "a pattern", "selector", "a time range", "ask the user")
    )


@pytest.mark.row("T3")
async def test_a_json_array_under_a_limit_of_characters_is_valid_too() -> None:
    policy = named_policy("octo").spill
    pointer = await spilled(json.dumps(ITEMS), policy, 64_000)
    assert json.loads(preview_of(pointer)) == ITEMS[: len(json.loads(preview_of(pointer)))]
    assert len(pointer) <= 20_000


@pytest.mark.parametrize(
    "text",
    ["[1] started\n" * 999, "[INFO] started\n" * 999, "[2026-11-22] x\n" * 999, "[1, 2] x " * 999, '["' + "x" * 9_999],
)
def test_what_only_looks_like_an_array_is_cut_as_text(text: str) -> None:
    head = head_that_fits(text, room(100), COUNTER)
    assert head.items == 0
    assert head.text
    assert text.startswith(head.text)


def test_a_number_that_the_cut_went_through_is_no_item() -> None:
    text = json.dumps(list(range(1_000_000, 1_001_000)))
    for tokens in range(20, 60):
        head = head_that_fits(text, room(tokens), COUNTER)
        assert json.loads(head.text) == list(range(1_000_000, 1_000_000 + head.items))


def test_deep_nesting_and_no_room_are_no_failure() -> None:
    assert head_that_fits("[" * 100_000, room(50_000), COUNTER).items == 0
    assert head_that_fits("[1, 2, 3, 4]", room(0), COUNTER) == Head(text="", items=0)
    assert head_that_fits("[1, 2, 3, 4]", room(50, -30), COUNTER) == Head(text="", items=0)


@settings(max_examples=100, deadline=None)
@given(texts(2_000), st.integers(0, 300), st.one_of(st.none(), st.integers(-5, 2_000)))
def test_the_head_is_within_its_room(text: str, tokens: int, characters: int | None) -> None:
    head = head_that_fits(text, room(tokens, characters), COUNTER)
    assert COUNTER.count_text(head.text) <= tokens
    assert characters is None or len(head.text) <= max(0, characters)
    assert text.startswith(head.text) or (head.items and text.startswith(head.text.removesuffix("\n]")))


@pytest.mark.parametrize("cap_tokens", [8, 60, 400, 800, 4_800])
@pytest.mark.parametrize(
    "text", [LOG, json.dumps(ITEMS), "检查容器失败" * 20_000, "x" * 300_000], ids=["log", "json", "cjk", "one word"]
)
async def test_a_pointer_with_a_head_is_within_any_cap(text: str, cap_tokens: int) -> None:
    await spilled(text, SpillPolicy(preview="head", preview_share=1.0, preview_max_tokens=1_000_000), cap_tokens)
