"""Whether a node may take a pod by its labels and taints, as the scheduler decides it. Called by the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children, integer, text, text_map, texts
from holmes.kubernetes.selectors import matches_map, matches_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.json_types import JsonObject

AFFINITY: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
CONTROL_PLANE_TAINTS: Final = frozenset({"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"})
CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
PROBLEM_PREFIX: Final = "node.kubernetes.io/"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


def chooses(spec: JsonObject, node: ClusterObject) -> bool:
    """Whether `nodeSelector` and required node affinity of a pod's spec allow the node."""
    selector = text_map(spec, "nodeSelector")
    if selector and not matches_map(selector, node.labels):
        return False
    terms = children(spec, *AFFINITY)
    return not terms or matches_terms(terms, node)


def matches_terms(terms: Iterable[JsonObject], node: ClusterObject) -> bool:
    """Whether one of several node selector terms matches the node. An empty term matches nothing."""
    return any(
        (children(term, "matchExpressions") or children(term, "matchFields"))
        and all(expression_holds(each, node.labels) for each in children(term, "matchExpressions"))
        and all(expression_holds(each, {"metadata.name": node.name}) for each in children(term, "matchFields"))
        for term in terms
    )


def expression_holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether labels of a node satisfy one expression, which may also compare numbers."""
    operator = text(expression, "operator")
    if operator not in {"Gt", "Lt"}:
        return matches_selector({"matchExpressions": [dict(expression)]}, labels)
    bound, own = next(iter(texts(expression, "values")), ""), labels.get(text(expression, "key"), "")
    if not (bound.lstrip("-").isdecimal() and own.lstrip("-").isdecimal()):
        return False
    return int(own) > int(bound) if operator == "Gt" else int(own) < int(bound)


def repelling_taints(spec: JsonObject, node: ClusterObject) -> Iterator[JsonObject]:
    """The taints of a node that keep the pod away."""
    tolerations = children(spec, "tolerations")
    for taint in node.children("spec", "taints"):
        if text(taint, "effect") in _REPELLING and not any(_tolerates(each, taint) for each in tolerations):
            yield taint


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if text(toleration, "effect") not in {"", text(taint, "effect")}:
        return False
    key, exists = text(toleration, "key"), text(toleration, "operator") == "Exists"
    if not key:
        return exists
    return key == text(taint, "key") and (exists or text(toleration, "value") == text(taint, "value"))


def taint_words(taint: JsonObject) -> str:
    """A taint as kubectl writes it: `dedicated=gpu:NoSchedule`."""
    value = text(taint, "value")
    return f"{text(taint, 'key')}{f'={value}' if value else ''}:{text(taint, 'effect')}"


def host_ports(spec: JsonObject) -> Iterator[tuple[str, int, str]]:
    """Path, port and protocol of every port of the node that a pod's spec takes: `containers[0].ports[0].hostPort`."""
    for key in ("containers", "initContainers"):
        for index, container in enumerate(children(spec, key)):
            if key == "initContainers" and text(container, "restartPolicy") != "Always":
                continue
            for position, port in enumerate(children(container, "ports")):
                if integer(port, "hostPort"):
                    where = f"{key}[{index}].ports[{position}].hostPort"
                    yield where, integer(port, "hostPort"), text(port, "protocol") or "TCP"
