"""The short form of a trace stays short and shows what matters, whatever the trace looks like."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from holmes.observability.traces.source import Span, Trace
from holmes.observability.traces.tree import span_tree
from holmes.tokens import TokenCounter
from holmes.toolsets.traces.texts import duration_text
from holmes.toolsets.traces.tree_texts import TraceText
from tests.observability.traces.shapes import START, any_trace, span, trace
from tests.support.long_form import count


def short(*spans: Span) -> list[str]:
    drawn = trace(*spans)
    return TraceText(drawn, span_tree(drawn)).short().splitlines()


def failing(each: Span, error: str) -> Span:
    return replace(each, failed=True, error=error)


def test_durations_have_three_digits() -> None:
    values = (0, 85, 999, 1_000, 12_345, 999_700, 1_520_000, 59_900_000, 210_000_000, -2_500)
    assert [duration_text(each) for each in values] == [
        "0 µs", "85 µs", "999 µs", "1 ms", "12.3 ms", "1 s", "1.52 s", "59.9 s", "3.5 min", "-2.5 ms",
    ]  # fmt: skip


def test_siblings_and_the_calls_below_them_are_one_line_each() -> None:
    calls = [span(f"c{place}", "a", place * 10, place * 10 + 8, "bank", "charge") for place in range(30)]
    inner = [span(f"d{place}", f"c{place}", place * 10, place * 10 + 5, "db", "SELECT") for place in range(30)]
    lines = short(span("a", "", 0, 300), *calls, *inner)
    assert lines[2:] == [
        "* shop: a 300 ms, 60 ms without children",
        "  * 30 x bank: charge total 240 ms (8 ms to 8 ms each), 90 ms without children",
        "    * 30 x db: SELECT total 150 ms (5 ms to 5 ms each)",
    ]


def test_a_message_is_written_once() -> None:
    refused = "connection refused"
    inner = [failing(span(f"c{place}", "b", 0, 10, "bank"), refused) for place in range(3)]
    text = "\n".join(
        short(failing(span("a", "", 0, 100), refused), failing(span("b", "a", 0, 50), "retries used up"), *inner)
    )
    assert text.count(refused) == 1
    assert "failed: retries used up" in text


def test_an_error_that_took_no_time_is_shown_among_many_long_calls() -> None:
    calls = [span(f"c{place}", "a", place * 10, place * 10 + 9, "bank", f"charge {place}") for place in range(200)]
    lines = short(span("a", "", 0, 2_000), *calls, failing(span("e", "a", 1_999, 1_999, "mail"), "mailbox full"))
    assert any("mail: e 0 µs, failed: mailbox full" in line for line in lines)
    assert any(line.startswith("not shown: ") and line.endswith("complete=true returns every span") for line in lines)


def test_roots_whose_parents_are_missing_are_shown_below_the_longest() -> None:
    lines = short(span("b", "gone", 20, 90), failing(span("c", "gone", 30, 40, "bank"), "no money"))
    assert lines[2:] == [
        "* shop: b 70 ms",
        "- bank: c 10 ms, failed: no money",
        "1 other root: bank: c",
        "2 spans have a parent that the trace lacks: spans were lost or not sampled",
    ]


def test_a_chain_of_fifty_thousand_spans_has_a_short_form_and_a_complete_one() -> None:
    chain = [
        Span(id=str(depth), parent=str(depth - 1) if depth else "", service="s", operation="o" * 70, start_us=START,
             duration_us=60_000 - depth)
        for depth in range(50_000)
    ]  # fmt: skip
    drawn = trace(*chain)
    text = TraceText(drawn, span_tree(drawn))
    assert TokenCounter().count_text(text.short()) <= 600
    complete = text.complete()
    assert complete.count("\n") == 50_001
    assert len(complete) < 200 * 50_000


@settings(max_examples=count(long=500, short=40))
@given(any_trace())
def test_any_trace_has_both_texts(drawn: Trace) -> None:
    text = TraceText(drawn, span_tree(drawn))
    assert len(text.short()) < 3_000
    lines = text.complete().splitlines()
    assert len([line for line in lines if line.lstrip()[:2] in {"* ", "- "}]) == len(set(drawn.spans))
