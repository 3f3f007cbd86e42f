"""Parses the times that a model writes: ages and points in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from holmes.values.durations import UNIT_SECONDS
from holmes.values.errors import ToolError
from holmes.values.expressions import expression

_DURATION_PART: Final = expression(
    r"(\d+(?:\.\d+)?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])\s*"
)


def age_or_time(name: str, written: str) -> tuple[timedelta | None, datetime | None]:
    """Parse an age (`10m`, `1h30m`, plain seconds) or a time (RFC 3339, UTC if it has no time zone).

    Both returned values are None for an empty string. Raises `ToolError` for other text.
    """
    if not written:
        return None, None
    age = duration(written)
    if age is not None:
        return age, None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise ToolError(
            f"{name} {written!r} is neither a duration such as '10m' nor a time such as '2025-01-31T10:00:00Z'"
        ) from error
    return None, moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def duration(written: str) -> timedelta | None:
    """Parse `1h30m`, `15 minutes`, `2d ago` or `90` (seconds). Returns None for any other string."""
    plain = written.strip().lower().removesuffix("ago").strip()
    if plain.isascii() and plain.isdigit() and len(plain) < 10:
        return timedelta(seconds=int(plain))
    seconds, position = 0.0, 0
    for part in _DURATION_PART.finditer(plain):
        if part.start() != position:
            return None
        seconds += float(part[1]) * UNIT_SECONDS[part[2]]
        position = part.end()
    complete = position == len(plain) and position > 0
    return timedelta(seconds=seconds) if complete and seconds < 1e9 else None
