"""Chooses the time range and the step of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from holmes.observability.metrics.queries import LONGEST_RANGE_SECONDS, promql_seconds
from holmes.toolsets.times import age_or_time
from holmes.values.errors import ToolError

MOST_POINTS: Final = 1_000
_USUAL_POINTS: Final = 240
_STEPS: Final = (15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """A range in seconds since 1970, and the step between two samples."""

    start: float
    end: float
    step_seconds: float


def time_range(*, since: str, until: str, step: str, now: float) -> TimeRange:
    """Parse the arguments of a range. Raises `ToolError` for a range that is empty, too long or too fine."""
    end = moment("until", until, now)
    start = moment("since", since or "1h", end if not until else now)
    length = end - start
    if length <= 0:
        raise ToolError(f"since {since!r} is not before until {until or 'now'!r}; swap the times or widen the range")
    if length > LONGEST_RANGE_SECONDS:
        raise ToolError(f"the range is longer than {LONGEST_RANGE_SECONDS / 86_400:g} days; choose a shorter range")
    usual = next((each for each in _STEPS if length / each <= _USUAL_POINTS), _STEPS[-1])
    chosen = _step(step) if step else float(usual)
    if length / chosen > MOST_POINTS:
        raise ToolError(f"step {step!r} gives more than {MOST_POINTS:,} samples per series; use at least {usual}s")
    # Aligned times give the same samples again when the same range is read a moment later.
    first, last = (math.floor(each / chosen) * chosen for each in (start, end))
    return TimeRange(start=first, end=last, step_seconds=chosen)


def moment(name: str, written: str, now: float) -> float:
    """Parse an age or a time, in seconds since 1970. An empty string is `now`."""
    age, time = age_or_time(name, written)
    if time is not None:
        return time.timestamp()
    return now - (age.total_seconds() if age is not None else 0.0)


def _step(written: str) -> float:
    seconds = promql_seconds(written) or (float(written) if written.isascii() and written.isdigit() else 0.0)
    if seconds <= 0:
        raise ToolError(f"step {written!r} is not a valid duration; expected for example 30s or 5m")
    return seconds
