"""Tells which runs of a job cannot be the reason of a server's trouble: they ended, or earlier ones did no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.schedules import interval_seconds
from holmes.kubernetes.fields import moment, text

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble

_SHORTLY_SECONDS: Final = 600.0


def has_harmless_runs(state: ClusterState, client: ClusterObject, trouble: Trouble) -> bool:
    """Return whether the last run of a Job or CronJob ended long ago, or an earlier run is in the healthy time."""
    if client.kind not in {"Job", "CronJob"}:
        return False
    jobs = state.owned_by(client, "Job") if client.kind == "CronJob" else (client,)
    newest = max(jobs, key=lambda each: each.created, default=None)
    ended = _end_of(newest) if newest is not None else None
    if ended is not None and trouble.group.last - ended > _SHORTLY_SECONDS:
        return True
    begun = _begin_of_log(state, trouble)
    healthy_until = trouble.group.first - _SHORTLY_SECONDS
    ends = [(each.created, _end_of(each)) for each in jobs]
    if not begun or any(end is not None and begun < start and end < healthy_until for start, end in ends):
        return bool(begun)
    succeeded = moment(client.text("status", "lastSuccessfulTime"))
    interval = interval_seconds(client, state.now) if client.kind == "CronJob" else None
    often = interval is not None and healthy_until - begun > interval
    return often or (succeeded is not None and begun < succeeded < healthy_until)


def _end_of(job: ClusterObject) -> float | None:
    """Return when a Job completed or failed, or None if it still runs."""
    failed = job.condition("Failed")
    at = text(failed, "lastTransitionTime") if text(failed, "status") == "True" else ""
    return moment(job.text("status", "completionTime") or at)


def _begin_of_log(state: ClusterState, trouble: Trouble) -> float:
    """Return the time of the first line of the log that reports the trouble, or 0."""
    story = dict(stories_of(state, trouble.workload))[trouble.key]
    return story.time_of(story.heads[0]) if story.heads else 0.0
