"""The states that questions name, for example `pending` or `cordoned`, as tests of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.fields import child, integer, moment, text
from holmes.kubernetes.kinds import SCALED

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject


_STOPS: Final = (
    (("Node",), "unschedulable", True, "is cordoned, so no new pods are scheduled on it"),
    (("CronJob", "Job"), "suspend", True, "is suspended, so it starts no pods"),
    (("Deployment",), "paused", True, "is paused, so changes to its template are not rolled out"),
    (("Deployment", "StatefulSet", "ReplicaSet"), "replicas", 0, "is scaled to zero, so it has no pods"),
)
"""Fields that stop an object on purpose: kinds, field, value and effect."""


def state_test(kind: str, name: str) -> Callable[[ClusterObject], bool] | None:
    """Return the test of a state, or None if objects of the kind do not have this state."""
    return _STATES.get((kind, name)) or _custom_test(kind, name)


def _custom_test(kind: str, name: str) -> Callable[[ClusterObject], bool] | None:
    """Return the test of a custom kind for `ready` or `not_ready`, based on its condition Ready, or None."""
    ready = _condition("Ready")
    tests = {"ready": ready, "not_ready": lambda each: not ready(each)}
    return tests.get(name) if "." in kind else None


def restarts(pod: ClusterObject) -> int:
    """Return the number of restarts of a pod as kubectl counts them.

    Sidecars count. Other init containers count until all of them have succeeded.
    """
    first = [one for one in containers_of(pod) if one.kind == "init"]
    starts = any(not one.sidecar and not _succeeded(one) for one in first)
    own = sum(integer(one, "restartCount") for one in pod.children("status", "containerStatuses"))
    return own + sum(one.restarts for one in first if one.sidecar or starts)


def _succeeded(container: Container) -> bool:
    return bool(container.terminated) and not integer(container.terminated, "exitCode")


def _waits(*reasons: str) -> Callable[[ClusterObject], bool]:
    return lambda pod: any(container.waiting.get("reason") in reasons for container in containers_of(pod))


def _phase(*phases: str) -> Callable[[ClusterObject], bool]:
    return lambda each: each.text("status", "phase") in phases


def _condition(kind: str) -> Callable[[ClusterObject], bool]:
    return lambda each: text(each.condition(kind), "status") == "True"


def wanted_replicas(each: ClusterObject) -> int:
    """Return the number of replicas that a workload wants. It is 1 if the spec states none."""
    replicas = each.at("spec", "replicas")
    return replicas if isinstance(replicas, int) else 1


def _scaled_ready(each: ClusterObject) -> bool:
    return each.integer("status", "readyReplicas") >= wanted_replicas(each)


def _runs(each: ClusterObject) -> bool:
    return each.integer("status", "readyReplicas") > 0


def _oom(pod: ClusterObject) -> bool:
    return any(
        "OOMKilled" in (text(container.last_terminated, "reason"), text(container.terminated, "reason"))
        for container in containers_of(pod)
    )


def stop_of(each: ClusterObject) -> tuple[str, str]:
    """Return the field that stops an object on purpose and its effect, or two empty strings."""
    for kinds, path, value, effect in _STOPS:
        if each.kind in kinds and each.at("spec", path) == value:
            return f"spec.{path}: {str(value).lower()}", effect
    return "", ""


def is_ready(each: ClusterObject) -> bool:
    """Return whether an object has everything that it wants. Objects without such a state are ready."""
    if each.group:
        return text(each.condition("Ready"), "status") != "False"
    test = state_test(each.kind, "ready")
    if each.kind == "Pod" and not lives(each):
        return each.text("status", "phase") == "Succeeded"
    return test is None or test(each)


def crashed(pod: ClusterObject) -> bool:
    """Return whether a container of a pod fails again and again, or ended with an error the last time."""
    ends = (one.last_terminated or one.terminated for one in containers_of(pod))
    return _waits("CrashLoopBackOff", "Error", "RunContainerError")(pod) or any(
        integer(each, "exitCode") for each in ends
    )


def last_ends(each: ClusterObject) -> tuple[float, ...]:
    """Return the times at which the previous instances of a pod's containers ended, or at which a Job ended."""
    if each.kind == "Job":
        failed = each.condition("Failed")
        at = text(failed, "lastTransitionTime") if text(failed, "status") == "True" else ""
        return tuple(filter(None, (moment(at or each.text("status", "completionTime")),)))
    ends = (end for one in containers_of(each) for end in (one.last_terminated, one.terminated))
    return tuple(filter(None, (moment(text(end, "finishedAt")) for end in ends)))


def last_restarts(pod: ClusterObject) -> tuple[float, ...]:
    """Return the times at which the present and the previous instances of a pod's containers started, if restarted."""
    found = []
    for one in containers_of(pod):
        instances = (child(one.status, "state", "running"), one.terminated, one.last_terminated)
        starts = sorted(filter(None, (moment(text(each, "startedAt")) for each in instances)), reverse=True)
        found += starts[: one.restarts]
    return tuple(found)


def lives(pod: ClusterObject) -> bool:
    """Return whether a pod has not finished."""
    return pod.text("status", "phase") not in ("Succeeded", "Failed")


_STATES: Final[dict[tuple[str, str], Callable[[ClusterObject], bool]]] = {
    ("Pod", "ready"): pod_ready,
    ("Pod", "not_ready"): lambda pod: not pod_ready(pod) and pod.text("status", "phase") != "Succeeded",
    ("Pod", "running"): _phase("Running"),
    ("Pod", "pending"): _phase("Pending"),
    ("Pod", "failed"): _phase("Failed"),
    ("Pod", "completed"): _phase("Succeeded"),
    ("Pod", "crashing"): _waits("CrashLoopBackOff", "Error", "RunContainerError"),
    ("Pod", "restarting"): lambda pod: restarts(pod) > 0,
    ("Pod", "never_restarted"): lambda pod: restarts(pod) == 0 and bool(pod.children("status", "containerStatuses")),
    ("Pod", "failing"): lambda pod: not pod_ready(pod) and pod.text("status", "phase") != "Succeeded",
    ("Job", "failing"): _condition("Failed"),
    ("Pod", "evicted"): lambda pod: pod.text("status", "reason") == "Evicted",
    ("Pod", "terminating"): lambda pod: pod.deleted is not None,
    ("Pod", "oom"): _oom,
    ("Pod", "image_pull"): _waits("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"),
    **{(kind, "unowned"): lambda each: each.owner is None for kind in ("Pod", "ReplicaSet", "Job")},
    **{(kind, "ready"): _scaled_ready for kind in SCALED},
    **{(kind, "not_ready"): lambda each: not _scaled_ready(each) for kind in SCALED},
    **{(kind, "failing"): lambda each: not _scaled_ready(each) for kind in SCALED},
    **{(kind, "running"): _runs for kind in SCALED},
    **{(kind, "zero"): lambda each: wanted_replicas(each) == 0 for kind in SCALED},
    ("Deployment", "paused"): lambda each: each.boolean("spec", "paused"),
    ("DaemonSet", "ready"): lambda each: (
        each.integer("status", "numberReady") >= each.integer("status", "desiredNumberScheduled")
    ),
    ("DaemonSet", "not_ready"): lambda each: (
        each.integer("status", "numberReady") < each.integer("status", "desiredNumberScheduled")
    ),
    ("Node", "ready"): _condition("Ready"),
    ("Node", "not_ready"): lambda node: not _condition("Ready")(node),
    ("Node", "cordoned"): lambda node: node.boolean("spec", "unschedulable"),
    ("Job", "failed"): _condition("Failed"),
    ("Job", "completed"): _condition("Complete"),
    ("Job", "running"): lambda job: job.integer("status", "active") > 0,
    ("Job", "suspended"): lambda job: job.boolean("spec", "suspend"),
    ("CronJob", "suspended"): lambda job: job.boolean("spec", "suspend"),
    ("CronJob", "paused"): lambda job: job.boolean("spec", "suspend"),
    ("PersistentVolumeClaim", "bound"): _phase("Bound"),
    ("PersistentVolumeClaim", "unbound"): lambda claim: claim.text("status", "phase") != "Bound",
    ("PersistentVolumeClaim", "pending"): _phase("Pending"),
    ("PersistentVolume", "bound"): _phase("Bound"),
    ("PersistentVolume", "unbound"): lambda volume: volume.text("status", "phase") != "Bound",
    ("Service", "headless"): lambda service: service.text("spec", "clusterIP") == "None",
    ("Namespace", "terminating"): _phase("Terminating"),
}
