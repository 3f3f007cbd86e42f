"""Compares slow with fast traces of the same operation: which span makes the difference.

The critical path gives every microsecond of a trace to one span. So the differences of all spans add up to the
difference of the traces, and the span with the largest one is where the time is. That is a correlation, not a cause.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.observability.traces.critical_path import critical_path, time_on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.traces.source import TraceSummary
    from holmes.observability.traces.tree import SpanTree

Key: TypeAlias = tuple[str, str]
"""The service and the operation of a span."""
MOST_IN_GROUP: Final = 8
_SLOW_PART: Final = 4
_MOST_PAIRS: Final = 200
_DISTINCT: Final = 0.75
"""A value of an attribute differs if this part more of the slow traces has it."""
_MOST_ATTRIBUTES: Final = 3


@dataclass(slots=True, kw_only=True)
class Part:
    """All spans of one operation in one trace. `critical_us` is their own time on the critical path."""

    critical_us: int = 0
    total_us: int = 0
    count: int = 0
    failed: int = 0
    attributes: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One trace, or its part below the compared operation."""

    trace_id: str
    duration_us: int
    parts: Mapping[Key, Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """One operation in a group of traces: means per trace, and the number of traces that have it or its errors."""

    critical_us: float
    total_us: float
    count: float
    present: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one operation differs. `attributes` are values that slow traces have, with the number of both groups."""

    service: str
    operation: str
    slow: Average
    fast: Average
    attributes: tuple[tuple[str, str, int, int], ...] = ()

    @property
    def critical_us(self) -> float:
        return self.slow.critical_us - self.fast.critical_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The mean durations of both groups, and all operations, the largest difference first."""

    slow_us: float
    fast_us: float
    differences: tuple[Difference, ...]


def groups(
    found: Sequence[TraceSummary], slower_than_us: int = 0
) -> tuple[tuple[TraceSummary, ...], tuple[TraceSummary, ...]]:
    """Choose slow and fast traces by the duration of the matching span, at most eight of each.

    Without a limit, the slow ones are the slowest quarter, and the fast ones come from the faster half.
    """
    ordered = sorted(found, key=lambda each: (each.matched_us, each.id))
    if slower_than_us:
        slow = [each for each in ordered if each.matched_us >= slower_than_us]
        fast = ordered[: len(ordered) - len(slow)]
    else:
        slow = ordered[len(ordered) - max(1, len(ordered) // _SLOW_PART) :] if len(ordered) > 1 else []
        fast = ordered[: len(ordered) // 2]
    return tuple(reversed(slow[-MOST_IN_GROUP:])), tuple(_spread(fast))


def _spread(ordered: Sequence[TraceSummary]) -> Sequence[TraceSummary]:
    """Return eight at equal distances, because the fastest traces alone can be failures."""
    if len(ordered) <= MOST_IN_GROUP:
        return ordered
    return [ordered[place * (len(ordered) - 1) // (MOST_IN_GROUP - 1)] for place in range(MOST_IN_GROUP)]


def profile(trace_id: str, tree: SpanTree, service: str, operation: str) -> Profile | None:
    """Describe the longest span of an operation and everything below it, or return None if the trace has none."""
    matching = [
        index for index, span in enumerate(tree.spans) if span.service == service and operation in {"", span.operation}
    ]
    if not matching:
        return None
    root = max(matching, key=lambda index: tree.spans[index].duration_us)
    parts: dict[Key, Part] = defaultdict(Part)
    own = time_on_path(critical_path(tree, root))
    for index in tree.below(root):
        span = tree.spans[index]
        part = parts[span.service, span.operation]
        part.critical_us += own[index]
        part.total_us += span.duration_us
        part.count += 1
        part.failed += span.failed
        if len(part.attributes) < _MOST_PAIRS:
            part.attributes.update(span.attributes)
    return Profile(trace_id=trace_id, duration_us=tree.spans[root].duration_us, parts=dict(parts))


def compare(slow: Sequence[Profile], fast: Sequence[Profile]) -> Comparison:
    """Compare two groups, none of which is empty."""
    keys = sorted({key for each in (*slow, *fast) for key in each.parts})
    differences = (
        Difference(
            service=key[0],
            operation=key[1],
            slow=_average(slow, key),
            fast=_average(fast, key),
            attributes=_attributes(slow, fast, key),
        )
        for key in keys
    )
    return Comparison(
        slow_us=fmean(each.duration_us for each in slow),
        fast_us=fmean(each.duration_us for each in fast),
        differences=tuple(sorted(differences, key=lambda each: (-abs(each.critical_us), each.service, each.operation))),
    )


def _average(group: Sequence[Profile], key: Key) -> Average:
    parts = [found for each in group if (found := each.parts.get(key)) is not None]
    return Average(
        critical_us=sum(each.critical_us for each in parts) / len(group),
        total_us=sum(each.total_us for each in parts) / len(group),
        count=sum(each.count for each in parts) / len(group),
        present=len(parts),
        failed=sum(each.failed > 0 for each in parts),
    )


def _attributes(slow: Sequence[Profile], fast: Sequence[Profile], key: Key) -> tuple[tuple[str, str, int, int], ...]:
    """Return the values of attributes that most of the slow traces have, and few of the fast ones that have the span.

    A span that one of the groups lacks says nothing.
    """
    counted = [
        Counter(pair for each in group if key in each.parts for pair in each.parts[key].attributes)
        for group in (slow, fast)
    ]
    sizes = [sum(key in each.parts for each in group) for group in (slow, fast)]
    if min(sizes) < 2:
        return ()
    shares = {pair: count / sizes[0] - counted[1][pair] / sizes[1] for pair, count in counted[0].items()}
    distinct = sorted((-share, pair) for pair, share in shares.items() if share >= _DISTINCT)
    return tuple((*pair, counted[0][pair], counted[1][pair]) for _, pair in distinct[:_MOST_ATTRIBUTES])
