"""Writes search results and comparisons for the model: short, and with the count of everything that is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.charts import clock
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.traces.comparison import Average, Comparison, Difference
    from holmes.observability.traces.source import TraceQuery, TraceSummary

_NAME_CHARACTERS: Final = 80
_VALUE_CHARACTERS: Final = 60
_MOST_DIFFERENCES: Final = 6
_LEAST_SHARE: Final = 0.03
_LEAST_RATIO: Final = 1.3


def duration_text(microseconds: float) -> str:
    """Write a duration with two or three digits: `850 µs`, `12.3 ms`, `1.52 s`, `3.5 min`."""
    size = abs(microseconds)
    for least, unit in ((60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")):
        if size >= 0.9995 * least:
            value = microseconds / least
            return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
    return f"{microseconds:.0f} µs"


def name_text(service: str, operation: str) -> str:
    return f"{_line(service, _NAME_CHARACTERS)}: {_line(operation, _NAME_CHARACTERS)}" if operation else service


def _line(text: str, most: int) -> str:
    return excerpt(" ".join(text.split()), most)


def range_text(query: TraceQuery) -> str:
    return f"{clock(query.start_us // 1_000_000)} to {clock(query.end_us // 1_000_000)}"


def summaries_text(found: Sequence[TraceSummary], query: TraceQuery, order: str, limit: int) -> str:
    """List traces, the newest or the slowest first. Returns an empty string if there are none."""
    if not found:
        return ""
    by_time = sorted(found, key=lambda each: -each.start_us)
    ordered = sorted(by_time, key=lambda each: -each.matched_us) if order == "slowest" else by_time
    shown = ordered[:limit]
    more = ", more can match" if len(found) >= query.limit else ""
    count = f"{len(shown)} of {len(found)} traces" if len(shown) < len(found) else f"{len(found)} traces"
    if len(found) == 1:
        count = "1 trace"
    return "\n".join([f"{count}{more}, {order} first, {range_text(query)}", *map(_row, shown)])


def _row(each: TraceSummary) -> str:
    parts = [f"{duration_text(each.duration_us)} {name_text(each.service or 'root is missing', each.operation)}"]
    # The duration of a trace is rounded to milliseconds by some sources.
    if abs(each.duration_us - each.matched_us) >= 1_000:
        parts.append(f"match {duration_text(each.matched_us)}")
    parts += [f"{each.spans} spans"] if each.spans is not None else []
    parts += [f"{each.errors} failed"] if each.errors else []
    parts += [f"{len(each.services)} services"] if len(each.services) > 1 else []
    return f"{each.id} {clock(each.start_us // 1_000_000)} {', '.join(parts)}"


def comparison_text(name: str, compared: Comparison, slow: Sequence[str], fast: Sequence[str]) -> str:
    """Describe which spans differ between slow and fast traces, of which `slow` and `fast` are the ids."""
    difference = compared.slow_us - compared.fast_us
    taken = f"{len(slow)} slow traces take {duration_text(compared.slow_us)} on average"
    lines = [f"{name}: {taken}, {len(fast)} fast traces {duration_text(compared.fast_us)}"]
    if compared.slow_us < _LEAST_RATIO * compared.fast_us:
        lines.append("the durations hardly differ, so the differences below can be chance")
    relevant = [each for each in compared.differences if _is_relevant(each, difference, len(slow), len(fast))]
    for each in relevant[:_MOST_DIFFERENCES]:
        lines += _difference_lines(each, difference, (len(slow), len(fast)))
    rest = sum(each.critical_us for each in compared.differences if each not in relevant[:_MOST_DIFFERENCES])
    others = len(compared.differences) - min(len(relevant), _MOST_DIFFERENCES)
    if others:
        lines.append(f"{others} other operations: {_signed(rest)}")
    lines.append("This is a correlation: it shows where the time is, not why.")
    lines.append(f"slowest: {', '.join(slow[:2])}; fast: {', '.join(fast[:2])}")
    return "\n".join(lines)


def _is_relevant(each: Difference, difference: float, slow: int, fast: int) -> bool:
    fails_more = each.slow.failed / slow - each.fast.failed / fast >= 0.5
    is_new = abs(each.slow.present / slow - each.fast.present / fast) >= 0.5
    return fails_more or is_new or abs(each.critical_us) >= _LEAST_SHARE * abs(difference)


def _difference_lines(each: Difference, difference: float, sizes: tuple[int, int]) -> list[str]:
    slow, fast = each.slow, each.fast
    share = f" ({each.critical_us / difference * 100:.0f} % of the difference)" if difference > 0 else ""
    change = f"{duration_text(fast.critical_us)} → {duration_text(slow.critical_us)}"
    parts = [f"own time on the critical path {change}, {_signed(each.critical_us)}{share}"]
    counts = (_per_span(fast), _per_span(slow))
    if min(fast.count, slow.count) > 0 and max(counts) > 1.2 * min(counts):
        parts.append(f"each {duration_text(counts[0])} → {duration_text(counts[1])}")
    if abs(slow.count - fast.count) >= 0.5:
        parts.append(f"spans per trace {fast.count:.3g} → {slow.count:.3g}")
    if slow.failed or fast.failed:
        parts.append(f"fails in {fast.failed} of {sizes[1]} → {slow.failed} of {sizes[0]} traces")
    if slow.present != sizes[0] or fast.present != sizes[1]:
        parts.append(f"occurs in {fast.present} of {sizes[1]} → {slow.present} of {sizes[0]} traces")
    lines = [f"- {name_text(each.service, each.operation)}: {'; '.join(parts)}"]
    for name, value, in_slow, in_fast in each.attributes:
        lines.append(
            f"  {name}={_line(value, _VALUE_CHARACTERS)} in {in_slow} of {slow.present} slow and {in_fast} of "
            f"{fast.present} fast"
        )
    return lines


def _per_span(average: Average) -> float:
    return average.total_us / average.count if average.count else 0.0


def _signed(microseconds: float) -> str:
    return f"{'+' if microseconds >= 0 else ''}{duration_text(microseconds)}"
