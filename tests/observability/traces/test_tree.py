"""Spans become trees, whatever is wrong with them."""

from __future__ import annotations

from hypothesis import given, settings

from holmes.observability.traces.source import Trace
from holmes.observability.traces.tree import span_tree
from tests.observability.traces.shapes import START, any_trace, of_kind, span, trace
from tests.support.long_form import count


def test_a_span_whose_parent_is_missing_is_a_root_behind_the_real_one() -> None:
    tree = span_tree(trace(span("b", "gone", 0, 500), span("a", "", 10, 20), span("c", "a", 12, 15)))
    assert [tree.spans[index].id for index in tree.roots] == ["a", "b"]
    assert tree.orphans == 1
    assert [tree.spans[index].id for index in tree.below(tree.roots[0])] == ["a", "c"]


def test_cycles_of_parents_are_cut_at_their_first_span() -> None:
    tree = span_tree(trace(span("c", "b", 4, 5), span("a", "c", 1, 9), span("b", "a", 2, 8), span("d", "d", 0, 1)))
    assert tree.cycles == 1
    assert sorted(tree.spans[index].id for index in tree.roots) == ["a", "d"]
    whole = [tree.spans[index].id for root in tree.roots for index in tree.below(root)]
    assert sorted(whole) == ["a", "b", "c", "d"]


def test_a_span_that_came_twice_counts_once() -> None:
    assert len(span_tree(trace(span("a", "", 0, 9), span("b", "a", 1, 2), span("b", "a", 1, 2))).spans) == 2


def test_client_and_server_with_the_same_id_are_parent_and_child() -> None:
    client = of_kind("client", span("b", "a", 1, 9))
    server = of_kind("server", span("b", "a", 2, 8, service="bank"))
    tree = span_tree(trace(span("a", "", 0, 10), server, client, span("c", "b", 3, 4, service="bank")))
    way = [(tree.spans[index].id, tree.spans[index].kind) for index in tree.below(tree.roots[0])]
    assert way == [("a", ""), ("b", "client"), ("b", "server"), ("c", "")]


def test_a_clock_that_is_behind_is_corrected_for_all_spans_of_the_service() -> None:
    client = of_kind("client", span("b", "a", 100, 200))
    server = of_kind("server", span("c", "b", -50, 30, service="bank"))
    inner = span("d", "c", -40, 20, service="bank")
    tree = span_tree(trace(span("a", "", 0, 300), client, server, inner))
    times = {each.id: (each.start_us - START, each.end_us - START) for each in tree.spans}
    assert times["c"] == (110_000, 190_000)
    assert times["d"] == (120_000, 180_000)
    assert tree.skews == {"bank": 160_000}


def test_a_server_that_outlasts_its_client_because_of_its_clock_is_moved_back() -> None:
    client = of_kind("client", span("a", "", 0, 100))
    tree = span_tree(trace(client, of_kind("server", span("b", "a", 90, 170, service="bank"))))
    assert tree.skews == {"bank": 80_000}
    longer = of_kind("server", span("b", "a", 10, 170, service="bank"))
    assert span_tree(trace(client, longer)).skews == {}


@settings(max_examples=count(long=500, short=50))
@given(any_trace())
def test_every_span_is_in_exactly_one_tree(drawn: Trace) -> None:
    tree = span_tree(drawn)
    visited = [index for root in tree.roots for index in tree.below(root)]
    assert sorted(visited) == list(range(len(set(drawn.spans))))
    for index, parent in enumerate(tree.parents):
        assert (parent is None) == (index in tree.roots)
        assert parent is None or index in tree.children[parent]
    starts = [[tree.spans[child].start_us for child in children] for children in tree.children]
    assert starts == [sorted(each) for each in starts]


@settings(max_examples=count(long=500, short=50))
@given(any_trace())
def test_no_span_of_another_service_begins_before_its_parent(drawn: Trace) -> None:
    tree = span_tree(drawn)
    for index, parent in enumerate(tree.parents):
        if parent is not None and tree.spans[index].service != tree.spans[parent].service:
            assert tree.spans[index].start_us >= tree.spans[parent].start_us - 1_000
