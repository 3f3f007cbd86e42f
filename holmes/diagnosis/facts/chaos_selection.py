"""Selects the pods of chaos experiments as their tools do. A selector with an unknown part selects no pod."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, matches_selector, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.json_types import JsonObject

_PARTS: Final = frozenset(
    {
        "namespaces", "labelSelectors", "expressionSelectors", "annotationSelectors", "fieldSelectors", "nodes",
        "nodeSelectors", "pods", "podPhaseSelectors",
    }
)  # fmt: skip
_LABELS: Final = ("POD_LABEL", "LABEL_SELECTOR")
_NAMES: Final = ("NAME_PATTERN", "POD_NAME")
_OF_NODES: Final = ("NODE_LABEL_SELECTOR", "NODE_NAMES")


def environment_of(each: ClusterObject) -> dict[str, str]:
    """Return the settings of a run of Kraken, or of the experiments of Litmus."""
    if each.kind == "Pod":
        parts: Iterable[JsonObject] = each.children("spec", "containers")
    else:
        parts = (child(one, "spec", "components") for one in each.children("spec", "experiments"))
    return {text(one, "name"): text(one, "value") for part in parts for one in children(part, "env")}


def of_chaos_mesh(state: ClusterState, each: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the pods that the selector of Chaos Mesh selects and that its records do not rule out."""
    selector, containers = each.child("spec", "selector"), texts(each.body, "spec", "containerNames")
    if not selector or not set(selector) <= _PARTS:
        return
    hit, named = records_of(each), child(selector, "pods")
    for space in dict.fromkeys(texts(selector, "namespaces") or tuple(named) or (each.namespace,)):
        for pod in state.of("Pod", space):
            told = not hit or _is_recorded(state, pod, hit, since=each.created)
            if told and _has(pod, containers) and _is_selected(state, pod, selector):
                yield pod


def records_of(each: ClusterObject) -> dict[str, bool]:
    """Return whether each pod was injected that Chaos Mesh lists as `namespace/name`. Empty if it lists none."""
    records = each.children("status", "experiment", "containerRecords")
    own = [record for record in records if text(record, "selectorKey") in {"", "."}]
    return {"/".join(text(one, "id").split("/")[:2]): text(one, "phase") == "Injected" for one in own}


def _is_recorded(state: ClusterState, pod: ClusterObject, hit: Mapping[str, bool], *, since: float) -> bool:
    """Return whether a pod was injected, or replaces an injected pod that does not exist any more."""
    if f"{pod.namespace}/{pod.name}" in hit:
        return hit[f"{pod.namespace}/{pod.name}"]
    replaced = f"{pod.namespace}/{pod.name.rpartition('-')[0]}"
    gone = (one for one, injected in hit.items() if injected and one.rpartition("-")[0] == replaced)
    return pod.created >= since and any(state.get("Pod", pod.namespace, one.partition("/")[2]) is None for one in gone)


def _is_selected(state: ClusterState, pod: ClusterObject, selector: JsonObject) -> bool:
    labels: JsonObject = {
        "matchLabels": selector.get("labelSelectors"), "matchExpressions": selector.get("expressionSelectors"),
    }  # fmt: skip
    fields, annotations = text_map(selector, "fieldSelectors"), text_map(selector, "annotationSelectors")
    on, of_nodes = pod.text("spec", "nodeName"), text_map(selector, "nodeSelectors")
    node = state.get("Node", "", on)
    named = child(selector, "pods")
    return (
        matches_selector(labels, pod.labels)
        and annotations.items() <= pod.annotations.items()
        and all(pod.text(*key.split(".")) == wanted for key, wanted in fields.items())
        and on in (texts(selector, "nodes") or (on,))
        and (not of_nodes or (node is not None and of_nodes.items() <= node.labels.items()))
        and pod.text("status", "phase") in (texts(selector, "podPhaseSelectors") or (pod.text("status", "phase"),))
        and (not named or pod.name in texts(named, pod.namespace))
    )


def of_litmus(state: ClusterState, each: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the pods that an engine of Litmus selects by its application and the settings of its experiments."""
    app, environment = each.child("spec", "appinfo"), environment_of(each)
    kind, containers = text(app, "appkind").lower(), tuple(filter(None, [environment.get("TARGET_CONTAINER")]))
    names = tuple(filter(None, environment.get("TARGET_PODS", "").split(",")))
    for pod in state.selected("Pod", text(app, "appns") or each.namespace, _label(text(app, "applabel"))):
        alike = not kind or state.workload_of(pod).kind.lower() == kind
        if alike and _has(pod, containers) and pod.name in (names or (pod.name,)):
            yield pod


def of_kraken(state: ClusterState, environment: Mapping[str, str]) -> Iterator[ClusterObject]:
    """Yield the pods that the environment of Kraken selects, whose namespaces and names are regular expressions."""
    space, left_out = environment.get("NAMESPACE", ""), environment.get("EXCLUDE_LABEL", "")
    label = next((_label(environment[key]) for key in _LABELS if environment.get(key)), {})
    name = next((environment[key] for key in _NAMES if environment.get(key) not in (None, "", ".*")), "")
    excluded, container = _label(left_out), tuple(filter(None, [environment.get("CONTAINER_NAME")]))
    clear = (excluded or not left_out) and not any(environment.get(key) for key in _OF_NODES)
    for pod in state.of("Pod") if clear and space and (label or name) else ():
        alike = pod.labels.items() >= label.items() and (not name or _is_like(name, pod.name))
        out = bool(excluded) and pod.labels.items() >= excluded.items()
        if alike and not out and _is_like(space, pod.namespace) and _has(pod, container):
            yield pod


def _has(pod: ClusterObject, containers: Collection[str]) -> bool:
    """Return whether a pod has one of the containers, or none is named."""
    return not containers or any(text(each, "name") in containers for each in pod.children("spec", "containers"))


def _is_like(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern. A pattern that might be slow is compared as text."""
    if not _PATTERN.fullmatch(pattern):
        return pattern == name
    return re.fullmatch(pattern, name) is not None


_PATTERN: Final = expression(r"\^?[a-z0-9-]*(?:\.\*)?[a-z0-9-]*\$?")


def _label(term: str) -> dict[str, str]:
    """Return the only label of a selector, or an empty object for a selector of another form."""
    key, _, wanted = term.partition("=")
    plain = key and wanted and not any(sign in term for sign in ",!()") and not wanted.startswith("=")
    return {key.strip(): wanted.strip()} if plain else {}
