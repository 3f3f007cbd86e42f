"""Writes a trace as a tree: in the short form the parts that explain its duration and its errors, or every span."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.observability.traces.critical_path import critical_path, time_on_path, uncovered_us
from holmes.toolsets.traces.texts import duration_text, name_text
from holmes.values.charts import clock
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.observability.traces.source import Span, Trace
    from holmes.observability.traces.tree import SpanTree

_MOST_CHARACTERS: Final = 1_500
"""Of the tree in the short form. With its heading, it has at most about 600 tokens."""
_MOST_ON_PATH: Final = 4
_MESSAGE_CHARACTERS: Final = 160
_VALUE_CHARACTERS: Final = 200
_NOTE_CHARACTERS: Final = 80
_DEEPEST_INDENT: Final = 12
_LEAST_OWN: Final = 0.02
_NOTED: Final = (
    "k8s.pod.name", "http.response.status_code", "http.status_code", "url.full", "http.url", "server.address",
    "net.peer.name", "db.query.text", "db.statement",
)  # fmt: skip
"""Attributes that lines of the short form show, because they lead to the next step."""
_ERROR_WEIGHT: Final = 0.3


@dataclass(slots=True, kw_only=True)
class _Row:
    """Siblings with the same service and operation, which the short form shows in one line."""

    spans: list[int]
    depth: int
    chosen: list[_Row] = field(default_factory=list)


class TraceText:
    """The texts of one trace that has spans."""

    def __init__(self, trace: Trace, tree: SpanTree) -> None:
        self._trace, self._tree = trace, tree
        self._root = tree.roots[0]
        self._own = time_on_path(critical_path(tree, self._root))
        self._on_path, self._failed_below = _below(tree, self._own)
        self._told: set[str] = set()

    def short(self) -> str:
        """Return the heading, and the lines of the tree that matter most."""
        top, shown = self._chosen_rows()
        lines = [*self._heading(), *self._rows(top)]
        hidden = len(self._tree.spans) - shown
        if hidden:
            lines.append(f"not shown: {hidden:,} spans that matter less; complete=true returns every span")
        return "\n".join([*lines, *self._notes()])

    def complete(self) -> str:
        """Return every span in one line with its attributes."""
        lines = [*self._heading(), *self._notes()]
        for root in self._tree.roots:
            depths = {root: 0}
            for index in self._tree.below(root):
                parent = self._tree.parents[index]
                depths[index] = 0 if index == root or parent is None else depths[parent] + 1
                lines.append(self._whole_line(index, depths[index]))
        return "\n".join(lines)

    def _heading(self) -> Iterator[str]:
        spans, root = self._tree.spans, self._tree.spans[self._root]
        failed, services = sum(span.failed for span in spans), len({span.service for span in spans})
        size = f"{len(spans):,} span{'s' * (len(spans) != 1)} of {services} service{'s' * (services != 1)}"
        began = clock(root.start_us // 1_000_000)
        last_us = max(span.end_us for span in spans) - root.start_us
        later = f" (the last span ends after {duration_text(last_us)})" if last_us > 1.01 * root.duration_us else ""
        yield f"trace {self._trace.id}: {duration_text(root.duration_us)}{later} at {began}, {size}, {failed} failed"
        if root.duration_us:
            yield f"busy on the critical path (*): {', '.join(self._busiest(root))}"

    def _busiest(self, root: Span) -> Iterator[str]:
        by_name = Counter[str]()
        for index, busy in self._own.items():
            span = self._tree.spans[index]
            by_name[name_text(span.service, span.operation)] += busy
        for name, busy in by_name.most_common(_MOST_ON_PATH):
            yield f"{name} {duration_text(busy)} ({busy / root.duration_us * 100:.0f} %)"

    def _chosen_rows(self) -> tuple[_Row, int]:
        """Choose rows from the root down, those with the most time on the critical path or with errors first.

        Returns a row without spans above the roots, and the number of spans in chosen rows.
        """
        top = _Row(spans=[], depth=-1)
        waiting: list[tuple[float, int, _Row, _Row]] = [(-math.inf, 0, top, _Row(spans=[self._root], depth=0))]
        found, length, shown, place = self._grouped(self._tree.roots[1:], 0), 0, 0, 0
        parent = top
        while True:
            for row in found:
                place += 1
                heapq.heappush(waiting, (-self._weight(row), place, parent, row))
            if not waiting:
                break
            _, _, above, parent = heapq.heappop(waiting)
            length += len(self._line(parent)) + 1
            if shown and length > _MOST_CHARACTERS:
                break
            above.chosen.append(parent)
            shown += len(parent.spans)
            below = (child for index in parent.spans for child in self._tree.children[index])
            found = self._grouped(below, parent.depth + 1)
        return top, shown

    def _grouped(self, indexes: Iterable[int], depth: int) -> list[_Row]:
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index in indexes:
            span = self._tree.spans[index]
            groups[span.service, span.operation].append(index)
        return [_Row(spans=spans, depth=depth) for spans in groups.values()]

    def _weight(self, row: _Row) -> float:
        root = self._tree.spans[self._root].duration_us or 1
        fails = any(self._failed_below[index] for index in row.spans)
        total = sum(self._tree.spans[index].duration_us for index in row.spans)
        return sum(self._on_path[index] for index in row.spans) + fails * _ERROR_WEIGHT * root + 0.01 * total

    def _rows(self, top: _Row) -> Iterator[str]:
        pending = sorted(top.chosen, key=lambda each: each.spans[0] == self._root)
        while pending:
            row = pending.pop()
            yield self._line(row, tells=True)
            pending += sorted(row.chosen, key=lambda each: -self._start(each))

    def _start(self, row: _Row) -> int:
        return min(self._tree.spans[index].start_us for index in row.spans)

    def _line(self, row: _Row, *, tells: bool = False) -> str:
        """Return the line of a row. With `tells`, a message is written only the first time."""
        spans = [self._tree.spans[index] for index in row.spans]
        first = spans[0]
        mark = "*" if any(self._on_path[index] for index in row.spans) else "-"
        parts = [self._measured(row, spans)]
        failed = [span for span in spans if span.failed]
        if failed:
            parts.append(self._failure(failed, len(spans), tells=tells))
        parts += _notes_of(first) if len(spans) == 1 and (failed or self._matters(row.spans[0])) else []
        name = name_text(first.service, first.operation)
        counted = f"{len(spans)} x {name}" if len(spans) > 1 else name
        return f"{'  ' * min(row.depth, _DEEPEST_INDENT)}{mark} {counted} {', '.join(parts)}"

    def _measured(self, row: _Row, spans: list[Span]) -> str:
        total = sum(span.duration_us for span in spans)
        own = sum(uncovered_us(self._tree, index) for index in row.spans if self._tree.children[index])
        least = _LEAST_OWN * self._tree.spans[self._root].duration_us
        without = f", {duration_text(own)} without children" if own and own >= least else ""
        if len(spans) == 1:
            return f"{duration_text(total)}{without}"
        lengths = sorted(span.duration_us for span in spans)
        each = f"{duration_text(lengths[0])} to {duration_text(lengths[-1])} each"
        return f"total {duration_text(total)} ({each}){without}"

    def _failure(self, failed: list[Span], total: int, *, tells: bool) -> str:
        message = next((span.error for span in failed if span.error), "")
        short = excerpt(" ".join(message.split()), _MESSAGE_CHARACTERS)
        word = f"{len(failed)} failed" if total > 1 else "failed"
        if not short or short in self._told:
            return word
        if tells:
            self._told.add(short)
        return f"{word}: {short}"

    def _matters(self, index: int) -> bool:
        return self._own[index] >= 0.1 * self._tree.spans[self._root].duration_us > 0

    def _whole_line(self, index: int, depth: int) -> str:
        span, start = self._tree.spans[index], self._tree.spans[self._root].start_us
        mark = "*" if index in self._own else "-"
        indent = "  " * min(depth, _DEEPEST_INDENT) + (f"[{depth}] " if depth > _DEEPEST_INDENT else "")
        offset = span.start_us - start
        parts = [f"{duration_text(span.duration_us)} at {'+' if offset >= 0 else ''}{duration_text(offset)}"]
        if self._own[index]:
            parts.append(f"{duration_text(self._own[index])} on the critical path")
        if span.failed:
            parts.append(f"failed: {excerpt(' '.join(span.error.split()), _VALUE_CHARACTERS)}".removesuffix(": "))
        values = (f"{name}={excerpt(' '.join(value.split()), _VALUE_CHARACTERS)}" for name, value in span.attributes)
        kind = f" ({span.kind})" if span.kind else ""
        named = name_text(span.service, span.operation)
        return f"{indent}{mark} {named}{kind} {', '.join(parts)} [{span.id}] {' '.join(values)}".rstrip()

    def _notes(self) -> Iterator[str]:
        tree = self._tree
        others = tree.roots[1:]
        if others:
            names = (tree.spans[each] for each in others[:3])
            listed = ", ".join(name_text(each.service, each.operation) for each in names)
            yield f"{len(others)} other root{'s' * (len(others) > 1)}: {listed}{', …' if len(others) > 3 else ''}"
        if tree.orphans:
            yield f"{tree.orphans} spans have a parent that the trace lacks: spans were lost or not sampled"
        if tree.cycles:
            yield f"{tree.cycles} cycles of parents were cut: the trace is damaged"
        if self._trace.damaged:
            yield f"{self._trace.damaged} spans could not be read"
        if self._trace.incomplete:
            yield "the source says that it has only a part of this trace"
        for service, shift in sorted(tree.skews.items(), key=lambda pair: -pair[1])[:3]:
            yield f"the clock of {service} differs by up to {duration_text(shift)}; its spans were moved"


def _below(tree: SpanTree, own: Counter[int]) -> tuple[list[int], list[bool]]:
    """Return for each span the time on the critical path, and whether a span failed, each with all spans below it."""
    on_path = [own[index] for index in range(len(tree.spans))]
    failed = [span.failed for span in tree.spans]
    for root in tree.roots:
        for index in reversed(list(tree.below(root))):
            parent = tree.parents[index]
            if parent is not None:
                on_path[parent] += on_path[index]
                failed[parent] = failed[parent] or failed[index]
    return on_path, failed


def _notes_of(span: Span) -> list[str]:
    known = dict(span.attributes)
    found = [f"{name}={known[name]}" for name in _NOTED if known.get(name)]
    return [excerpt(" ".join(each.split()), _NOTE_CHARACTERS) for each in found[:3]]
