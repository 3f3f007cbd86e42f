"""What pods ask of nodes and what nodes have: the arithmetic of the scheduler. Called by rules about nodes and pods."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.quantities import amount, quantity
from holmes.kubernetes.fields import at, child, children, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject


def allocatable(node: ClusterObject, resource: str) -> Decimal:
    """What a node offers of a resource, in cores, bytes or pieces; 0 when it has none."""
    return amount(node.at("status", "allocatable", resource))


def requested(pod: ClusterObject, resource: str, part: Literal["requests", "limits"] = "requests") -> Decimal:
    """What a whole pod asks for: its containers together or its largest init container, plus overhead.

    A limit without a request counts as the request, as the API server has it.
    """
    if resource == "pods":
        return Decimal(1)
    whole = at(pod.body, "spec", "resources", part, resource)
    overhead = amount(pod.at("spec", "overhead", resource))
    if quantity(whole) is not None:
        return amount(whole) + overhead
    mains = sum((_of_container(each, resource, part) for each in pod.children("spec", "containers")), Decimal(0))
    sidecars = largest = Decimal(0)
    for each in pod.children("spec", "initContainers"):
        own = _of_container(each, resource, part)
        if text(each, "restartPolicy") == "Always":
            sidecars += own
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + own)
    return max(mains + sidecars, largest) + overhead


def _of_container(container: JsonObject, resource: str, part: str) -> Decimal:
    found = at(container, "resources", part, resource)
    if found is None and part == "requests":
        found = at(container, "resources", "limits", resource)
    return amount(found)


def asking_container(pod: ClusterObject, resource: str) -> tuple[str, str] | None:
    """Name and path of the amount (`containers[0].resources.requests.cpu`) of the container that asks for most.

    Of a resource with dots in its name (`nvidia.com/gpu`) the path is that of all limits.
    """
    best: tuple[Decimal, str, str] | None = None
    for key in ("containers", "initContainers"):
        for index, each in enumerate(children(pod.body, "spec", key)):
            own = _of_container(each, resource, "requests")
            parts = ("limits", "requests") if "." in resource else ("requests", "limits")
            part = next((each_part for each_part in parts if resource in child(each, "resources", each_part)), "limits")
            if own and (best is None or own > best[0]):
                place = f"{key}[{index}].resources.{part}"
                best = (own, text(each, "name"), place if "." in resource else f"{place}.{resource}")
    return None if best is None else best[1:]


def pods_by_node(state: ClusterState) -> dict[str, list[ClusterObject]]:
    """The pods that take room on each node: all that are placed and not done."""
    found = _PLACED.get(state)
    if found is None:
        found = _PLACED[state] = defaultdict(list)
        for pod in state.of("Pod"):
            node = pod.text("spec", "nodeName")
            if node and pod.text("status", "phase") not in {"Succeeded", "Failed"}:
                found[node].append(pod)
    return found


_PLACED: Final[WeakKeyDictionary[ClusterState, dict[str, list[ClusterObject]]]] = WeakKeyDictionary()


def free(
    nodes: Iterable[ClusterObject], placed: Mapping[str, Iterable[ClusterObject]], resource: str
) -> dict[str, Decimal]:
    """What is left of a resource on each node."""
    return {
        node.name: allocatable(node, resource)
        - sum((requested(pod, resource) for pod in placed.get(node.name, ())), Decimal(0))
        for node in nodes
    }
