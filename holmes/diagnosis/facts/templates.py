"""Finds the pod templates of workloads, and the pods and templates that a selector matches.

A template belongs to the outermost workload. A pod without an owner is treated as its own template.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import child, children, matches_map, text, text_map, texts
from holmes.kubernetes.kinds import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject


_TEMPLATE_PATHS = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Pod": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """The pod template of a workload.

    `spec` is the spec of its pods. `path` is the field that contains the spec, for example `spec.template.spec`.
    """

    workload: ClusterObject
    spec: JsonObject
    labels: dict[str, str]
    path: str


def pod_templates(state: ClusterState) -> Iterator[PodTemplate]:
    """Yield the templates of all workloads and pods without an owner."""
    for kind in (*WORKLOADS, "Pod"):
        for workload in state.of(kind):
            if workload.owner is None and workload.deleted is None:
                yield template_of(workload)


def template_of(workload: ClusterObject) -> PodTemplate:
    path = _TEMPLATE_PATHS.get(workload.kind, ("spec", "template"))
    template = child(workload.body, *path)
    return PodTemplate(
        workload=workload,
        spec=child(template, "spec"),
        labels=text_map(template, "metadata", "labels"),
        path=".".join((*path, "spec")),
    )


def serving_workloads(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the outermost workloads whose pods a Service selects. A pod without an owner is its own workload."""
    pods = state.selected("Pod", service.namespace, text_map(service.body, "spec", "selector"))
    return tuple(dict.fromkeys(map(state.workload_of, pods)))


def workloads_behind(state: ClusterState, service: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the workloads whose pods a Service selects, then those without such pods that have its labels."""
    selector, serving = text_map(service.body, "spec", "selector"), serving_workloads(state, service)
    others = (
        each
        for kind in WORKLOADS
        for each in state.of(kind, service.namespace)
        if (each.owner is None or each.owner.kind not in WORKLOADS)
        and matches_map(selector, template_of(each).labels)
        and state.workload_of(each) not in serving
    )
    return (*serving, *others)


T = TypeVar("T")


class _ByLabel(Generic[T]):
    def __init__(self, things: Iterable[tuple[str, Mapping[str, str], T]]) -> None:
        self._all: dict[str, list[tuple[Mapping[str, str], T]]] = defaultdict(list)
        self._found: dict[tuple[str, str, str], list[tuple[Mapping[str, str], T]]] = defaultdict(list)
        for namespace, labels, thing in things:
            self._all[namespace].append((labels, thing))
            for key, value in labels.items():
                self._found[namespace, key, value].append((labels, thing))

    def of(self, namespace: str) -> tuple[T, ...]:
        return tuple(thing for _, thing in self._all.get(namespace, ()))

    def selected(self, namespace: str, selector: Mapping[str, str]) -> tuple[T, ...]:
        """Return the entries that the selector of a Service matches. An empty selector matches no entry."""
        buckets = [self._found.get((namespace, key, value), []) for key, value in selector.items()]
        smallest = min(buckets, key=len, default=[])
        return tuple(thing for labels, thing in smallest if matches_map(selector, labels))


def _lives(pod: ClusterObject) -> bool:
    return pod.text("status", "phase") not in {"Succeeded", "Failed"}


class LabelIndex:
    """Index of the unfinished pods and of the pod templates by namespace and labels."""

    def __init__(self, state: ClusterState) -> None:
        living = (pod for pod in state.of("Pod") if _lives(pod))
        self.pods: _ByLabel[ClusterObject] = _ByLabel((pod.namespace, pod.labels, pod) for pod in living)
        templates = (each for each in pod_templates(state) if each.workload.kind != "Pod" or _lives(each.workload))
        self.templates: _ByLabel[PodTemplate] = _ByLabel(
            (each.workload.namespace, each.labels, each) for each in templates
        )


@once_per_state
def labels_of(state: ClusterState) -> LabelIndex:
    """Return the label index of a state. The index is cached for each state."""
    return LabelIndex(state)


def gate_setters(state: ClusterState, pod: ClusterObject, gate: str) -> tuple[ClusterObject, ...]:
    """Return the other workloads that run with the name of the gate: the controllers that should set it.

    A workload that has the gate itself waits for it, too.
    """
    own = state.workload_of(pod).ref
    return tuple(
        each.workload
        for each in pod_templates(state)
        if each.workload.ref != own
        and all(text(other, "conditionType") != gate for other in children(each.spec, "readinessGates"))
        and any(gate in told for told in _runs_with(each.spec))
    )


def _runs_with(spec: JsonObject) -> Iterator[str]:
    """Yield the commands, arguments and variables of the containers."""
    for container in children(spec, "containers"):
        yield from (*texts(container, "command"), *texts(container, "args"))
        yield from (f"{text(each, 'name')}={text(each, 'value')}" for each in children(container, "env"))
