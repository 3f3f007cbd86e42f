"""Finds out what a name that does not exist could mean: similar names, and other namespaces that contain the name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.errors import NotFound
from holmes.kubernetes.fields import text
from holmes.kubernetes.kinds import api_path
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.kubernetes.client import ClusterClient

_MOST_NAMES: Final = 500
_MOST_SHOWN: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlace:
    """The objects of one kind in one namespace. The namespace of cluster-scoped objects is None."""

    kind: str
    group_version: str
    resource: str
    namespace: str | None


async def with_nearest_names(
    client: ClusterClient, error: NotFound, name: str, places: Sequence[NamedPlace]
) -> NotFound:
    """Return `error` with similar names, and with the other namespaces that contain an object with this name."""
    hint = await name_hint(client, name, places)
    return NotFound(f"{error}; {hint}", status_code=404, reason=error.reason, detail=error.detail)


async def name_hint(client: ClusterClient, name: str, places: Sequence[NamedPlace]) -> str:
    """Return similar names in `places`, or some existing names if none is similar.

    Names of the second and later places have their kind as a prefix. If nothing exists, the hint is about the
    namespace.
    """
    existing: list[str] = []
    for place in places:
        prefix = "" if place is places[0] else f"{place.kind.lower()}/"
        path = api_path(place.group_version, place.resource, namespace=place.namespace)
        existing += [prefix + found for found in await _names(client, path)]
    elsewhere = [each for place in places for each in await namespaces_with(client, name, place)]
    hint = _nearest_of(name, existing) if existing else await _about_namespace(client, places[0].namespace)
    return f"{hint}; {name!r} exists in namespace {', '.join(dict.fromkeys(elsewhere))}" if elsewhere else hint


async def namespaces_with(client: ClusterClient, name: str, place: NamedPlace) -> list[str]:
    """Return the other namespaces that contain an object with this name. Empty if they cannot be listed."""
    if place.namespace is None or client.scope:
        return []
    path = api_path(place.group_version, place.resource)
    found = await _listed(client, path, {"fieldSelector": f"metadata.name={name}"})
    return [namespace for namespace, one in found if one == name and namespace != place.namespace][:_MOST_SHOWN]


async def _about_namespace(client: ClusterClient, namespace: str | None) -> str:
    if namespace is None:
        return "the cluster has no objects of this kind"
    listed = await _names(client, api_path("v1", "namespaces"))
    namespaces = [name for name in listed if not client.scope or name in client.scope]
    if not namespaces or namespace in namespaces:
        return "the namespace has no objects of this kind"
    return f"namespace {namespace!r} does not exist either; {_nearest_of(namespace, namespaces)}"


async def _names(client: ClusterClient, path: str) -> list[str]:
    return [name for _, name in await _listed(client, path, {})]


async def _listed(client: ClusterClient, path: str, params: Mapping[str, str]) -> list[tuple[str, str]]:
    try:
        listed = await client.list(path, params, limit=_MOST_NAMES)
    except ToolError:
        return []
    return [(text(item, "metadata", "namespace"), text(item, "metadata", "name")) for item in listed.items]


def _nearest_of(name: str, existing: list[str]) -> str:
    """List the names that contain `name` or resemble it, or some existing names if none does."""
    plain = {candidate: candidate.rpartition("/")[2] for candidate in existing}
    containing = [candidate for candidate in existing if name in plain[candidate] or plain[candidate] in name]
    similar = difflib.get_close_matches(name, list(plain.values()), n=5, cutoff=0.6)
    near = list(dict.fromkeys(containing + [one for one in existing if plain[one] in similar]))[:_MOST_SHOWN]
    if near:
        return f"did you mean {', '.join(near)}?"
    more = f" and {len(existing) - _MOST_SHOWN} more" if len(existing) > _MOST_SHOWN else ""
    return f"available: {', '.join(existing[:_MOST_SHOWN])}{more}"
