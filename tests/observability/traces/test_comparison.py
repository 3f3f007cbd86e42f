"""Slow and fast traces are told apart, and the differences of their spans add up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.observability.traces.comparison import Profile, compare, groups, profile
from holmes.observability.traces.source import Trace, TraceSummary
from holmes.observability.traces.tree import span_tree
from tests.observability.traces.shapes import any_trace, span, trace
from tests.support.long_form import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.traces.source import Span


def summaries(*milliseconds: int) -> list[TraceSummary]:
    return [
        TraceSummary(
            id=f"{place:x}", service="s", operation="o", start_us=0, duration_us=10**9, matched_us=each * 1_000
        )
        for place, each in enumerate(milliseconds)
    ]


def profiled(*spans: Span) -> Profile:
    found = profile("7", span_tree(trace(*spans)), "shop", "a")
    assert found is not None
    return found


def test_the_slowest_quarter_stands_against_the_faster_half() -> None:
    slow, fast = groups(summaries(90, 10, 20, 30, 40, 50, 60, 70))
    assert [each.matched_us for each in slow] == [90_000, 70_000]
    assert [each.matched_us for each in fast] == [10_000, 20_000, 30_000, 40_000]


def test_a_limit_decides_what_is_slow_and_groups_stay_small() -> None:
    slow, fast = groups(summaries(*range(1, 101)), slower_than_us=50_000)
    assert [each.matched_us // 1_000 for each in slow] == [100, 99, 98, 97, 96, 95, 94, 93]
    assert [each.matched_us // 1_000 for each in fast] == [1, 7, 14, 21, 28, 35, 42, 49]


@pytest.mark.parametrize("few", [(), (5,)])
def test_one_trace_has_nothing_to_stand_against(few: Sequence[int]) -> None:
    assert groups(summaries(*few))[0] == ()


def test_a_span_that_only_slow_traces_have_and_the_value_that_they_share() -> None:
    def request(pod: str, *, retries: int) -> Profile:
        calls = [
            replace(
                span(f"c{place}", "a", 10 + 20 * place, 25 + 20 * place, "bank"),
                operation="call",
                attributes=(("pod", pod),),
            )
            for place in range(1 + retries)
        ]
        waits = [span("w", "a", 90, 190)] if retries else []
        return profiled(span("a", "", 0, 200 if retries else 40), *calls, *waits)

    compared = compare([request("x", retries=2)] * 3, [request("y", retries=0), request("x", retries=0)] * 2)
    first, *others = compared.differences
    assert (compared.slow_us, compared.fast_us) == (200_000, 40_000)
    assert (first.operation, first.critical_us, first.slow.present, first.fast.present) == ("w", 100_000, 3, 0)
    (call,) = [each for each in others if each.operation == "call"]
    assert (call.slow.count, call.fast.count, call.critical_us) == (3, 1, 30_000)
    assert call.attributes == ()
    alike = compare([request("x", retries=2)] * 3, [request("y", retries=0)] * 4)
    (call,) = [each for each in alike.differences if each.operation == "call"]
    assert call.attributes == (("pod", "x", 3, 0),)


def test_only_the_part_below_the_operation_counts() -> None:
    found = profiled(span("r", "", 0, 900, "edge"), span("a", "r", 100, 300), span("b", "a", 150, 250, "bank"))
    assert found.duration_us == 200_000
    assert set(found.parts) == {("shop", "a"), ("bank", "b")}


@settings(max_examples=count(long=300, short=40))
@given(st.lists(any_trace(), min_size=1, max_size=3), st.lists(any_trace(), min_size=1, max_size=3))
def test_the_differences_of_all_spans_add_up_to_that_of_the_traces(slow: list[Trace], fast: list[Trace]) -> None:
    groups_of = [[profile("7", span_tree(each), "a", "") for each in group] for group in (slow, fast)]
    known = [[each for each in group if each is not None] for group in groups_of]
    if not all(known):
        return
    compared = compare(*known)
    total = sum(each.critical_us for each in compared.differences)
    assert total == pytest.approx(compared.slow_us - compared.fast_us, abs=0.01)
    sizes = [abs(each.critical_us) for each in compared.differences]
    assert sizes == sorted(sizes, reverse=True)
