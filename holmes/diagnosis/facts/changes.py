"""What was changed shortly before something broke: rollouts, scaling, and edits of what a workload depends on.

Called for every incident. A change is a correlation in time: nothing here says that it is the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.dependents import autoscalers_of, services_selecting
from holmes.diagnosis.facts.rollouts import last_rollout, replica_sets_newest_first
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import at, children, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.kubernetes.moments import moment, written
from holmes.values.findings import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonObject

_MOST: Final = 5
_SAME_MOMENT_SECONDS: Final = 5.0
_TOLD_DIFFERENCES: Final = 4
_CONTROLLERS: Final = frozenset(
    {"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "k3s", "rke2"}
)


def recent_changes(
    state: ClusterState, about: ObjectRef, before: float | None, *, window_seconds: float = 3600
) -> tuple[Change, ...]:
    """The newest changes of an object and of what it depends on, newest first, at most 5.

    `before` is when the incident began, in seconds since the epoch (None: now); only changes of the `window_seconds`
    before it count. Of an object that does not exist nothing is known.
    """
    found = state.find(about)
    if found is None:
        return ()
    end = (state.now if before is None else before) + _SAME_MOMENT_SECONDS
    changes = [
        (at_seconds, change)
        for at_seconds, change in _all_changes(state, found)
        if end - window_seconds <= at_seconds <= end
    ]
    changes.sort(key=lambda entry: (-entry[0], entry[1].object, entry[1].what))
    return tuple(dict.fromkeys(change for _, change in changes))[:_MOST]


def _all_changes(state: ClusterState, found: ClusterObject) -> Iterator[tuple[float, Change]]:
    workload = state.workload_of(found)
    told = [*_rollouts(state, workload), *_scalings(state, workload)]
    yield from told
    moments = [at_seconds for at_seconds, _ in told]
    for at_seconds, change in _edits(workload):
        if not any(abs(at_seconds - other) <= _SAME_MOMENT_SECONDS for other in moments):
            yield at_seconds, change
    if workload.kind in WORKLOADS or workload.kind == "Pod":
        for each in _dependencies(state, workload):
            made_together = abs(each.created - workload.created) <= state.grace_seconds
            yield from (entry for entry in _edits(each) if not (made_together and abs(entry[0] - each.created) <= 1))


def _rollouts(state: ClusterState, workload: ClusterObject) -> Iterator[tuple[float, Change]]:
    """The newest ReplicaSet, with what differs from the one before."""
    rollout = last_rollout(state, workload) if workload.kind == "Deployment" else None
    if rollout is None:
        return
    newest, _, differences = rollout
    told = "; ".join(str(each) for each in differences[:_TOLD_DIFFERENCES])
    more = len(differences) - _TOLD_DIFFERENCES
    what = f"rollout of ReplicaSet {newest.name}: {told or 'nothing differs in the template'}"
    yield newest.created, _change(workload, what + (f"; and {more} more" if more > 0 else ""), newest.created)


def _scalings(state: ClusterState, workload: ClusterObject) -> Iterator[tuple[float, Change]]:
    """Scaling of the newest ReplicaSet after its rollout, and by an autoscaler."""
    if workload.kind == "Deployment":
        newest = next(iter(replica_sets_newest_first(state, workload)), None)
        rolled_out = (newest.created if newest else 0.0) + state.grace_seconds
        for event in state.events_of(workload, "ScalingReplicaSet"):
            if newest is not None and newest.name in event.message and event.last > rolled_out:
                yield event.last, _change(workload, f"scaled: {event.message}", event.last)
    if workload.kind == "StatefulSet" and workload.at("spec", "replicas") == 0:
        for event in state.events_of(workload, "SuccessfulDelete")[-1:]:
            yield event.last, _change(workload, f"scaled to zero: {event.message}", event.last)
    for autoscaler in autoscalers_of(state, workload):
        for event in state.events_of(autoscaler, "SuccessfulRescale"):
            yield event.last, _change(autoscaler, f"scaled {workload.name}: {event.message}", event.last)


def _edits(each: ClusterObject) -> Iterator[tuple[float, Change]]:
    """Its creation, and the last time that each of its managers other than a controller wrote it."""
    yield each.created, _change(each, "was created", each.created)
    for entry in each.children("metadata", "managedFields"):
        at_seconds = moment(text(entry, "time"))
        manager = text(entry, "manager")
        if at_seconds is None or manager in _CONTROLLERS or text(entry, "subresource") == "status":
            continue
        if at_seconds - each.created > 1:
            verb = "scaled" if text(entry, "subresource") == "scale" else "changed"
            yield at_seconds, _change(each, f"was {verb} by {manager or 'somebody'}", at_seconds)


def _dependencies(state: ClusterState, workload: ClusterObject) -> Iterator[ClusterObject]:
    """The ConfigMaps, Secrets, ServiceAccount and Services of a workload, as far as they exist."""
    template = template_of(workload)
    for kind, name in sorted(set(_names_of(template.spec))):
        found = state.get(kind, workload.namespace, name)
        if found is not None:
            yield found
    yield from services_selecting(state, workload.namespace, template.labels)


def _names_of(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Kind and name of what a pod's spec refers to."""
    yield "ServiceAccount", text(spec, "serviceAccountName") or "default"
    for volume in children(spec, "volumes"):
        sources = (volume, *children(volume, "projected", "sources"))
        for source in sources:
            yield "ConfigMap", text(source, "configMap", "name")
            yield "Secret", text(source, "secret", "secretName") or text(source, "secret", "name")
        yield "PersistentVolumeClaim", text(volume, "persistentVolumeClaim", "claimName")
    for container in (*children(spec, "initContainers"), *children(spec, "containers")):
        for source in children(container, "envFrom"):
            yield "ConfigMap", text(source, "configMapRef", "name")
            yield "Secret", text(source, "secretRef", "name")
        for variable in children(container, "env"):
            yield "ConfigMap", text(at(variable, "valueFrom"), "configMapKeyRef", "name")
            yield "Secret", text(at(variable, "valueFrom"), "secretKeyRef", "name")


def _change(each: ClusterObject, what: str, at_seconds: float) -> Change:
    return Change(object=each.ref, what=what, at=written(at_seconds))
