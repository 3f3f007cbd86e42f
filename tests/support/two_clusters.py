"""Two clusters with the same workload: in `eu` it cannot pull its image, in `us` it runs. Both are HTTP servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes_api import (
    Json,
    KubernetesApi,
    document,
    empty_cluster,
    kubernetes_api,
    listing,
    log,
    pod,
    running,
    waiting,
)

POD = "checkout-0"
NO_IMAGE = 'failed to pull and unpack image "registry.example/app:1": not found'
ALERT = {"alertname": "KubePodNotReady", "namespace": "shop", "pod": POD, "severity": "warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoClusters:
    """The servers, and a kubeconfig with a context for each. A third context, `down`, has no server."""

    eu: KubernetesApi
    us: KubernetesApi
    kubeconfig: Path

    @property
    def config(self) -> str:
        """The clusters as a configuration names them."""
        lines = [f"  {name}: {{kubeconfig: {self.kubeconfig}, context: admin@{name}}}" for name in ("eu", "us", "down")]
        return "\n".join(("model: builtin/triage", "clusters:", *lines, ""))


@contextmanager
def two_clusters(folder: Path) -> Iterator[TwoClusters]:
    """Yield the running clusters."""
    with kubernetes_api() as eu, kubernetes_api() as us:
        _fill(eu, waiting("ImagePullBackOff", NO_IMAGE))
        _fill(us, running())
        urls = {"eu": eu.url, "us": us.url, "down": "http://127.0.0.1:1"}
        yield TwoClusters(eu=eu, us=us, kubeconfig=_kubeconfig(folder, urls))


def _fill(api: KubernetesApi, state: Json) -> None:
    empty_cluster(api)
    api.on("/version", document({"gitVersion": "v1.34.0"}))
    ready = "True" if state["ready"] else "False"
    status: Json = {"phase": "Running" if state["ready"] else "Pending", "conditions": [_condition(ready)]}
    metadata = {"creationTimestamp": "2025-01-31T09:00:00Z"}
    own = pod(POD, containers={"app": state}, status=status)
    api.on("/api/v1/pods", listing([{**own, "metadata": {**own["metadata"], **metadata}}]))
    api.on(f"/api/v1/namespaces/shop/pods/{POD}/log", log(["listening on :8080"]))
    api.on("/api/v1/namespaces", listing([{"metadata": {"name": "shop"}, "status": {"phase": "Active"}}]))


def _condition(ready: str) -> Json:
    return {"type": "Ready", "status": ready, "lastTransitionTime": "2025-01-31T10:00:00Z"}


def _kubeconfig(folder: Path, urls: dict[str, str]) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "admin@down",
        "contexts": [
            {"name": f"admin@{name}", "context": {"cluster": name, "user": "admin", "namespace": "shop"}}
            for name in urls
        ],
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in urls.items()],
        "users": [{"name": "admin", "user": {}}],
    }
    path = folder / "clusters.yaml"
    path.write_text(json.dumps(content))
    return path
