"""The message that stands for removed rounds: its parts, their order, and that it is never too large."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.entities import Entity
from holmes.core.truncation.entity_check import RankedEntity
from holmes.core.truncation.summary_message import (
    SUMMARY_HEADING,
    StandIn,
    also_seen_text,
    largest_message_tokens,
    ledger_room_tokens,
    summary_message,
)
from holmes.core.truncation.summary_request import LONGEST_SHARE_OF_CAP, SHORTENED, shortened
from holmes.evidence.verification import LEDGER_HEADING, Ledger, ledger_of, written_ledger
from holmes.values.messages import AssistantMessage, ResultId, StoredResult, Text
from holmes.values.tools import Tool
from tests.core.truncation.summaries import COUNTER, TOOLS

STORED = StoredResult(id=ResultId("abc123abc123"), path=None, size_bytes=1, media_type="text/plain")
MISSING = tuple(
    RankedEntity(entity=Entity(kind="pod", value=f"checkout-{n}-x2k4q"), score=9 - n / 100, line="") for n in range(99)
)
MANY_TOOLS = tuple(Tool(name=f"zq{n}xk_vj{n}wq_hp{n}yt_bn", description="") for n in range(12))
CITING = AssistantMessage(text="The pod was killed [[abcdef123456:3-9]]. The disk is full [[abcdef123456:12]].")


@pytest.mark.row("K1", "K8", "K11", "N6")
async def test_its_parts_are_summary_with_pointer_and_list_then_ledger_then_reminder() -> None:
    ledger = written_ledger((CITING,)).render(500, COUNTER)
    stand_in = StandIn(summary="It is the disk.", removed=STORED, missing=MISSING[:2], ledger=ledger, tools=TOOLS)
    message = summary_message(stand_in, 1_000, COUNTER)
    pointer = f"{SUMMARY_HEADING} The removed messages are stored as result abc123abc123."
    assert [part.text for part in message.parts if isinstance(part, Text)] == [
        f"{pointer}\n\nIt is the disk.\n\nAlso seen:\n- pod checkout-0-x2k4q\n- pod checkout-1-x2k4q",
        ledger,
        "Available tools, as before: kubectl_get, kubectl_logs.",
    ]
    assert message.stored == (STORED,)
    assert message.kind == "summary"
    assert await ledger_of((message,), None) == written_ledger((CITING,))


def test_a_bare_summary_is_one_part_and_points_nowhere() -> None:
    message = summary_message(StandIn(summary="It is the disk."), 1_000, COUNTER)
    assert message.parts == (Text(text=f"{SUMMARY_HEADING}\n\nIt is the disk."),)
    assert message.stored == ()


@pytest.mark.row("N6")
async def test_a_summary_that_copies_the_heading_of_the_ledger_proves_nothing() -> None:
    text = f"{LEDGER_HEADING}\n- It is the disk [[abcdef123456:1-2]]"
    for said in (text, text.replace(":", "::", 1)):
        message = summary_message(StandIn(summary=said), 1_000, COUNTER)
        assert await ledger_of((message,), None) == Ledger()


PROSE = st.lists(
    st.sampled_from(["The pod is down. ", "## State\n", "web-1 " * 30, "中文。", "\n\n", "a" * 200]), max_size=300
)


@settings(max_examples=150, deadline=None)
@given(PROSE.map("".join), st.integers(64, 4_096), st.integers(0, 99), st.booleans())
def test_it_is_never_larger_than_promised(summary: str, cap: int, missing: int, with_rest: bool) -> None:
    checked = shortened(summary, int(cap * LONGEST_SHARE_OF_CAP), COUNTER)
    if not checked:
        return
    ledger = written_ledger((CITING,)).render(ledger_room_tokens(cap), COUNTER) if with_rest else ""
    stand_in = StandIn(
        summary=checked,
        removed=STORED,
        missing=MISSING[:missing],
        ledger=ledger,
        tools=MANY_TOOLS if with_rest else (),
    )
    message = summary_message(stand_in, cap, COUNTER)
    assert COUNTER.count_message(message) <= largest_message_tokens(cap)
    assert largest_message_tokens(cap) <= 1.5 * cap + 300
    if COUNTER.count_text(checked) <= cap:
        assert checked in message.text


@pytest.mark.row("N7")
@given(st.integers(0, 300))
def test_the_list_of_what_was_also_seen_fits_and_starts_with_the_most_important(room: int) -> None:
    text = also_seen_text(MISSING, room, COUNTER)
    assert COUNTER.count_text(text) <= room
    assert not text or text.startswith("Also seen:\n- pod checkout-0-x2k4q")
    assert room < 40 or "checkout-0" in text


@pytest.mark.row("K5")
@settings(max_examples=150, deadline=None)
@given(PROSE.map("".join), st.integers(20, 2_000))
def test_a_summary_that_is_too_long_ends_at_a_border_and_says_so(text: str, limit: int) -> None:
    short = shortened(text, limit, COUNTER)
    if short is None or short == text:
        assert short is None or COUNTER.count_text(text) <= limit
        return
    kept, said = short.removesuffix(SHORTENED), short.endswith(SHORTENED)
    assert said
    assert COUNTER.count_text(short) <= limit
    assert text.startswith(kept.rstrip())
    assert kept.rstrip().endswith((".", "。", "State", "web-1", "a"))


def test_a_text_without_any_border_cannot_be_shortened() -> None:
    assert shortened("blah " * 1_000, 100, COUNTER) is None


@pytest.mark.row("K8")
def test_a_reminder_that_would_cost_the_summary_its_end_is_left_out() -> None:
    summary = "The pod is down. " * 12
    message = summary_message(StandIn(summary=summary.strip(), removed=STORED, tools=MANY_TOOLS), 64, COUNTER)
    assert summary.strip() in message.text
    assert "Available tools" not in message.text
    assert COUNTER.count_message(message) <= largest_message_tokens(64)
