"""Metrics of the real cluster for a real Prometheus.

    with state_exporter(cluster, namespace) as address:
        ...  # scrape_configs: static_configs: targets: [address], honor_labels: true

`state_exporter` names and labels the objects of a namespace as kube-state-metrics does, as far as tests use them.
`kubelet_exporter` has what the kubelet measures. Every scrape reads the cluster anew.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from tests.cluster.handle import Cluster

Json: TypeAlias = dict[str, Any]
Sample: TypeAlias = tuple[str, Mapping[str, str], int]


@contextmanager
def state_exporter(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Yield host and port of a running exporter. It reads as the user who may see everything but secrets."""

    def read() -> str | None:
        query = ("get", "pods,deployments", f"--namespace={namespace}", "--output=json")
        done = cluster.attempt(*query, user="viewer")
        return exposition(json.loads(done.stdout)["items"]) if done.returncode == 0 else None

    with _exporter(read) as address:
        yield address


@contextmanager
def kubelet_exporter(cluster: Cluster, node: str) -> Iterator[str]:
    """Yield host and port at which the metrics of the containers are that the kubelet of `node` measures."""

    def read() -> str | None:
        done = cluster.attempt("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/cadvisor")
        return done.stdout if done.returncode == 0 else None

    with _exporter(read) as address:
        yield address


@contextmanager
def _exporter(read: Callable[[], str | None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = read()
            self.send_response(503 if body is None else 200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def exposition(items: list[Json]) -> str:
    """The metrics of these objects in Prometheus' text format."""
    samples = [sample for item in items for sample in _READERS[item["kind"]](item)]
    return "".join(f"{name}{{{_labels(labels)}}} {value}\n" for name, labels, value in samples)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())


def _of_pod(pod: Json) -> Iterator[Sample]:
    labels = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
    for status in pod["status"].get("containerStatuses", ()):
        container = {**labels, "container": status["name"]}
        yield "kube_pod_container_status_restarts_total", container, status["restartCount"]
        reason = status["state"].get("waiting", {}).get("reason")
        if reason:
            yield "kube_pod_container_status_waiting_reason", {**container, "reason": reason}, 1


def _of_deployment(deployment: Json) -> Iterator[Sample]:
    labels = {"namespace": deployment["metadata"]["namespace"], "deployment": deployment["metadata"]["name"]}
    yield "kube_deployment_spec_replicas", labels, deployment["spec"]["replicas"]
    available = deployment["status"].get("availableReplicas", 0)
    yield "kube_deployment_status_replicas_available", labels, available


_READERS = {"Pod": _of_pod, "Deployment": _of_deployment}
