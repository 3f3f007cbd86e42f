"""Finds the spans that decide how long a trace takes.

The search begins at the end of the root. The child that ended last before that time is what the root waited for. The
search continues in that child, and at its beginning in the root. Where no child ran, the span itself was busy. So every
microsecond of the root belongs to exactly one span. Children that nothing waits for are not on the path.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.observability.traces.tree import TOLERANCE_US

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.observability.traces.source import Span
    from holmes.observability.traces.tree import SpanTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of the critical path, during which `span`, a position in the tree, was busy itself."""

    span: int
    start_us: int
    end_us: int


def critical_path(tree: SpanTree, root: int) -> tuple[Segment, ...]:
    """Return the critical path of a span, in the order of time, without gaps and without overlap.

    Takes time in proportion to n log n for n spans.
    """
    segments = list[Segment]()
    pending = [(root, tree.spans[root].start_us, tree.spans[root].end_us)]
    while pending:
        index, low, high = pending.pop()
        cursor = high
        for child in sorted(tree.children[index], key=lambda each: -tree.spans[each].end_us):
            span = tree.spans[child]
            begin, end = max(span.start_us, low), min(span.end_us, high)
            # A child that still ran when the next one began was not waited for.
            if begin >= cursor or end - cursor > TOLERANCE_US or not waits_for(tree.spans[index], span):
                continue
            end = min(end, cursor)
            if begin < end:
                _add(segments, index, end, cursor)
                pending.append((child, begin, end))
                cursor = begin
        _add(segments, index, low, cursor)
    return tuple(sorted(segments, key=lambda each: each.start_us))


def _add(segments: list[Segment], span: int, start_us: int, end_us: int) -> None:
    if start_us < end_us:
        segments.append(Segment(span=span, start_us=start_us, end_us=end_us))


def waits_for(parent: Span, child: Span) -> bool:
    """Return whether a parent waits for a child.

    It does not if the child says so, consumes a message, or outlasts the parent in the same service. A child in another
    service that outlasts its parent is waited for: the parent had a time limit, or the clocks differ.
    """
    if child.detached or child.kind == "consumer":
        return False
    return child.service != parent.service or child.end_us <= parent.end_us + TOLERANCE_US


def time_on_path(path: Iterable[Segment]) -> Counter[int]:
    """Return for each span on the path how long it was busy itself, in microseconds."""
    counted = Counter[int]()
    for each in path:
        counted[each.span] += each.end_us - each.start_us
    return counted


def uncovered_us(tree: SpanTree, index: int) -> int:
    """Return how long no child of a span ran, in microseconds."""
    span = tree.spans[index]
    covered, reached = 0, span.start_us
    for child in tree.children[index]:
        end = min(tree.spans[child].end_us, span.end_us)
        begin = max(tree.spans[child].start_us, reached)
        if end > begin:
            covered += end - begin
            reached = end
    return span.duration_us - covered
