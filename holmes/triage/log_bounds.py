"""Selects log lines by bounds on a number in them: "took above 35 ms"."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.log_lines import LineFilter
from holmes.triage.log_values import chosen_series, milliseconds_of, series_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.log_values import Series

_MEASURED: Final = expression(
    r"(?<![\w.:/=-])(?![1-5]\d\ds)\d+(?:[.,]\d+)? ?"
    r"(?:ms|us|s|milli\w*|micro\w*|mikro\w*|se[ckg]\w*|[kmg]i?b|bytes|%)(?![\w-])"
)
"""A number with a unit, which limits what the question asks for."""
_MORE_THAN: Final = expression(
    r"\b(?:more|fewer|less|as many|mehr|weniger|mas|menos|plus|moins)\b[^?,;.]* (?:than|as|als|wie|que)"
    r" (?:yesterday|before|usual|last|normal|the|gestern|sonst|vorher|ayer|antes|hier|avant)\b"
)
"""A comparison with lines of another time."""


def bounds_of_lines(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield the bounds on a number in the lines: "took above 35 ms". A bound on another number stays in the ledger."""
    every = series_of(found)
    for bound in asked.question.comparisons:
        wanted = milliseconds_of(bound.of)
        series = _limited(asked, every, timed=wanted is not None)
        if series is None or (wanted is not None and series.milliseconds is None):
            continue  # a bound of two seconds on a number without a unit can mean anything
        scale = wanted / series.milliseconds if wanted is not None and series.milliseconds is not None else 1.0
        limit = replace(bound, number=bound.number * scale)
        lines = {line for line, value in zip(series.lines, series.values, strict=True) if limit.holds(value)}
        asked.ledger.take("bound", str(bound))
        yield LineFilter(told=f"with `{series.key}` {bound}", holds=lines.__contains__)


def _limited(asked: Asked, every: Sequence[Series], *, timed: bool) -> Series | None:
    """Return the numbers that a bound limits: those that the question names, or the only durations of the lines."""
    durations = [each for each in every if each.milliseconds is not None and each.is_time] if timed else []
    chosen = chosen_series(asked.question, durations or every)
    return durations[0] if chosen is None and len(durations) == 1 else chosen


def bounds_left(asked: Asked, filters: Sequence[LineFilter]) -> tuple[str, ...]:
    """Return the bounds of the question that are in no filter, also those that were not understood as such."""
    compared = asked.question.comparisons
    left = [str(each) for each in compared if not any(one.told.endswith(f"` {each}") for one in filters)]
    more = _MORE_THAN.search(asked.question.text)
    left += [more[0]] if more is not None else []
    period = asked.question.period.text if asked.question.period is not None else ""
    for match in _MEASURED.finditer(asked.question.spoken):
        number = _MEASURED.sub(lambda each: re.split(r" |[a-z%]", each[0])[0], match[0])
        known = any(f"{each.number:g}" == f"{float(number.replace(',', '.')):g}" for each in compared)
        if not known and match[0] not in period:
            left.append(match[0])
    return tuple(left)
