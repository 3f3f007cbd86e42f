"""Converts the kubelet's summary of usage, `/stats/summary`, to the objects of `metrics.k8s.io`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, integer, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonObject, JsonValue

_VERSION: Final = "metrics.k8s.io/v1beta1"
NODE_METRICS: Final = (_VERSION, "NodeMetrics")
POD_METRICS: Final = (_VERSION, "PodMetrics")


def usage_objects(summary: JsonValue) -> Iterator[JsonObject]:
    """Yield the usage of a node and of its pods. Containers without a measured usage are left out."""
    node = child(summary, "node")
    if (usage := _usage(node)) and text(node, "nodeName"):
        yield _metrics(NODE_METRICS, {"name": text(node, "nodeName")}, node, {"usage": usage})
    for pod in children(summary, "pods"):
        containers: list[JsonValue] = [
            {"name": text(each, "name"), "usage": used}
            for each in children(pod, "containers")
            if (used := _usage(each))
        ]
        place = {"name": text(pod, "podRef", "name"), "namespace": text(pod, "podRef", "namespace")}
        if containers and all(place.values()):
            yield _metrics(POD_METRICS, place, pod, {"containers": containers})


def _metrics(kind: tuple[str, str], metadata: JsonObject, measured: JsonObject, content: JsonObject) -> JsonObject:
    time = text(measured, "cpu", "time") or text(measured, "memory", "time")
    head: JsonObject = {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata}
    return {**head, "timestamp": time, "window": "0s", **content}


def _usage(measured: JsonObject) -> JsonObject:
    if "usageNanoCores" not in child(measured, "cpu") or "workingSetBytes" not in child(measured, "memory"):
        return {}
    cores, used_bytes = integer(measured, "cpu", "usageNanoCores"), integer(measured, "memory", "workingSetBytes")
    return {"cpu": f"{cores}n", "memory": f"{used_bytes // 1024}Ki"}
