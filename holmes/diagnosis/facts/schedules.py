"""Computes the runs of a CronJob from its schedule and time zone, and the longest time between two runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject

_HOUR: Final = 3_600
_DAY: Final = 24 * _HOUR
_MOST_DIGITS: Final = 4
_MACROS: Final = {"@hourly": _HOUR, "@daily": _DAY, "@midnight": _DAY, "@weekly": 7 * _DAY, "@monthly": 31 * _DAY}
_ANY: Final = frozenset({"*", "?", "*/1"})


def interval_seconds(cron: ClusterObject, now: float) -> float | None:
    """Return the time between the next two runs, or None if there are none."""
    first = next_run(cron, now)
    second = next_run(cron, first) if first is not None else None
    return second - first if first is not None and second is not None else None


def next_run(cron: ClusterObject, now: float) -> float | None:
    """Return the time of the next run in seconds since the epoch.

    Returns None if the CronJob is suspended, or if its schedule or time zone is not valid.
    """
    from croniter import croniter  # imported late because only questions about the next run need it

    schedule, zone = cron.text("spec", "schedule"), cron.text("spec", "timeZone") or "UTC"
    if cron.boolean("spec", "suspend") or not croniter.is_valid(schedule):
        return None
    try:
        here = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone))
    except (KeyError, ValueError, OSError):  # an unknown zone, or one that is not a valid name
        return None
    found: float = croniter(schedule, here).get_next(float)
    return found


def longest_rest_seconds(schedule: str) -> int | None:
    """Return the maximum time between consecutive runs of `schedule` in seconds, or None for a complex schedule."""
    written = schedule.strip().lower()
    if written in _MACROS:
        return _MACROS[written]
    fields = [field for field in written.split() if not field.startswith(("tz=", "cron_tz="))]
    if len(fields) != 5:
        return None
    return _rest_of(*fields)


def _rest_of(minute: str, hour: str, day: str, month: str, weekday: str) -> int | None:
    """Return the maximum interval in seconds, or None if the months are restricted.

    The restricted field with the largest unit determines the interval.
    """
    if month not in _ANY:
        return None
    if day not in _ANY:
        return 62 * _DAY
    if weekday not in _ANY:
        return 7 * _DAY
    if hour not in _ANY:
        return _step(hour, 24, _HOUR) or _DAY
    return 60 if minute in _ANY else _step(minute, 60, 60) or _HOUR


def _step(field: str, units: int, seconds: int) -> int | None:
    """Return the interval of a step such as `*/15` in seconds, or None if the field is not a step."""
    base, slash, step = field.partition("/")
    if base not in _ANY or not slash or not step.isascii() or not step.isdigit() or len(step) > _MOST_DIGITS:
        return None
    if not 0 < int(step) <= units:
        return None
    return int(step) * seconds
