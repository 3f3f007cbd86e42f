"""Describes the state of an object in a few words, as `kubectl get` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.kubernetes.fields import boolean, children, integer, text

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject


def status_of(each: ClusterObject) -> str:
    """Return a short status, for example `2/3 ready` or `Running, ready, 4 restarts`."""
    status = each.child("status")
    if each.kind == "Pod":
        restarts = sum(integer(one, "restartCount") for one in children(status, "containerStatuses"))
        waiting = [text(one, "state", "waiting", "reason") for one in children(status, "containerStatuses")]
        reasons = [reason for reason in waiting if reason] or [text(status, "reason") or text(status, "phase")]
        containers = children(status, "containerStatuses")
        ready = bool(containers) and all(boolean(one, "ready") for one in containers)
        return f"{', '.join(reasons)}, {'ready' if ready else 'not ready'}, {restarts} restarts"
    if each.kind in {"Deployment", "ReplicaSet", "StatefulSet"}:
        return f"{integer(status, 'readyReplicas')}/{each.integer('spec', 'replicas')} ready"
    if each.kind == "Node":
        cordoned = ", cordoned" if each.boolean("spec", "unschedulable") else ""
        return f"{'Ready' if text(each.condition('Ready'), 'status') == 'True' else 'not ready'}{cordoned}"
    if each.kind == "DaemonSet":
        return f"{integer(status, 'numberReady')}/{integer(status, 'desiredNumberScheduled')} ready"
    bad = [text(one, "type") for one in children(status, "conditions") if text(one, "status") == "False"]
    return text(status, "phase") or (f"conditions with status False: {', '.join(bad)}" if bad else "present")
