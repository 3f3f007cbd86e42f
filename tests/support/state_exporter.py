"""Metrics of a namespace of the real cluster, as kube-state-metrics names and labels them, for a real Prometheus.

    with state_exporter(cluster, namespace) as address:
        ...  # scrape_configs: static_configs: targets: [address], honor_labels: true

Every scrape reads the API server anew, as the user who may see everything but secrets. It knows the few metrics that
rules of the tests use.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from tests.cluster.handle import Cluster

Json: TypeAlias = dict[str, Any]
Sample: TypeAlias = tuple[str, Mapping[str, str], int]


@contextmanager
def state_exporter(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Yield host and port of a running exporter."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = ("get", "pods,deployments", f"--namespace={namespace}", "--output=json")
            done = cluster.attempt(*query, user="viewer")
            body = exposition(json.loads(done.stdout)["items"]) if done.returncode == 0 else done.stderr
            self.send_response(200 if done.returncode == 0 else 503)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body.encode())

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
