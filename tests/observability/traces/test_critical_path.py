"""The critical path gives every moment of a root to one span, whatever the trace looks like."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings

from holmes.observability.traces.critical_path import critical_path, time_on_path, uncovered_us
from holmes.observability.traces.source import Span, Trace
from holmes.observability.traces.tree import SpanTree, span_tree
from tests.observability.traces.shapes import START, any_trace, nested_trace, of_kind, span, trace
from tests.support.long_form import cases, count


def milliseconds_on_path(*spans: Span) -> dict[str, int]:
    tree = span_tree(trace(*spans))
    own = time_on_path(critical_path(tree, tree.roots[0]))
    return {tree.spans[index].id: busy // 1_000 for index, busy in own.items()}


def covers(tree: SpanTree, root: int) -> bool:
    """Whether the path of a span covers its duration without gaps and without overlap."""
    path, whole = critical_path(tree, root), tree.spans[root]
    edges = [whole.start_us, *(edge for each in path for edge in (each.start_us, each.end_us)), whole.end_us]
    return all(each.start_us < each.end_us for each in path) and (
        all(before == after for before, after in list(pairwise(edges))[::2])
    )


def test_calls_one_after_the_other_and_the_time_between_them() -> None:
    assert milliseconds_on_path(span("a", "", 0, 100), span("b", "a", 10, 40), span("c", "a", 50, 90)) == {
        "a": 30, "b": 30, "c": 40,
    }  # fmt: skip


def test_of_calls_at_the_same_time_only_the_last_one_to_end_is_waited_for() -> None:
    assert milliseconds_on_path(span("a", "", 0, 100), span("b", "a", 10, 95), span("c", "a", 10, 40)) == {
        "a": 15, "b": 85,
    }  # fmt: skip


def test_a_message_and_work_that_goes_on_after_its_parent_are_not_waited_for() -> None:
    message = of_kind("consumer", span("b", "a", 20, 80, service="mail"))
    later = span("c", "a", 50, 400)
    assert milliseconds_on_path(span("a", "", 0, 100), message, later) == {"a": 100}


def test_a_remote_call_that_outlasts_its_caller_is_waited_for_until_the_time_limit() -> None:
    assert milliseconds_on_path(span("a", "", 0, 100), span("b", "a", 20, 500, service="bank")) == {"a": 20, "b": 80}


def test_clocks_in_milliseconds_do_not_hide_a_call() -> None:
    first = span("b", "a", 0, 50)
    second = Span(id="c", parent="a", service="shop", operation="c", start_us=START + 49_600, duration_us=50_000)
    assert milliseconds_on_path(span("a", "", 0, 100), first, second) == {"a": 0, "b": 49, "c": 50}


@settings(max_examples=count(long=500, short=50))
@given(any_trace())
def test_the_path_covers_the_root_without_overlap_for_any_trace(drawn: Trace) -> None:
    tree = span_tree(drawn)
    for root in tree.roots:
        assert covers(tree, root)
        assert sum(time_on_path(critical_path(tree, root)).values()) == tree.spans[root].duration_us


@settings(max_examples=count(long=500, short=50))
@given(any_trace())
def test_time_without_children_is_a_part_of_the_span(drawn: Trace) -> None:
    tree = span_tree(drawn)
    for index, each in enumerate(tree.spans):
        assert 0 <= uncovered_us(tree, index) <= each.duration_us


@settings(max_examples=count(long=500, short=50))
@given(nested_trace())
def test_a_span_is_on_the_path_of_its_parent_only_while_it_runs(drawn: Trace) -> None:
    tree = span_tree(drawn)
    for each in critical_path(tree, tree.roots[0]):
        busy = tree.spans[each.span]
        assert busy.start_us <= each.start_us <= each.end_us <= busy.end_us


@pytest.mark.timeout(20)
@pytest.mark.parametrize("shape", cases(["chain", "pairs", "star"], 2))
def test_fifty_thousand_spans_take_bounded_time(shape: str) -> None:
    most = 50_000
    spans = [Span(id="0", parent="", service="s", operation="o", start_us=START, duration_us=2 * most)]
    for number in range(1, most):
        parent = {"chain": number - 1, "star": 0, "pairs": (number - 1) // 2}[shape]
        length = 2 * (most - number) if shape == "chain" else 1
        spans.append(
            Span(
                id=str(number),
                parent=str(parent),
                service="s",
                operation="o",
                start_us=START + number,
                duration_us=length,
            )
        )
    tree = span_tree(trace(*spans))
    assert len(tree.roots) == 1
    assert covers(tree, tree.roots[0])
