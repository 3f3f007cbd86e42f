"""Tells whether a Job completed, and whether a later run made up for a failed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.kubernetes.fields import at, child, integer, text

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState


def job_recovered(pod: ClusterObject, state: ClusterState) -> bool:
    """Return whether the Job of a failed pod, or a later Job of the same CronJob, has since succeeded."""
    job = state.by_uid(pod.owner.uid) if pod.owner is not None else None
    if job is None or job.kind != "Job":
        return False
    if _complete(job):
        return True
    parent = state.by_uid(job.owner.uid) if job.owner is not None else None
    later = state.owned_by(parent, "Job") if parent is not None else ()
    return any(each.created > job.created and _complete(each) for each in later)


def _complete(job: ClusterObject) -> bool:
    done = text(job.condition("Complete"), "status") == "True" or text(job.condition("SuccessCriteriaMet"), "status")
    wanted = at(job.body, "spec", "completions")
    enough = isinstance(wanted, int) and integer(child(job.body, "status"), "succeeded") >= wanted > 0
    return bool(done) or enough
