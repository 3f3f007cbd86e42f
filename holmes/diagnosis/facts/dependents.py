"""What points at a workload: the Services that select its pods and the autoscalers that scale it, without searching.

Called by `changes` and by rules about workloads; indexed once for each state.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.kubernetes.fields import text, text_map
from holmes.kubernetes.selectors import matches_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState


class _Index:
    """Services by the first label of their selector, autoscalers by their target."""

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


_INDEXES: Final[WeakKeyDictionary[ClusterState, _Index]] = WeakKeyDictionary()


def _index(state: ClusterState) -> _Index:
    index = _INDEXES.get(state)
    if index is None:
        index = _INDEXES[state] = _Index(state)
    return index


def services_selecting(state: ClusterState, namespace: str, labels: Mapping[str, str]) -> tuple[ClusterObject, ...]:
    """The Services whose selector matches pods with these labels, by name."""
    index = _index(state)
    found = [
        service
        for key, value in labels.items()
        for selector, service in index.services.get((namespace, key, value), ())
        if matches_map(selector, labels)
    ]
    return tuple(sorted(found, key=lambda service: service.name))


def autoscalers_of(state: ClusterState, workload: ClusterObject) -> tuple[ClusterObject, ...]:
    """The HorizontalPodAutoscalers whose target the workload is."""
    return tuple(_index(state).autoscalers.get((workload.namespace, workload.kind, workload.name), ()))
