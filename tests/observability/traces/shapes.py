"""Traces of the tests, also those that no program should write."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from holmes.observability.traces.source import Span, SpanKind, Trace

START: Final = 1_767_225_600_000_000
"""2026-01-01, in microseconds."""


def span(id: str, parent: str, start: int, end: int, service: str = "shop", operation: str = "") -> Span:  # noqa: A002
    """Return a span with its times in milliseconds after `START`."""
    return Span(
        id=id,
        parent=parent,
        service=service,
        operation=operation or id,
        start_us=START + start * 1_000,
        duration_us=(end - start) * 1_000,
    )


def of_kind(kind: SpanKind, each: Span) -> Span:
    return replace(each, kind=kind)


def trace(*spans: Span) -> Trace:
    return Trace(id="7", spans=spans)


KINDS: Final[tuple[SpanKind, ...]] = ("", "internal", "server", "client", "producer", "consumer")


@st.composite
def any_trace(draw: st.DrawFn) -> Trace:
    """Draw spans with parents and times of any kind: cycles, missing parents, equal ids, skewed clocks."""
    ids = [f"{number:x}" for number in range(6)]
    spans = st.builds(
        Span,
        id=st.sampled_from([*ids, ""]),
        parent=st.sampled_from([*ids, "", "missing"]),
        service=st.sampled_from(["a", "b", "c"]),
        operation=st.sampled_from(["x", "y"]),
        start_us=st.integers(START, START + 20_000),
        duration_us=st.integers(0, 20_000),
        kind=st.sampled_from(KINDS),
        failed=st.booleans(),
        detached=st.booleans(),
    )
    return trace(*draw(st.lists(spans, min_size=1, max_size=25)))


@st.composite
def nested_trace(draw: st.DrawFn) -> Trace:
    """Draw a trace of one service whose spans end before their parents, at full milliseconds."""
    spans = [span("0", "", 0, draw(st.integers(1, 200)), operation="root")]
    for number in range(1, draw(st.integers(1, 15))):
        parent = draw(st.sampled_from(spans))
        length = parent.duration_us // 1_000
        start = draw(st.integers(0, length))
        end = draw(st.integers(start, length))
        offset = (parent.start_us - START) // 1_000
        spans.append(span(str(number), parent.id, offset + start, offset + end))
    return trace(*spans)
