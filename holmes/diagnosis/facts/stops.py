"""Tells why a workload that makes something for others no longer does: it is suspended, at zero, or its Job failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.diagnosis.facts.actors import last_write
from holmes.diagnosis.facts.evidence import field, value
from holmes.kubernetes.fields import moment, text, written

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a producer does not work. `because` contains the objects whose own faults explain it."""

    words: str
    proof: Evidence
    since: float | None = None
    because: tuple[ObjectRef, ...] = ()


def stop_of_producer(state: ClusterState, workload: ClusterObject) -> Stop | None:
    """Return why a workload does not produce anything, or None if it may work."""
    if workload.kind == "CronJob" and workload.boolean("spec", "suspend"):
        at, manager = last_write(workload, "f:suspend")
        when = f" since {manager} changed it at {written(at)}" if at > workload.created + 1 else ""
        return Stop(words=f"is suspended{when}", proof=field(workload, "spec", "suspend"), since=at or None)
    if workload.kind in ("Deployment", "StatefulSet") and workload.at("spec", "replicas") == 0:
        return Stop(words="is scaled to zero", proof=field(workload, "spec", "replicas"))
    jobs = state.owned_by(workload, "Job") if workload.kind == "CronJob" else (workload,)
    ended = [job for job in jobs if job.kind == "Job" and (_is(job, "Failed") or _is(job, "Complete"))]
    newest = max(ended, key=lambda job: job.created, default=None)
    if newest is None or not _is(newest, "Failed"):
        return None
    proof = value(newest, "status.conditions[type=Failed].reason", text(newest.condition("Failed"), "reason"))
    since = moment(text(newest.condition("Failed"), "lastTransitionTime"))
    return Stop(words=f"fails ({newest.ref})", proof=proof, since=since, because=(newest.ref,))


def _is(job: ClusterObject, condition: str) -> bool:
    return text(job.condition(condition), "status") == "True"
