"""Finds the objects that a custom resource names in its spec, its status or its labels, and those that it made.

Operators name other objects in fields such as `secretStoreRef`, `resourceRefs`, `childReferences` or `storageLocation`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import children, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef
    from holmes.values.json_types import JsonValue

_REFERENCE: Final = expression(r"(?:Refs?|References?|Name)$")
_BACKWARDS: Final = expression(r"^(?:claim|consumer|owner|scaleTarget|target|involvedObject)", re.IGNORECASE)
"""Fields with what uses the object, or what it acts on."""
_INVENTORY: Final = expression(
    r"(?P<namespace>[a-z0-9-]*)_(?P<name>[a-z0-9.:-]+)_(?P<group>[a-z0-9.-]*)_(?P<kind>[A-Z]\w+)"
)
"""An object in the inventory of Flux: `shop_cart_apps_Deployment`."""
_CLUSTER_LABEL: Final = expression(r"(?P<domain>[\w.-]+\.[a-z]+)/(?:cluster|cluster-name)")
_WORKLOADS: Final = ("StatefulSet", "Deployment", "DaemonSet")
_MOST: Final = 200
_DEEPEST: Final = 8


def named_in(state: ClusterState, each: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the existing objects that the custom resource names, in the order of its fields."""
    found: dict[ObjectRef, None] = {}
    for part in ("spec", "status"):
        for ref in _named(state, each, part, each.at(part), _DEEPEST):
            found[ref] = None
            if len(found) >= _MOST:
                break
    for label, value in each.labels.items():
        match = _CLUSTER_LABEL.fullmatch(label)
        if match is not None:
            near = (kind for kinds in _kinds(state).values() for kind in kinds if kind.endswith(match["domain"]))
            found |= dict.fromkeys(_existing(state, each, near, value))
    found.pop(each.ref, None)
    return tuple(found)


def made_by(state: ClusterState, each: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the workloads in the namespace that run the product of the operator for this object.

    Their names begin with the name of the object, and their images contain its kind: `quotes-es-data` with an image of
    Elasticsearch, for the Elasticsearch `quotes`.
    """
    product = each.kind.lower()
    return tuple(
        workload.ref
        for kind in _WORKLOADS
        for workload in state.of(kind, each.namespace)
        if (workload.name == each.name or workload.name.startswith(f"{each.name}-"))
        and (workload.owner is None or workload.owner.uid == each.uid)
        and any(product in image.lower() for image in _images(workload))
    )


def _images(workload: ClusterObject) -> Iterable[str]:
    return (text(one, "image") for one in children(workload.body, "spec", "template", "spec", "containers"))


def _named(state: ClusterState, each: ClusterObject, key: str, value: JsonValue, depth: int) -> Iterator[ObjectRef]:
    if _BACKWARDS.match(key) or not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _named(state, each, key, item, depth - 1)
    elif isinstance(value, str):
        yield from _by_text(state, each, key, value)
    elif isinstance(value, dict):
        name, kind = text(value, "name"), text(value, "kind")
        if name and key == "dependsOn" and not kind:  # Flux: another object of the same kind
            yield from _existing(state, each, (f"{each.kind}.{each.group}",), name, text(value, "namespace"))
        elif name and (kind or _REFERENCE.search(key)):
            place = text(value, "namespace") or each.namespace
            kinds = _kinds(state).get(kind.lower(), ()) if kind else _kinds_for(state, each, key)
            yield from _existing(state, each, kinds, name, place)
        for inner, item in value.items():
            yield from _named(state, each, inner, item, depth - 1)


def _by_text(state: ClusterState, each: ClusterObject, key: str, value: str) -> Iterator[ObjectRef]:
    """Yield the object that a plain text names: an entry of an inventory, or a name below a key like its kind."""
    entry = _INVENTORY.fullmatch(value) if key == "id" else None
    if entry is not None:
        yield from _existing(
            state, each, _kinds(state).get(entry["kind"].lower(), ()), entry["name"], entry["namespace"]
        )
    elif key not in ("name", "namespace", "kind") and " " not in value:
        yield from _existing(state, each, _kinds_for(state, each, key), value)


def _kinds_for(state: ClusterState, each: ClusterObject, key: str) -> tuple[str, ...]:
    """Return the kinds of the same product whose names end with the name of a field, without `Ref` or `Name`."""
    noun = _REFERENCE.sub("", key).lower()
    product = each.group.rpartition(".")[0].rpartition(".")[2]
    return tuple(
        one
        for word, kinds in _kinds(state).items()
        if len(noun) > 3 and word.endswith(noun)
        for one in kinds
        if one.partition(".")[2] == each.group or (product and f".{product}." in f".{one.partition('.')[2]}.")
    )


def _existing(
    state: ClusterState, each: ClusterObject, kinds: Iterable[str], name: str, namespace: str = ""
) -> Iterator[ObjectRef]:
    for kind in kinds:
        found = state.get(kind, namespace or each.namespace, name) or state.get(kind, "", name)
        if found is not None:
            yield found.ref


@once_per_state
def _kinds(state: ClusterState) -> dict[str, tuple[str, ...]]:
    """Return the kinds of the state by their names in lower case, without the groups."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in state.kinds:
        word = kind.partition(".")[0].lower()
        found[word] = (*found.get(word, ()), kind)
    return found
