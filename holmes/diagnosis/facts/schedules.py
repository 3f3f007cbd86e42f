"""Computes the runs of a CronJob from its schedule and time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject


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
