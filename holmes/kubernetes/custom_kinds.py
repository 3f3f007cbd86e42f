"""Decides which custom kinds are listed, and in which order.

Every served kind is listed in one version, if possible in the stored version. The kinds that say most about the cluster
come first, so that a limit on time or objects affects the others.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, text
from holmes.kubernetes.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.json_types import JsonObject, JsonValue

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_PROPERTIES: Final = ("schema", "openAPIV3Schema", "properties")
_LAST: Final = 3


def custom_kinds(objects: Sequence[ClusterObject], first: Collection[str] = ()) -> tuple[Kind, ...]:
    """Return all served custom kinds, the most useful kinds first.

    The order is: kinds that own one of `objects` and the kinds in `first` (`Kind.group`), further kinds of the same
    groups, other kinds with a status subresource, and the rest. Of a kind that cannot have a status, only metadata is
    read.
    """
    known = {*first, *_owners(objects)}
    groups = {each.partition(".")[2] for each in known}
    ranked = []
    for definition in objects:
        version = _version(definition) if definition.kind == "CustomResourceDefinition" else None
        kind = _kind(definition, version) if version is not None else None
        if version is not None and kind is not None:
            named = f"{kind.name}.{kind.group}" in known
            status = "status" in child(version, "subresources")
            rank = 0 if named else 1 if kind.group in groups else 2 if status else _LAST
            names_only = rank == _LAST and "status" not in child(status_shape(version), *_PROPERTIES)
            ranked.append((rank, names_only, kind.group, kind.name, replace(kind, metadata_only=names_only)))
    return tuple(kind for *_, kind in sorted(ranked, key=lambda each: each[:4]))


def status_shape(version: JsonObject) -> dict[str, JsonValue]:
    """Return the part of a version's schema that shows whether its objects can have a status."""
    schema = child(version, "schema", "openAPIV3Schema")
    open_ended = "properties" not in schema or boolean(schema, "x-kubernetes-preserve-unknown-fields")
    known: dict[str, JsonValue] = {"status": {}} if open_ended or "status" in child(schema, "properties") else {}
    return {"schema": {"openAPIV3Schema": {"properties": known}}}


def _owners(objects: Iterable[ClusterObject]) -> set[str]:
    """Return the kinds, as `Kind.group`, that own an object."""
    found = set()
    for each in objects:
        for owner in children(each.body, "metadata", "ownerReferences"):
            group, slash, _ = text(owner, "apiVersion").partition("/")
            if slash:
                found.add(f"{text(owner, 'kind')}.{group}")
    return found


def _version(definition: ClusterObject) -> JsonObject | None:
    versions = [version for version in definition.children("spec", "versions") if boolean(version, "served")]
    return next((each for each in versions if boolean(each, "storage")), versions[0] if versions else None)


def _kind(definition: ClusterObject, version: JsonObject) -> Kind | None:
    names = definition.text("spec", "names", "kind"), definition.text("spec", "names", "plural")
    place = definition.text("spec", "group"), text(version, "name")
    if not all(map(_NAME.fullmatch, (*names, *place))):
        return None  # API servers reject such names, and a path must not contain them
    return Kind(
        name=names[0],
        group_version="/".join(place),
        resource=names[1],
        namespaced=definition.text("spec", "scope") != "Cluster",
    )
