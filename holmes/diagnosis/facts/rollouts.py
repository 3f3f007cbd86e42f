"""What differs between two pod templates, and which ReplicaSet of a Deployment follows which.

Called by `changes` and by rules about workloads. Values of variables whose names sound secret are not
shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import has_secret_name, shown
from holmes.kubernetes.fields import at, child, children, text, text_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject, JsonValue

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
_MOST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that two templates do not share.

    `path` is the field in the workload with positions as in the newer template, `name` the same in words:
    `spec.template.spec.containers[0].image`, `container web image`. A value that is not there is `ABSENT`.
    """

    path: str
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        """For example `container web image registry.shop.example/web:1.0 → registry.shop.example/web:1.1`."""
        return f"{self.name} {self.old} → {self.new}"


def template_differences(old: JsonObject, new: JsonObject) -> tuple[Difference, ...]:
    """What differs between two pod templates (`spec.template`), images first; at most 20 differences.

    Containers, variables, volumes, mounts and ports are compared by name, so that a moved entry is no difference.
    """
    found = [*_of_metadata(old, new), *_of_maps(child(old, "spec"), child(new, "spec"), "spec.template.spec", "")]
    found.sort(key=lambda difference: not difference.path.endswith(".image"))
    return tuple(found[:_MOST])


def replica_sets_newest_first(state: ClusterState, deployment: ClusterObject) -> tuple[ClusterObject, ...]:
    """The ReplicaSets of a Deployment by revision."""
    owned = state.owned_by(deployment, "ReplicaSet")
    return tuple(sorted(owned, key=lambda each: (-revision(each), -each.created, each.name)))


def revision(replica_set: ClusterObject) -> int:
    """The revision that the Deployment gave to the ReplicaSet, 0 when unknown."""
    written = replica_set.annotations.get(_REVISION, "")
    return int(written) if written.isascii() and written.isdigit() else 0


def last_rollout(
    state: ClusterState, deployment: ClusterObject
) -> tuple[ClusterObject, ClusterObject, tuple[Difference, ...]] | None:
    """The newest ReplicaSet, the one before it and what differs; None when there was only one."""
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
    """Entries of a list that have names."""
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
    """A whole entry, short: of a container its image, of a variable its value."""
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
