"""Charts as values: their description, their few samples in events, and each of their texts."""

from __future__ import annotations

from dataclasses import replace

from holmes.values.charts import alt_text, thinned, with_texts
from tests.support.charts import MEMORY, chart, line


def test_the_description_has_title_unit_times_and_numbers() -> None:
    assert alt_text(MEMORY) == (
        'sum by (pod) (container_memory_working_set_bytes{namespace="shop"}), in bytes, '
        "2026-11-18T11:10Z to 2026-11-18T12:10Z; "
        '{pod="checkout-0"}: first 200,000,000, last 800,000,000, min 200,000,000, max 800,000,000; '
        '{pod="cart-0"}: first 300,000,000, last 300,000,000, min 300,000,000, max 302,000,000; '
        "9 more series; threshold > 600,000,000 (MemoryHigh); "
        "rollout checkout at 2026-11-18T11:40Z; restart a at 2026-11-18T11:55Z"
    )


def test_a_thin_chart_keeps_ends_and_extremes() -> None:
    long = chart(line("a", lambda place: 900.0 if place == 777 else float(place % 7), range(1_000)))
    (kept,) = thinned(long).lines
    assert len(kept.values) <= 122
    assert (kept.times[0], kept.times[-1]) == (long.lines[0].times[0], long.lines[0].times[-1])
    assert max(kept.values) == 900.0
    assert thinned(MEMORY) == replace(MEMORY, background=())


def test_each_text_is_changed() -> None:
    changed = with_texts(MEMORY, lambda text: text.upper())
    assert changed.title == MEMORY.title.upper()
    assert changed.lines[0].name == '{POD="CHECKOUT-0"}'
    assert changed.threshold is not None
    assert changed.threshold.text == "> 600,000,000 (MEMORYHIGH)"
    assert [mark.text for mark in changed.marks] == ["ROLLOUT CHECKOUT", "RESTART A"]
    assert changed.unit == "BYTES"
