"""Finds the recent changes to an object and its dependencies: rollouts, scaling and edits."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.evidence import has_secret_name, shown
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import at, child, children, matches_map, moment, text, text_map, written
from holmes.kubernetes.kinds import WORKLOADS
from holmes.values.findings import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonObject, JsonValue


Sort: TypeAlias = Literal["creation", "rollout", "scaling", "edit"]
ABSENT: Final = "(not set)"
_REVISION: Final = "deployment.kubernetes.io/revision"
_UNTOLD_LABELS: Final = frozenset({"pod-template-hash", "controller-revision-hash", "controller-uid"})
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
_NOUNS: Final = {
    "containers": "container",
    "initContainers": "init container",
    "volumes": "volume",
    "volumeMounts": "mount",
    "ports": "port",
}
_MOST_DIFFERENCES: Final = 20
_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that differs between two pod templates.

    `path` is the field in the workload, with list positions from the newer template, for example
    `spec.template.spec.containers[0].image`. `name` describes the field, for example `container web image`. `old` or
    `new` is `ABSENT` if the respective template does not contain the field.
    """

    path: str
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        """Format the difference, for example `container web image registry.shop.example/web:1.0 → …/web:1.1`."""
        return f"{self.name} {self.old} → {self.new}"


def template_differences(old: JsonObject, new: JsonObject) -> tuple[Difference, ...]:
    """Return at most 20 differences between two pod templates (`spec.template`), images first.

    Containers, variables and volumes are matched by name, mounts by path and ports by number. Therefore, a moved entry
    is not reported as a difference.
    """
    found = [*_of_metadata(old, new), *_of_maps(child(old, "spec"), child(new, "spec"), "spec.template.spec", "")]
    found.sort(key=lambda difference: not difference.path.endswith(".image"))
    return tuple(found[:_MOST_DIFFERENCES])


def replica_sets_newest_first(state: ClusterState, deployment: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the ReplicaSets of a Deployment, the highest revision first."""
    owned = state.owned_by(deployment, "ReplicaSet")
    return tuple(sorted(owned, key=lambda each: (-revision(each), -each.created, each.name)))


def revision(replica_set: ClusterObject) -> int:
    """Return the revision number of a ReplicaSet, or 0 if it is unknown."""
    written = replica_set.annotations.get(_REVISION, "")
    return int(written) if written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS else 0


def last_rollout(
    state: ClusterState, deployment: ClusterObject
) -> tuple[ClusterObject, ClusterObject, tuple[Difference, ...]] | None:
    """Return the newest ReplicaSet, its predecessor and their differences.

    Returns None if fewer than two ReplicaSets exist.
    """
    newest_first = replica_sets_newest_first(state, deployment)
    if len(newest_first) < 2:
        return None
    newest, before = newest_first[:2]
    return newest, before, template_differences(before.child("spec", "template"), newest.child("spec", "template"))


def _of_metadata(old: JsonObject, new: JsonObject) -> Iterator[Difference]:
    for part, noun in (("labels", "label"), ("annotations", "annotation")):
        before, after = text_map(old, "metadata", part), text_map(new, "metadata", part)
        for key in sorted((before.keys() | after.keys()) - _UNTOLD_LABELS):
            if before.get(key) != after.get(key):
                path = f"spec.template.metadata.{part}.{key}"
                yield _difference(path, f"{noun} {key}", before.get(key), after.get(key))


def _of_maps(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], path: str, name: str) -> Iterator[Difference]:
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        where = f"{path}.{key}"
        if key in _KEYS and _is_list(before) and _is_list(after):
            yield from _of_lists(old, new, key, (path, name))
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from _of_maps(before, after, where, f"{name} {key}")
        else:
            yield _difference(where, f"{name} {key}", before, after)


def _of_lists(
    old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], key: str, where: tuple[str, str]
) -> Iterator[Difference]:
    path, name = where
    before, after = _by_name(old, key), _by_name(new, key)
    noun = _NOUNS.get(key, key)
    for entry in [*after, *(each for each in before if each not in after)]:
        if before.get(entry, (0, {}))[1] == after.get(entry, (0, {}))[1] and (entry in before) == (entry in after):
            continue
        index = after[entry][0] if entry in after else before[entry][0]
        place, called = f"{path}.{key}[{index}]", f"{name} {noun} {entry}"
        if entry in before and entry in after:
            yield from _of_entries(before[entry][1], after[entry][1], place, called)
        else:
            yield _difference(place, called, *(_brief(each.get(entry), key) for each in (before, after)))


def _of_entries(old: JsonObject, new: JsonObject, place: str, called: str) -> Iterator[Difference]:
    if set(old) | set(new) == {"name", "value"}:
        yield _difference(f"{place}.value", called, at(old, "value"), at(new, "value"))
    else:
        yield from _of_maps(old, new, place, called)


def _brief(found: tuple[int, JsonObject] | None, key: str) -> JsonValue:
    """Shorten an added or removed list entry, for example a container to its image or a variable to its value."""
    if found is None:
        return None
    entry = found[1]
    if key in {"containers", "initContainers"}:
        return text(entry, "image") or entry
    if key == "env" and "valueFrom" not in entry:
        return text(entry, "value")
    return {each: value for each, value in entry.items() if each != _KEYS[key]}


def _by_name(document: Mapping[str, JsonValue], key: str) -> dict[str, tuple[int, JsonObject]]:
    return {str(entry.get(_KEYS[key])): (index, entry) for index, entry in enumerate(children(dict(document), key))}


def _is_list(value: JsonValue) -> bool:
    return value is None or isinstance(value, list)


def _difference(path: str, name: str, old: JsonValue, new: JsonValue) -> Difference:
    hidden = has_secret_name(re.split("[ /]", name)[-1])
    before, after = (_written(value, hidden=hidden) for value in (old, new))
    return Difference(path=path, name=name.strip(), old=before, new=after)


def _written(value: JsonValue, *, hidden: bool) -> str:
    if value is None:
        return ABSENT
    if hidden and isinstance(value, str):
        return "(not shown)"
    return shown(value) if value != "" else '""'


class _Index:
    """Index of the Services by the first label of their selector, and of the autoscalers by their target."""

    def __init__(self, state: ClusterState) -> None:
        self.services: dict[tuple[str, str, str], list[tuple[dict[str, str], ClusterObject]]] = defaultdict(list)
        self.autoscalers: dict[tuple[str, str, str], list[ClusterObject]] = defaultdict(list)
        for service in state.of("Service"):
            selector = text_map(service.body, "spec", "selector")
            if selector:
                key = min(selector)
                self.services[service.namespace, key, selector[key]].append((selector, service))
        for autoscaler in state.of("HorizontalPodAutoscaler"):
            target = autoscaler.child("spec", "scaleTargetRef")
            self.autoscalers[autoscaler.namespace, text(target, "kind"), text(target, "name")].append(autoscaler)


@once_per_state
def _index(state: ClusterState) -> _Index:
    return _Index(state)


def services_selecting(state: ClusterState, namespace: str, labels: Mapping[str, str]) -> tuple[ClusterObject, ...]:
    """Return the Services whose selector matches pods with these labels, sorted by name."""
    index = _index(state)
    found = [
        service
        for key, value in labels.items()
        for selector, service in index.services.get((namespace, key, value), ())
        if matches_map(selector, labels)
    ]
    return tuple(sorted(found, key=lambda service: service.name))


def autoscalers_of(state: ClusterState, workload: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the HorizontalPodAutoscalers that scale the workload."""
    return tuple(_index(state).autoscalers.get((workload.namespace, workload.kind, workload.name), ()))


_MOST_CHANGES: Final = 5
_SAME_MOMENT_SECONDS: Final = 5.0
_TOLD_DIFFERENCES: Final = 4
_OF_EACH_NAMESPACE: Final = frozenset({
    ("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "openshift-service-ca.crt"), ("ConfigMap", "istio-ca-root-cert"),
    ("ServiceAccount", "default"),
})  # fmt: skip
"""Objects that controllers create in each namespace, so that they tell of no change by a person."""
_CONTROLLERS: Final = frozenset(
    {"kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "k3s", "rke2"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedChange:
    """A change with its time in seconds since the epoch. `sort` is what kind of change it is."""

    at: float
    sort: Sort
    change: Change


def recent_changes(
    state: ClusterState, about: ObjectRef, before: float | None, *, window_seconds: float = 3600
) -> tuple[Change, ...]:
    """Return at most 5 recent changes to an object and its dependencies, newest first.

    `before` is the start of the incident in seconds since the epoch, by default the time of the state. Only changes
    within `window_seconds` before this time are returned. The result is empty if the object does not exist.
    """
    found = state.find(about)
    if found is None:
        return ()
    end = (state.now if before is None else before) + _SAME_MOMENT_SECONDS
    changes = [each for each in all_changes(state, found) if end - window_seconds <= each.at <= end]
    changes.sort(key=lambda each: (-each.at, each.change.object, each.change.what))
    return tuple(dict.fromkeys(each.change for each in changes))[:_MOST_CHANGES]


def all_changes(state: ClusterState, found: ClusterObject) -> Iterator[DatedChange]:
    """Yield every known change to an object, to its workload and to what its pods refer to, in no particular order."""
    workload = state.workload_of(found)
    told = [*_rollouts(state, workload), *_scalings(state, workload)]
    yield from told
    for each in _edits(workload):
        if not any(abs(each.at - other.at) <= _SAME_MOMENT_SECONDS for other in told):
            yield each
    if workload.kind in WORKLOADS or workload.kind == "Pod":
        for one in _dependencies(state, workload):
            made_together = abs(one.created - workload.created) <= state.patience_seconds
            yield from (each for each in _edits(one) if not (made_together and abs(each.at - one.created) <= 1))


def creation_of(each: ClusterObject) -> DatedChange:
    """Return the creation of an object, also of a run that its owner creates again and again."""
    return _dated(each, "creation", "was created", each.created)


def _rollouts(state: ClusterState, workload: ClusterObject) -> Iterator[DatedChange]:
    """Yield the rollouts of a Deployment, with the differences from the previous ReplicaSet if it still exists."""
    sets = replica_sets_newest_first(state, workload) if workload.kind == "Deployment" else ()
    for newest, before in zip_longest(sets, sets[1:]):
        if before is None:
            if newest.created - workload.created > state.patience_seconds:
                yield _dated(workload, "rollout", f"rollout of ReplicaSet {newest.name}", newest.created)
            return
        differences = template_differences(before.child("spec", "template"), newest.child("spec", "template"))
        told = "; ".join(str(each) for each in differences[:_TOLD_DIFFERENCES])
        more = len(differences) - _TOLD_DIFFERENCES
        what = f"rollout of ReplicaSet {newest.name}: {told or 'the template is unchanged'}"
        yield _dated(workload, "rollout", what + (f"; and {more} more" if more > 0 else ""), newest.created)


def _scalings(state: ClusterState, workload: ClusterObject) -> Iterator[DatedChange]:
    """Yield the scaling events of a workload.

    The events report that a Deployment was scaled after its newest rollout, that a StatefulSet was scaled to zero, or
    that an autoscaler scaled the workload. Without events, the autoscaler itself has the time of its last scaling.
    """
    if workload.kind == "Deployment":
        newest = next(iter(replica_sets_newest_first(state, workload)), None)
        rolled_out = (newest.created if newest else 0.0) + state.patience_seconds
        for event in state.events_of(workload, "ScalingReplicaSet"):
            if newest is not None and newest.name in event.message and event.last > rolled_out:
                yield _dated(workload, "scaling", f"scaled: {event.message}", event.last)
    if workload.kind == "StatefulSet" and workload.at("spec", "replicas") == 0:
        for event in state.events_of(workload, "SuccessfulDelete")[-1:]:
            yield _dated(workload, "scaling", f"scaled to zero: {event.message}", event.last)
    for autoscaler in autoscalers_of(state, workload):
        events = state.events_of(autoscaler, "SuccessfulRescale")
        for event in events:
            yield _dated(autoscaler, "scaling", f"scaled {workload.name}: {event.message}", event.last)
        last = moment(autoscaler.text("status", "lastScaleTime"))
        if last and not any(abs(event.last - last) <= _SAME_MOMENT_SECONDS for event in events):
            yield _dated(autoscaler, "scaling", f"scaled {workload.name}", last)


def _edits(each: ClusterObject) -> Iterator[DatedChange]:
    """Yield the creation of an object, and the last write by each field manager that is not a controller."""
    if (each.kind, each.name) in _OF_EACH_NAMESPACE:
        return
    yield creation_of(each)
    for entry in each.children("metadata", "managedFields"):
        at_seconds = moment(text(entry, "time"))
        manager = text(entry, "manager")
        if at_seconds is None or manager in _CONTROLLERS or text(entry, "subresource") == "status":
            continue
        if at_seconds - each.created > 1:
            scaled = text(entry, "subresource") == "scale"
            what = f"was {'scaled' if scaled else 'changed'} by {manager or 'an unknown manager'}"
            yield _dated(each, "scaling" if scaled else "edit", what, at_seconds)
    if each.kind == "Node":
        yield from _taints(each)


def _taints(node: ClusterObject) -> Iterator[DatedChange]:
    """Yield the taints of a node that have a time, for example that of a cordon."""
    for taint in node.children("spec", "taints"):
        at_seconds = moment(text(taint, "timeAdded"))
        if at_seconds is not None:
            cordon = text(taint, "key") == "node.kubernetes.io/unschedulable"
            what = "was cordoned" if cordon else f"got the taint {text(taint, 'key')}:{text(taint, 'effect')}"
            yield _dated(node, "edit", what, at_seconds)


def _dependencies(state: ClusterState, workload: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the existing objects that the pods of a workload refer to, and the Services that select the pods."""
    template = template_of(workload)
    for kind, name in sorted(set(_names_of(template.spec))):
        found = state.get(kind, workload.namespace, name)
        if found is not None:
            yield found
    yield from services_selecting(state, workload.namespace, template.labels)


def _names_of(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of each object to which the spec of a pod refers. A name can be empty."""
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


def _dated(each: ClusterObject, sort: Sort, what: str, at_seconds: float) -> DatedChange:
    return DatedChange(at=at_seconds, sort=sort, change=Change(object=each.ref, what=what, at=written(at_seconds)))
