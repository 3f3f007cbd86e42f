"""Arranges the spans of a trace as trees, whatever is wrong with them.

A span whose parent is missing becomes a root, and a cycle of parents is cut. Clocks of services differ: a span that
begins before the span that caused it is moved, together with the spans of its service below it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.observability.traces.source import Span, Trace

TOLERANCE_US: Final = 1_000
"""Clocks of the same machine differ by so much, because some programs measure in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTree:
    """The spans of a trace with corrected times. All other values are positions in `spans`.

    `parents` has None for roots, and `children` are sorted by their start. The first of `roots` is the root of the
    trace, or the longest one if several claim that. `orphans` counts the roots whose parent is missing, and `cycles`
    the cycles that were cut. `skews` maps each service whose spans were moved to the largest shift in microseconds.
    """

    spans: tuple[Span, ...]
    parents: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]
    orphans: int = 0
    cycles: int = 0
    skews: Mapping[str, int]

    def below(self, index: int) -> Iterator[int]:
        """Return the span and all spans below it. A parent comes before its children."""
        pending = [index]
        while pending:
            each = pending.pop()
            yield each
            pending += reversed(self.children[each])


def span_tree(trace: Trace) -> SpanTree:
    """Arrange the spans of a trace. Spans that the source returned twice count once."""
    spans = tuple(dict.fromkeys(trace.spans))
    parents, orphans = _parents(spans)
    cycles = _cut_cycles(spans, parents)
    children = _children(spans, parents)
    roots = sorted(
        (index for index, parent in enumerate(parents) if parent is None),
        key=lambda index: (bool(spans[index].parent), -spans[index].duration_us, index),
    )
    shifts = _shifts(spans, children, roots)
    moved = tuple(
        replace(span, start_us=span.start_us + shift) if shift else span
        for span, shift in zip(spans, shifts, strict=True)
    )
    skews: dict[str, int] = {}
    for span, shift in zip(spans, shifts, strict=True):
        if shift:
            skews[span.service] = max(skews.get(span.service, 0), abs(shift))
    ordered = tuple(tuple(sorted(each, key=lambda index: (moved[index].start_us, index))) for each in children)
    return SpanTree(
        spans=moved,
        parents=tuple(parents),
        children=ordered,
        roots=tuple(roots),
        orphans=orphans,
        cycles=cycles,
        skews=skews,
    )


def _parents(spans: Sequence[Span]) -> tuple[list[int | None], int]:
    """Return the parent of each span, and the number of spans whose parent is missing.

    Zipkin gives the client and the server of a call the same id: the server is below the client then.
    """
    by_id: dict[str, list[int]] = defaultdict(list)
    for index, span in enumerate(spans):
        if span.id:
            by_id[span.id].append(index)
    clients = {span_id: own for span_id, known in by_id.items() if (own := _client_of_shared(spans, known)) is not None}
    parents, orphans = list[int | None](), 0
    for index, span in enumerate(spans):
        client = clients.get(span.id)
        if client is not None and client != index and span.kind == "server":
            parents.append(client)
            continue
        above = [each for each in by_id.get(span.parent, ()) if each != index]
        parents.append(max(above, key=lambda each: spans[each].kind == "server", default=None))
        orphans += bool(span.parent) and not above
    return parents, orphans


def _client_of_shared(spans: Sequence[Span], known: Sequence[int]) -> int | None:
    if len(known) < 2:
        return None
    return next((index for index in known if spans[index].kind == "client"), None)


def _cut_cycles(spans: Sequence[Span], parents: list[int | None]) -> int:
    """Make the earliest span of each cycle a root, and return the number of cycles."""
    cycles, done = 0, set[int]()
    for start in range(len(parents)):
        way: dict[int, None] = {}
        index: int | None = start
        while index is not None and index not in done and index not in way:
            way[index] = None
            index = parents[index]
        if index is not None and index in way:
            ordered = list(way)
            cycle = ordered[ordered.index(index) :]
            parents[min(cycle, key=lambda each: (spans[each].start_us, each))] = None
            cycles += 1
        done.update(way)
    return cycles


def _children(spans: Sequence[Span], parents: Sequence[int | None]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in spans]
    for index, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(index)
    return children


def _shifts(spans: Sequence[Span], children: Sequence[Sequence[int]], roots: Sequence[int]) -> list[int]:
    """Return by how much each span must be moved."""
    shifts = [0] * len(spans)
    pending = list(roots)
    while pending:
        index = pending.pop()
        parent, shift = spans[index], shifts[index]
        for child in children[index]:
            same_clock = spans[child].service == parent.service
            shifts[child] = shift if same_clock else _shift(parent, parent.start_us + shift, spans[child])
        pending += children[index]
    return shifts


def _shift(parent: Span, start_us: int, child: Span) -> int:
    """Return the shift of a child in another service, whose parent begins at `start_us`.

    A child cannot begin before its parent, and a client waits for its server.
    """
    end_us = start_us + parent.duration_us
    outlasts = parent.kind == "client" and child.kind == "server" and child.end_us > end_us + TOLERANCE_US
    fits = child.duration_us <= parent.duration_us
    if child.start_us >= start_us - TOLERANCE_US and not (outlasts and fits):
        return 0
    # The request and the response are assumed to take the same time.
    room = parent.duration_us - child.duration_us
    waits = fits and not child.detached and child.kind != "consumer"
    return start_us + (room // 2 if waits else 0) - child.start_us
