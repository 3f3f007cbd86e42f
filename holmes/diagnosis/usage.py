"""Reads the current usage of pods and nodes from `metrics.k8s.io`, if the cluster has a metrics server."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import amount
from holmes.kubernetes.fields import child, children, text
from holmes.values.errors import ToolError
from holmes.values.findings import NotChecked, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.kubernetes.client import ClusterClient
    from holmes.values.json_types import JsonObject

_METRICS: Final = "/apis/metrics.k8s.io/v1beta1"
_TIMEOUT_SECONDS: Final = 10.0
_RESOURCES: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of pods and nodes: cores and bytes. `unread` states why it is incomplete."""

    amounts: Mapping[ObjectRef, Mapping[str, Decimal]]
    unread: tuple[NotChecked, ...] = ()


async def read_usage(client: ClusterClient, namespaces: Sequence[str] = ()) -> Usage:
    """Read the usage of the pods in the namespaces and of all nodes. Never fails, because it is optional."""
    paths = [("Pod", f"{_METRICS}/namespaces/{name}/pods") for name in namespaces] or [("Pod", f"{_METRICS}/pods")]
    amounts: dict[ObjectRef, Mapping[str, Decimal]] = {}
    unread: list[NotChecked] = []
    for kind, path in (*paths, ("Node", f"{_METRICS}/nodes")):
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                found = await client.list(path)
        except (ToolError, TimeoutError) as error:
            why = " ".join(str(error).split()) or f"no answer within {_TIMEOUT_SECONDS:g} s"
            unread.append(NotChecked(what=f"usage of {kind}s (metrics.k8s.io)", why=why))
            continue
        amounts |= {_ref(kind, each): _used(each) for each in found.items}
    return Usage(amounts=amounts, unread=tuple(unread))


def _ref(kind: str, metrics: JsonObject) -> ObjectRef:
    metadata = child(metrics, "metadata")
    return ObjectRef(kind=kind, name=text(metadata, "name"), namespace=text(metadata, "namespace"))


def _used(metrics: JsonObject) -> Mapping[str, Decimal]:
    """Return the sum of the containers of a pod, or the usage of a node."""
    total: dict[str, Decimal] = defaultdict(Decimal)
    for used in (child(metrics, "usage"), *(child(each, "usage") for each in children(metrics, "containers"))):
        for resource in _RESOURCES:
            total[resource] += amount(used.get(resource))
    return dict(total)
