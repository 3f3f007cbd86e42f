"""How long a CronJob may rest between two runs at the most, read from its schedule. Called by rules about CronJobs.

A bound and not a calendar: it is never too short, and unknown for everything that is not plain.
"""

from __future__ import annotations

from typing import Final

_HOUR: Final = 3_600
_DAY: Final = 24 * _HOUR
_MACROS: Final = {"@hourly": _HOUR, "@daily": _DAY, "@midnight": _DAY, "@weekly": 7 * _DAY, "@monthly": 31 * _DAY}
_ANY: Final = frozenset({"*", "?", "*/1"})


def longest_rest_seconds(schedule: str) -> int | None:
    """The longest time between two runs of `schedule` in seconds, rounded up generously; None when it is not plain."""
    written = schedule.strip().lower()
    if written in _MACROS:
        return _MACROS[written]
    fields = [field for field in written.split() if not field.startswith(("tz=", "cron_tz="))]
    if len(fields) != 5:
        return None
    return _rest_of(*fields)


def _rest_of(minute: str, hour: str, day: str, month: str, weekday: str) -> int | None:
    """The widest field that is restricted decides."""
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
    """`*/15` of 60 minutes: the step, which is longer at no place than at its end."""
    base, slash, step = field.partition("/")
    if base not in _ANY or not slash or not step.isascii() or not step.isdigit() or not 0 < int(step) <= units:
        return None
    return int(step) * seconds
