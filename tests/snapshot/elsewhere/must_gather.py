"""Writes a must-gather of the test cluster in the layout of `oc adm must-gather`, which needs OpenShift itself.

The objects and logs are those of the real API server. The layout follows OpenShift's documentation: one folder for each
image, lists by namespace, group and resource, cluster-scoped objects one by one, and the logs below their pods.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.handle import Cluster

IMAGES = ("quay-io-openshift-must-gather-sha256-1a2b", "registry-example-storage-gather-sha256-3c4d")
_NAMESPACED = {
    "core": ("v1", ("configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "secrets", "services")),
    "apps": ("apps/v1", ("daemonsets", "deployments", "replicasets", "statefulsets")),
    "batch": ("batch/v1", ("cronjobs", "jobs")),
    "autoscaling": ("autoscaling/v2", ("horizontalpodautoscalers",)),
    "discovery.k8s.io": ("discovery.k8s.io/v1", ("endpointslices",)),
    "networking.k8s.io": ("networking.k8s.io/v1", ("networkpolicies",)),
    "policy": ("policy/v1", ("poddisruptionbudgets",)),
}
_OF_CLUSTER = {
    "core": ("v1", ("nodes", "persistentvolumes")),
    "storage.k8s.io": ("storage.k8s.io/v1", ("storageclasses",)),
}


def write_must_gather(cluster: Cluster, folder: Path, namespaces: tuple[str, ...]) -> None:
    """Write the folders of two images. The second has only the nodes again, as most additional images have."""
    first, second = (folder / name for name in IMAGES)
    for namespace in namespaces:
        _write_namespace(cluster, first / "namespaces" / namespace, namespace)
    for group, (version, resources) in _OF_CLUSTER.items():
        for resource in resources:
            for item in _items(cluster, f"{_root(version)}/{resource}", version):
                _write(first / "cluster-scoped-resources" / group / resource / f"{_name(item)}.yaml", item)
    for node in _items(cluster, "/api/v1/nodes", "v1"):
        _write(second / "cluster-scoped-resources" / "core" / "nodes" / f"{_name(node)}.yaml", node)
    for image in (first, second):
        (image / "version").write_text("must-gather\n4.16.0\n")
    (folder / "event-filter.html").write_text("<html></html>\n")
    (folder / "timestamp").write_text("2026-01-31 12:00:00 +0000 UTC m=+0.1\n2026-01-31 12:01:00 +0000 UTC m=+60.1\n")


def _write_namespace(cluster: Cluster, folder: Path, namespace: str) -> None:
    own = json.loads(cluster.run("get", "--raw", f"/api/v1/namespaces/{namespace}"))
    _write(folder / f"{namespace}.yaml", own)
    for group, (version, resources) in _NAMESPACED.items():
        for resource in resources:
            path = f"{_root(version)}/namespaces/{namespace}/{resource}"
            listed = json.loads(cluster.run("get", "--raw", path))
            listed["items"] = _items(cluster, path, version)
            if resource == "secrets":
                for item in listed["items"]:
                    item.pop("data", None)
            _write(folder / group / f"{resource}.yaml", listed)
    for pod in _items(cluster, f"/api/v1/namespaces/{namespace}/pods", "v1"):
        _write(folder / "pods" / _name(pod) / f"{_name(pod)}.yaml", pod)
        for status in pod["status"].get("containerStatuses", []):
            _write_logs(cluster, folder / "pods" / _name(pod) / status["name"], pod, status["name"])


def _write_logs(cluster: Cluster, folder: Path, pod: dict[str, Any], container: str) -> None:
    logs = folder / container / "logs"
    logs.mkdir(parents=True)
    target = (_name(pod), f"--namespace={pod['metadata']['namespace']}", f"--container={container}", "--timestamps")
    for name, more in (("current.log", ()), ("previous.log", ("--previous",))):
        done = cluster.attempt("logs", *target, *more)
        (logs / name).write_text(done.stdout if done.returncode == 0 else "")
    (logs / "previous.insecure.log").write_text("")


def _items(cluster: Cluster, path: str, version: str) -> list[dict[str, Any]]:
    listed = json.loads(cluster.run("get", "--raw", path))
    kind = listed["kind"].removesuffix("List")
    return [{"apiVersion": version, "kind": kind, **item} for item in listed["items"] or []]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _name(item: dict[str, Any]) -> str:
    return str(item["metadata"]["name"])


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n" + yaml.safe_dump(document, sort_keys=True))
