"""Finds running chaos experiments, and the workloads that they disturb.

Chaos Mesh and Litmus have custom resources. A run of Kraken is a pod whose environment names its targets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import children, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

CHAOS_GROUPS: Final = frozenset({"chaos-mesh.org", "litmuschaos.io"})
_KRAKEN: Final = expression(r"(?:^|/)(?:krkn|kraken)(?:-hub)?(?:[:@]|$)")
_LABELS: Final = ("POD_LABEL", "LABEL_SELECTOR")
_NAMES: Final = ("NAME_PATTERN", "POD_NAME")


@once_per_state
def kraken_runs(state: ClusterState) -> tuple[ClusterObject, ...]:
    """Return the running pods of Kraken. The result is cached for each state."""
    return tuple(pod for pod in state.of("Pod") if pod.text("status", "phase") == "Running" and _scenario(pod))


def is_injected(experiment: ClusterObject) -> bool:
    """Return whether nothing says that an experiment is paused or was not injected."""
    paused = text_map(experiment.body, "metadata", "annotations").get("experiment.chaos-mesh.org/pause") == "true"
    return not paused and experiment.condition("AllInjected").get("status") != "False"


def targets_of(state: ClusterState, each: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the workloads that a chaos experiment or a run of Kraken disturbs. Empty for other objects."""
    if each.group in CHAOS_GROUPS:
        pods = _selected(state, each)
    else:
        pods = _matched(state, _environment(each)) if each.kind == "Pod" and _scenario(each) else iter(())
    return tuple(dict.fromkeys(state.workload_of(pod).ref for pod in pods))


def kraken_image(pod: ClusterObject) -> str:
    """Return the image of Kraken that a pod runs, or an empty string for another pod."""
    images = (text(each, "image") for each in pod.children("spec", "containers"))
    return next((image for image in images if _KRAKEN.search(image)), "")


def action_of(each: ClusterObject) -> str:
    """Return what an experiment does: `pod-kill`, or the scenario of a run of Kraken."""
    return each.text("spec", "action") or (_scenario(each) if each.kind == "Pod" else "")


def _scenario(pod: ClusterObject) -> str:
    """Return the tag of the image of Kraken, which names the scenario, or an empty string for another pod."""
    image = kraken_image(pod)
    return image.rpartition("/")[2].partition("@")[0].partition(":")[2] or "Kraken" if image else ""


def _environment(pod: ClusterObject) -> Mapping[str, str]:
    return {
        text(each, "name"): text(each, "value")
        for container in pod.children("spec", "containers")
        for each in children(container, "env")
    }


def _selected(state: ClusterState, each: ClusterObject) -> Iterator[ClusterObject]:
    selector, app = each.child("spec", "selector"), each.child("spec", "appinfo")
    labels = text_map(selector, "labelSelectors") | _label(text(app, "applabel"))
    spaces = texts(selector, "namespaces") or (text(app, "appns") or each.namespace,)
    return (pod for space in spaces for pod in state.selected("Pod", space, labels))


def _matched(state: ClusterState, environment: Mapping[str, str]) -> Iterator[ClusterObject]:
    """Yield the pods that the environment of Kraken selects, whose namespaces and names are regular expressions."""
    space = environment.get("NAMESPACE", "")
    label = next((_label(environment[key]) for key in _LABELS if environment.get(key)), {})
    name = next((environment[key] for key in _NAMES if environment.get(key) not in (None, "", ".*")), "")
    for pod in state.of("Pod") if space and (label or name) else ():
        alike = pod.labels.items() >= label.items() and (not name or _is_like(name, pod.name))
        if alike and _is_like(space, pod.namespace) and not _scenario(pod):
            yield pod


def _is_like(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern. A pattern that might be slow is compared as text."""
    if not _PATTERN.fullmatch(pattern):
        return pattern == name
    return re.fullmatch(pattern, name) is not None


_PATTERN: Final = expression(r"\^?[a-z0-9-]*(?:\.\*)?[a-z0-9-]*\$?")


def _label(term: str) -> dict[str, str]:
    key, _, wanted = term.partition("=")
    return {key: wanted} if key and wanted else {}
