"""Rules for workloads that others change or hold back: a CronJob that restarts them, a Lease of a pod that is gone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.actors import commands
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_CHANGED: Final = ("Deployment", "StatefulSet", "DaemonSet")
_HOLDERS: Final = frozenset({"kube-node-lease"})
_IDENTITY: Final = re.compile(r"[_/]")


@Row(
    id="W14",
    title="CronJob changes the workload",
    severity="info",
    kinds=("CronJob", "Deployment", "StatefulSet", "DaemonSet"),
    reads=("spec.jobTemplate.spec.template.spec.containers[].command", "status.lastScheduleTime"),
    explanation="A CronJob restarts, scales or patches the workload with kubectl at fixed times. This is usually "
    "intended, and it explains new pods or a changed number of replicas.",
)
def changed_by_cron_job(state: ClusterState) -> Iterator[Fault]:
    for target, found in commands(state).items():
        workload = state.find(target) if target.kind in _CHANGED else None
        for each in found:
            cron_job = each.actor
            last = moment(cron_job.text("status", "lastScheduleTime"))
            if workload is None or cron_job.kind != "CronJob" or cron_job.boolean("spec", "suspend") or last is None:
                continue
            yield Fault(
                subject=workload.ref,
                culprit=cron_job.ref,
                cause=f"{cron_job.ref} runs `kubectl {each.verb}` for {workload.ref} (schedule "
                f"{cron_job.text('spec', 'schedule')}), the last time {duration(state.now - last)} ago",
                evidence=(
                    each.place,
                    evidence.field(cron_job, "spec", "schedule"),
                    evidence.field(cron_job, "status", "lastScheduleTime"),
                ),
                next_check=f"kubectl -n {cron_job.namespace} get jobs",
            )


@Row(
    id="W15",
    title="Lease is held by a pod that no longer exists",
    severity="warning",
    kinds=("Lease", "Pod"),
    reads=("spec.holderIdentity", "spec.renewTime", "spec.leaseDurationSeconds"),
    explanation="Processes that elect a leader wait until the Lease expires before one of them takes it over. A holder "
    "that ended without releasing a Lease with a long duration blocks all others. Delete the Lease, or wait until it "
    "expires.",
)
def held_by_the_dead(state: ClusterState) -> Iterator[Fault]:
    for lease in state.of("Lease"):
        holder = _IDENTITY.split(lease.text("spec", "holderIdentity"))[0]
        renewed, lasts = moment(lease.text("spec", "renewTime")), lease.integer("spec", "leaseDurationSeconds")
        if not holder or renewed is None or lease.namespace in _HOLDERS or not state.covers("Pod", lease.namespace):
            continue
        waits = state.now - renewed >= 2 * state.patience_seconds and renewed + lasts > state.now
        workload = _owner_of(state, lease, holder) if waits else None
        if workload is not None:
            yield Fault(
                subject=workload.ref,
                culprit=lease.ref,
                cause=f"{lease.ref} is held by {holder}, a pod that no longer exists, so no pod of {workload.ref} can "
                f"take it over for another {duration(renewed + lasts - state.now)}; it was renewed "
                f"{duration(state.now - renewed)} ago",
                evidence=(
                    evidence.field(lease, "spec", "holderIdentity"),
                    evidence.field(lease, "spec", "renewTime"),
                    evidence.field(lease, "spec", "leaseDurationSeconds"),
                ),
                next_check=f"kubectl -n {lease.namespace} get lease {lease.name} -o yaml",
                since=renewed,
            )


def _owner_of(state: ClusterState, lease: ClusterObject, holder: str) -> ClusterObject | None:
    """Return the workload with running pods to which the missing holder belonged, or None."""
    if state.get("Pod", lease.namespace, holder) is not None or state.get("Node", "", holder) is not None:
        return None
    for kind in ("Deployment", "StatefulSet"):
        for workload in state.of(kind, lease.namespace):
            if holder.startswith(f"{workload.name}-") and state.pods_of(workload):
                return workload
    return None
