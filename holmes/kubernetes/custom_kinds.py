"""Which custom resources a scan lists: the served and stored version of every CustomResourceDefinition, up to a number.

Called by the state reader, with what it has read already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.cluster_state import Gap
from holmes.kubernetes.fields import boolean, text
from holmes.kubernetes.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKinds:
    """The kinds to list, and those left out as gaps."""

    kinds: tuple[Kind, ...]
    gaps: tuple[Gap, ...]


def custom_kinds(objects: Sequence[ClusterObject], limit: int) -> CustomKinds:
    """At most `limit` kinds, by group and name; only those with a status can tell that they fail."""
    kinds = sorted(
        (
            kind
            for each in objects
            if each.kind == "CustomResourceDefinition"
            for kind in (_kind(each),)
            if kind is not None
        ),
        key=lambda kind: (kind.group, kind.name),
    )
    why = f"there are more than {limit} custom kinds; only the first {limit} were read"
    left_out = tuple(Gap(kind=f"{kind.name}.{kind.group}", why=why) for kind in kinds[limit:])
    return CustomKinds(kinds=tuple(kinds[:limit]), gaps=left_out)


def _kind(definition: ClusterObject) -> Kind | None:
    versions = [version for version in definition.children("spec", "versions") if boolean(version, "served")]
    if not versions:
        return None
    version = next((each for each in versions if boolean(each, "storage")), versions[0])
    names = definition.text("spec", "names", "kind"), definition.text("spec", "names", "plural")
    place = definition.text("spec", "group"), text(version, "name")
    if not all(map(_NAME.fullmatch, (*names, *place))):
        return None  # no API server accepts it, and no path may be made of it
    return Kind(
        name=names[0],
        group_version="/".join(place),
        resource=names[1],
        namespaced=definition.text("spec", "scope") != "Cluster",
    )
