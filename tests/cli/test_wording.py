"""Numbers for people."""

from __future__ import annotations

import pytest

from holmes.cli.render.terminal import cost_line, dollars, duration, price, size, spending, tokens, usage
from holmes.values.stats import RequestStats


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (23_400, "23.4k"),
        (999_949, "999.9k"),
        (999_950, "1M"),
        (1_234_567, "1.2M"),
    ],
)
def test_tokens(count: int, text: str) -> None:
    assert tokens(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (3.21, "3.2 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0, "$0.00"), (1.5, "$1.50"), (0.12, "$0.12"), (0.0123, "$0.012"), (0.00045, "$0.00045"), (1e-12, "$0.00000000")],
)
def test_dollars(cost: float, text: str) -> None:
    assert dollars(cost) == text


def test_the_cost_line_says_it_all() -> None:
    stats = RequestStats(prompt_tokens=22_000, completion_tokens=1_400, cached_tokens=18_000, cost=0.012, calls=5)
    assert cost_line("gpt-4.1", 5, 9, stats, 34.2) == (
        "gpt-4.1 · 5 steps · 9 tool calls · 23.4k tokens (18k cached) · $0.012 · 34 s"
    )


def test_an_unknown_price_is_not_shown_as_free() -> None:
    assert price(RequestStats(calls=2, unpriced_calls=2)) == "price unknown"
    assert price(RequestStats(calls=3, unpriced_calls=1, cost=0.5)) == "at least $0.50 (price of 1 call unknown)"


def test_an_estimate_is_called_one() -> None:
    assert usage(RequestStats(prompt_tokens=2_000, calls=1, estimated=True)) == ("about 2k tokens (estimated) · $0.00")


def test_compactions_are_part_of_the_cost_line() -> None:
    stats = RequestStats(prompt_tokens=10, calls=2, cost=0.5, compactions=1, compaction_cost=0.1, compaction_tokens=9)
    assert "1 compaction (9 tokens · $0.10 of the total)" in cost_line("m", 1, 0, stats, 1)
    free = RequestStats(prompt_tokens=10, calls=2, cost=0.5, compactions=2)
    assert "2 compactions (free)" in cost_line("m", 1, 0, free, 1)


def test_summaries_that_failed_are_part_of_the_cost_too() -> None:
    stats = RequestStats(prompt_tokens=10, calls=2, cost=0.5, compaction_cost=0.1, compaction_tokens=9)
    assert spending(stats) == "10 tokens · $0.50 · failed summaries (9 tokens · $0.10 of the total)"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_234, "1.2 KB"),
        (999_960, "1 MB"),
        (20_000_000, "20 MB"),
        (5_000_000_000, "5,000 MB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text
