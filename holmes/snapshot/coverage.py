"""Which kinds a source lists completely, and where. Everything else is reported as not recorded, never as empty."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from holmes.snapshot.recording import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from holmes.snapshot.discovery import ResourceType

GroupKind: TypeAlias = tuple[str, str]
"""The `apiVersion` and `kind` of an object."""

NAMESPACE: GroupKind = ("v1", "Namespace")
WHOLE_CLUSTER = ""
_SINGLE = "only single objects of this kind are part of this source"
_ABSENT = "this kind is not part of this source for this namespace"


@dataclass(slots=True, kw_only=True)
class Coverage:
    """The namespaces in which each kind is listed completely, and why a list cannot be used.

    The empty namespace stands for the whole cluster.
    """

    lists: defaultdict[GroupKind, set[str]] = field(default_factory=lambda: defaultdict(set))
    faults: dict[tuple[GroupKind, str], str] = field(default_factory=dict)

    def add(self, kind: GroupKind, namespace: str = WHOLE_CLUSTER) -> None:
        self.lists[kind].add(namespace)

    def add_fault(self, kind: GroupKind, namespace: str, why: str) -> None:
        self.faults.setdefault((kind, namespace), why)

    def kinds(self) -> AbstractSet[GroupKind]:
        return self.lists.keys() | {kind for kind, _ in self.faults}

    def gaps(
        self, types: Mapping[GroupKind, ResourceType], present: AbstractSet[GroupKind], namespaces: AbstractSet[str]
    ) -> Iterator[Unread]:
        """Yield what is missing of each kind. `present` are the kinds with objects."""
        for kind in sorted(self.kinds() | present):
            listed, resource = self.lists.get(kind, set()), types[kind].qualified
            fault = self.faults.get((kind, WHOLE_CLUSTER), "")
            if WHOLE_CLUSTER in listed and not fault:
                missing = {name for faulty, name in self.faults if faulty == kind}
            elif types[kind].namespaced and listed and not fault:
                missing = set(namespaces) - listed
            else:
                why = fault or (_SINGLE if kind in present else _first_fault(self.faults, kind))
                yield Unread(
                    resource=resource, namespace="", forbidden=False, reason=why, partly=bool(listed) or kind in present
                )
                continue
            for name in sorted(missing):
                why = self.faults.get((kind, name), _ABSENT)
                yield Unread(resource=resource, namespace=name, forbidden=False, reason=why, partly=True)


def _first_fault(faults: Mapping[tuple[GroupKind, str], str], kind: GroupKind) -> str:
    return next((why for (faulty, _), why in faults.items() if faulty == kind), _ABSENT)
