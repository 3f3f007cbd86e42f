"""Tells whether a pod is ready, and describes the state of an object in a few words, as `kubectl get` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, integer, text

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject

_STATES: Final = ("phase", "state", "health", "currentState")


def pod_ready(pod: ClusterObject) -> bool:
    """Return whether Services send requests to the pod: its condition Ready is True."""
    return text(pod.condition("Ready"), "status") == "True"


def status_of(each: ClusterObject) -> str:
    """Return a short status, for example `2/3 ready` or `Running, ready, 4 restarts`."""
    status = each.child("status")
    if each.kind == "Pod":
        return _status_of_pod(each)
    if each.kind in {"Deployment", "ReplicaSet", "StatefulSet"}:
        count = each.integer("spec", "replicas")
        stopped = ", scaled to zero" if not count and each.kind != "ReplicaSet" else ""
        return f"{integer(status, 'readyReplicas')}/{count} ready{stopped}"
    if each.kind == "Node":
        cordoned = ", cordoned" if each.boolean("spec", "unschedulable") else ""
        return f"{'Ready' if text(each.condition('Ready'), 'status') == 'True' else 'not ready'}{cordoned}"
    if each.kind == "DaemonSet":
        return f"{integer(status, 'numberReady')}/{integer(status, 'desiredNumberScheduled')} ready"
    phase = next((found for key in _STATES if (found := text(status, key))), "")
    met = {text(one, "type"): text(one, "status") for one in children(status, "conditions")}
    if "True" in (met.get("Ready"), met.get("Complete"), met.get("Available")):
        return phase or next(kind for kind in ("Ready", "Complete", "Available") if met.get(kind) == "True")
    bad = [kind for kind, found in met.items() if found == "False"]
    return phase or (f"conditions with status False: {', '.join(bad)}" if bad else "present")


def _status_of_pod(pod: ClusterObject) -> str:
    """Return the status of a pod with the reason why a container waits or ended, not its phase."""
    containers = pod.children("status", "containerStatuses")
    why, phase = pod.text("status", "reason"), pod.text("status", "phase")
    reasons = [text(one, "state", "waiting", "reason") for one in containers]
    if not any(reasons) and not why:  # a container that ended well is not the status of a pod in which others run
        runs = any(child(one, "state", "running") for one in containers)
        ends = (text(one, "state", "terminated", "reason") for one in containers)
        reasons = [end for end in ends if end != "Completed" or not runs]
    told = ", ".join(dict.fromkeys(filter(None, reasons))) or why or phase
    ready = bool(containers) and all(boolean(one, "ready") for one in containers)
    state = "" if phase == "Succeeded" else ", ready" if ready else ", not ready"
    return f"{told}{state}, {sum(integer(one, 'restartCount') for one in containers)} restarts"
