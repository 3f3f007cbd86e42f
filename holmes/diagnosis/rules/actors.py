"""Rules for workloads that others change or hold back: a CronJob that restarts them, a Lease of a pod that is gone."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.actors import commands, deployment_named, last_write, who_changed
from holmes.diagnosis.facts.changes import replica_sets_newest_first, template_differences
from holmes.diagnosis.facts.edges import consumer_logs, newest_lines
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import duration, moment
from holmes.values.expressions import expression
from holmes.values.pod_names import is_pod_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_OFTEN_SECONDS: Final = 1_800.0
_LEAST_ROLLOUTS: Final = 3
_CHANGED: Final = ("Deployment", "StatefulSet", "DaemonSet")
_HOLDERS: Final = frozenset({"kube-node-lease"})
_OF_CONTENT: Final = expression(r"(?i)checksum|hash|digest|version")
"""Annotations that follow a changed configuration, so that people may have made each rollout."""
_IDENTITY: Final = expression(r"[_/]")


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
    id="W17",
    title="Workload is rolled out again and again",
    severity="warning",
    kinds=("Deployment", "ReplicaSet"),
    reads=(
        "ReplicaSet metadata.creationTimestamp",
        "ReplicaSet spec.template",
        "metadata.managedFields",
        "logs of others",
    ),
    explanation="A Deployment got at least three new ReplicaSets within half an hour, and they differ only in "
    "annotations. A program restarts it again and again, for example a watcher of its configuration. The culprit is "
    "this program if its log or its name in managedFields shows it.",
)
def restarted_again_and_again(state: ClusterState) -> Iterator[Fault]:
    for deployment in state.of("Deployment"):
        every, grown = replica_sets_newest_first(state, deployment), deployment.created + state.patience_seconds
        sets = [each for each in every if state.now - each.created <= _OFTEN_SECONDS and each.created > grown]
        if len(sets) < _LEAST_ROLLOUTS or deployment.deleted is not None:
            continue
        changes = [
            difference
            for newer, older in pairwise(sets)
            for difference in template_differences(older.child("spec", "template"), newer.child("spec", "template"))
        ]
        if any(".annotations." not in each.path for each in changes):
            continue
        newest = sets[0]
        actor = who_changed(state, deployment.ref, newest.created, ("rollout", "patch", "set", "annotate"))
        _, manager = last_write(deployment, "f:template")
        named = deployment_named(state, manager, deployment) if manager and actor is None else None
        by = actor.ref if actor is not None else named.ref if named is not None else None
        if actor is None and manager.startswith("kubectl"):
            continue  # a person restarts what is in trouble already, so the restarts are not its cause
        if by is None and any(_OF_CONTENT.search(each.path) for each in changes):
            continue
        words = actor.words if actor is not None else f"{manager} writes its template" if manager else ""
        yield Fault(
            subject=deployment.ref,
            culprit=by,
            cause=f"{deployment.ref} was rolled out {len(sets)} times within {duration(state.now - sets[-1].created)}, "
            f"although only annotations of its template changed{f'; {words}' if words else ''}",
            evidence=(
                evidence.value(newest, "metadata.creationTimestamp", newest.text("metadata", "creationTimestamp")),
                *(actor.evidence if actor is not None else ()),
            ),
            next_check=f"kubectl -n {deployment.namespace} rollout history deployment/{deployment.name}",
            since=sets[-1].created,
        )


@Row(
    id="W15",
    title="Lease is held by a pod that no longer exists",
    severity="warning",
    kinds=("Lease", "Pod"),
    reads=("spec.holderIdentity", "spec.renewTime", "spec.leaseDurationSeconds", "logs of the workload"),
    explanation="Processes that elect a leader wait until the Lease expires before one of them takes it over. A holder "
    "that ended without releasing a Lease with a long duration blocks all others. Delete the Lease, or wait until it "
    "expires. A program can wait longer than that, and its log says so.",
)
def held_by_the_dead(state: ClusterState) -> Iterator[Fault]:
    for lease in state.of("Lease"):
        holder = _IDENTITY.split(lease.text("spec", "holderIdentity"))[0]
        renewed, lasts = moment(lease.text("spec", "renewTime")), lease.integer("spec", "leaseDurationSeconds")
        if not holder or renewed is None or lease.namespace in _HOLDERS or not state.covers("Pod", lease.namespace):
            continue
        waits = state.now - renewed >= 2 * state.patience_seconds
        workload = _owner_of(state, lease, holder) if waits else None
        told = _waiting(state, workload, (lease.name, holder)) if workload is not None else ()
        left = renewed + lasts - state.now
        if workload is not None and (left > 0 or told):
            until = f"for another {duration(left)}" if left > 0 else "although it has expired"
            yield Fault(
                subject=workload.ref,
                culprit=lease.ref,
                cause=f"{lease.ref} is held by {holder}, a pod that no longer exists, so no pod of {workload.ref} "
                f"takes it over {until}; it was renewed {duration(state.now - renewed)} ago",
                evidence=(
                    evidence.field(lease, "spec", "holderIdentity"),
                    evidence.field(lease, "spec", "renewTime"),
                    evidence.field(lease, "spec", "leaseDurationSeconds"),
                    *told,
                ),
                logs=consumer_logs(state, [workload]),
                next_check=f"kubectl -n {lease.namespace} get lease {lease.name} -o yaml",
                since=renewed,
            )


def _waiting(state: ClusterState, workload: ClusterObject, names: tuple[str, str]) -> tuple[Evidence, ...]:
    """Return the newest log line of a workload that names a Lease and its holder. The program keeps its own time."""
    for key in consumer_logs(state, [workload]):
        for line in newest_lines(state.timed_logs.get(key, ""), state.now):
            pod = state.find(key.pod)
            if pod is not None and all(name in line for name in names):
                return (evidence.log_line(pod, key.container, line.strip(), previous=key.previous),)
    return ()


def _owner_of(state: ClusterState, lease: ClusterObject, holder: str) -> ClusterObject | None:
    """Return the workload with running pods to which the missing holder belonged, or None."""
    if state.get("Pod", lease.namespace, holder) is not None or state.get("Node", "", holder) is not None:
        return None
    for kind in ("Deployment", "StatefulSet"):
        for workload in state.of(kind, lease.namespace):
            if is_pod_name_of(holder, kind, workload.name) and state.pods_of(workload):
                return workload
    return None
