"""Decides which custom kinds are listed, and in which order.

Every served kind is listed in one version, if possible in the stored version. The kinds that say most about the cluster
come first, so that a limit on time or objects affects the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, text, texts
from holmes.kubernetes.kinds import Kind
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.json_types import JsonObject, JsonValue

_NAME: Final = expression(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_PROPERTIES: Final = ("schema", "openAPIV3Schema", "properties")
_LAST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A served kind. `writes_status` means a status subresource, `has_status` that its objects can have a status."""

    kind: Kind
    writes_status: bool
    has_status: bool


def custom_kinds(objects: Sequence[ClusterObject], first: Collection[str] = ()) -> tuple[Kind, ...]:
    """Return all served custom kinds that `objects` define, the most useful kinds first.

    The order is: kinds that own one of `objects` and the kinds in `first` (`Kind.group`), further kinds of the same
    groups, other kinds with a status subresource, and the rest. Of kinds at the end of the order that cannot have a
    status, only metadata is read, because their objects can be large (reports of scanners).
    """
    found = (_defined(each) for each in objects if each.kind == "CustomResourceDefinition")
    return _ordered([each for each in found if each is not None], {*first, *_owners(objects)})


def discovered_kinds(
    groups: Iterable[JsonObject], objects: Sequence[ClusterObject], first: Collection[str] = ()
) -> tuple[Kind, ...]:
    """Return the custom kinds of an aggregated discovery (`APIGroupDiscoveryList`), in the order of `custom_kinds`.

    Any user may read the discovery, also one who may not list definitions. It also contains APIs of other servers.
    Therefore, groups of Kubernetes itself are left out unless they are in `first`.
    """
    known = {each.partition(".")[2] for each in first}
    found = []
    for each in groups:
        group = text(each, "metadata", "name")
        version = next(iter(children(each, "versions")), {})
        if "." in group and (group in known or not group.endswith(".k8s.io")):
            found += [_served(group, text(version, "version"), one) for one in children(version, "resources")]
    return _ordered([each for each in found if each is not None], {*first, *_owners(objects)})


def _ordered(candidates: Iterable[_Candidate], known: Collection[str]) -> tuple[Kind, ...]:
    groups = {each.partition(".")[2] for each in known}
    ranked = []
    for each in candidates:
        kind = each.kind
        named = f"{kind.name}.{kind.group}" in known
        rank = 0 if named else 1 if kind.group in groups else 2 if each.writes_status else _LAST
        names_only = rank == _LAST and not each.has_status
        ranked.append((rank, names_only, kind.group, kind.name, replace(kind, metadata_only=names_only)))
    return tuple(kind for *_, kind in sorted(ranked, key=lambda each: each[:4]))


def _served(group: str, version: str, resource: JsonObject) -> _Candidate | None:
    names = text(resource, "responseKind", "kind"), text(resource, "resource")
    if "list" not in texts(resource, "verbs") or not all(map(_NAME.fullmatch, (*names, group, version))):
        return None
    parts = {text(each, "subresource") for each in children(resource, "subresources")}
    scoped = text(resource, "scope") == "Namespaced"
    kind = Kind(name=names[0], group_version=f"{group}/{version}", resource=names[1], namespaced=scoped)
    return _Candidate(kind=kind, writes_status="status" in parts, has_status=True)


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


def _defined(definition: ClusterObject) -> _Candidate | None:
    """Return the kind in its stored version, or in its first served version. Returns None if it is not served."""
    versions = [version for version in definition.children("spec", "versions") if boolean(version, "served")]
    version = next((each for each in versions if boolean(each, "storage")), versions[0] if versions else {})
    names = definition.text("spec", "names", "kind"), definition.text("spec", "names", "plural")
    place = definition.text("spec", "group"), text(version, "name")
    if not all(map(_NAME.fullmatch, (*names, *place))):
        return None  # API servers reject such names, and a path must not contain them
    return _Candidate(
        kind=Kind(
            name=names[0],
            group_version="/".join(place),
            resource=names[1],
            namespaced=definition.text("spec", "scope") != "Cluster",
        ),
        writes_status="status" in child(version, "subresources"),
        has_status="status" in child(status_shape(version), *_PROPERTIES),
    )
