"""The bar of `/context`: words and colours at their borders, and what fills the window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.cli.render.terminal import context_lines
from holmes.core.context_usage import ContextUsage


def usage(used: int, **sizes: int) -> ContextUsage:
    return ContextUsage(
        model="claude",
        policy="balanced",
        window_tokens=sizes.get("window", 1_000),
        reserve_tokens=100,
        trigger_tokens=sizes.get("trigger", 850),
        schema_tokens=0,
        by_role=(("system", 10), ("tool", used - 10)),
        messages=3,
    )


@pytest.mark.row("C11")
@pytest.mark.parametrize(
    ("used", "word", "shade"),
    [
        (10, "PEAK", "\x1b[32m"),
        (499, "PEAK", "\x1b[32m"),
        (500, "GOOD", "\x1b[33m"),
        (700, "GOOD", "\x1b[33m"),
        (701, "DEGRADING", "\x1b[38;5;214m"),
        (850, "DEGRADING", "\x1b[38;5;214m"),
        (851, "POOR", "\x1b[31m"),
        (1_500, "POOR", "\x1b[31m"),
    ],
)
def test_the_bar_has_the_word_and_the_colour_of_its_level(used: int, word: str, shade: str) -> None:
    bar = context_lines(usage(used), color=True)[0]
    assert word in bar
    assert bar.startswith(shade)
    assert "\x1b" not in context_lines(usage(used), color=False)[0]


def test_the_lines_say_what_fills_the_window_and_when_it_is_compacted() -> None:
    assert context_lines(usage(500), color=False) == (
        "████████████████████░░░░░░░░░░░░░░░░░░░░ 50% GOOD",
        "claude: 500 of 1k tokens in 3 messages; system 10 · tool 490",
        "policy balanced: next compaction in 350 tokens; 100 tokens are reserved for the reply",
    )


@pytest.mark.row("C11")
@pytest.mark.parametrize(
    ("changes", "when"),
    [
        ({"compaction": "due"}, "next compaction before the next step"),
        ({"compaction": "resting"}, "compacted recently; the next compaction runs some steps later"),
        ({"compaction": "off"}, "compaction is off, except after the provider rejects a request as too long"),
        ({"messages_left": 12}, "next compaction in 0 tokens or 12 messages"),
        ({"messages_left": 1}, "next compaction in 0 tokens or 1 message"),
    ],
)
def test_what_is_said_of_the_next_compaction_is_what_the_loop_will_do(changes: dict[str, object], when: str) -> None:
    above_the_trigger = replace(usage(900), **changes)  # type: ignore[arg-type]
    assert (
        context_lines(above_the_trigger, color=False)[2]
        == f"policy balanced: {when}; 100 tokens are reserved for the reply"
    )
