"""The signals of real exporters: their names and labels, and faults that are read from them on the real cluster."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import httpx
import psycopg
import pytest

from holmes.observability.metrics.signal_catalogue import SIGNALS
from tests.cluster.fixtures import Cluster, create_namespace, wait_until
from tests.services.exporters import node_exporter, postgresql_exporter, redis, redis_exporter
from tests.services.postgresql import OWNER, PostgresqlServer
from tests.support.command_line import Home
from tests.support.state_exporter import kubelet_exporter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.services.fixtures import RunMonitor

pytestmark = pytest.mark.cluster

_NODE: Final = "node1"
_MOST_CLIENTS: Final = 50
_METRIC: Final = re.compile(r"\b([a-z]\w*_\w+)\{([^}]*)\}")
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? ", re.MULTILINE)
_LABEL: Final = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")
_ABSENT: Final = {
    "pg_replication_lag": "this server is no replica",
    "pg_replication_lag_seconds": "this server is no replica, and the exporter is older than this name",
}
_POD: Final = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: app
      image: registry.shop.example/busybox:1.0
      command: [sh, -c, "{command}"]
      resources: {{limits: {{cpu: 50m, memory: 32Mi}}}}
"""
_PODS: Final = {
    "busy": "yes > /dev/null",
    **dict.fromkeys(("idle", "full-db", "db", "full-cache", "cache"), "sleep 3600"),
}


@pytest.fixture(scope="module")
def own_postgresql() -> Iterator[PostgresqlServer]:
    server = PostgresqlServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def limited(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield what the kubelet measures, among other things of a pod with a limit."""
    namespace = create_namespace(cluster, "exporters")
    file = tmp_path_factory.mktemp("exporters") / "idle.yaml"
    file.write_text(_POD.format(name="idle", command="sleep 3600"))
    cluster.run("apply", f"--namespace={namespace}", f"--filename={file}")
    with kubelet_exporter(cluster, _NODE) as address:
        own = f'container_cpu_cfs_periods_total{{[^}}]*namespace="{namespace}"'
        yield wait_until(
            "the kubelet measures the pod",
            lambda: httpx.get(f"http://{address}/metrics", timeout=20).text,
            lambda text: re.search(own, text) is not None,
            timeout_seconds=120,
        )
    cluster.run("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def expositions(own_postgresql: PostgresqlServer, cluster: Cluster, limited: str) -> Mapping[str, str]:
    """Return what each exporter says, by the beginning of its names."""
    with ExitStack() as stack:
        port = stack.enter_context(redis(_MOST_CLIENTS))
        addresses = {
            "node_": stack.enter_context(node_exporter()),
            "pg_": stack.enter_context(postgresql_exporter(own_postgresql.port, OWNER)),
            "redis_": stack.enter_context(redis_exporter(port)),
        }
        texts = {name: httpx.get(f"http://{each}/metrics", timeout=20).text for name, each in addresses.items()}
    return {**texts, "container_": limited, "apiserver_": cluster.run("get", "--raw", "/metrics")}


@pytest.mark.parametrize("beginning", ["node_", "pg_", "redis_", "container_", "apiserver_"])
def test_an_exporter_has_the_metrics_and_labels_of_its_signals(beginning: str, expositions: Mapping[str, str]) -> None:
    offered: dict[str, set[str]] = {}
    for name, labels in _SAMPLE.findall(expositions[beginning]):
        offered.setdefault(name, set()).update(_LABEL.findall(labels))
    wanted: dict[str, set[str]] = {}
    for signal in SIGNALS:
        for name, labels in _METRIC.findall(signal.query):
            if name.startswith(beginning) and name not in _ABSENT:
                wanted.setdefault(name, set()).update(set(_LABEL.findall(labels)) - {"instance"})
    assert wanted
    assert wanted.keys() <= offered.keys()
    assert {name: lacking for name, labels in wanted.items() if (lacking := labels - offered[name])} == {}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_faults_and_their_twins_are_read_from_real_exporters(
    own_postgresql: PostgresqlServer, cluster: Cluster, namespace: str, prometheus: RunMonitor, tmp_path: Path
) -> None:
    for name, command in _PODS.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(_POD.format(name=name, command=command))
        cluster.run("apply", f"--namespace={namespace}", f"--filename={file}")
    with ExitStack() as stack:
        monitor = stack.enter_context(prometheus(_scraped(stack, cluster, namespace, own_postgresql)))
        wait_until(
            "the pods run",
            lambda: cluster.run("get", "pods", f"--namespace={namespace}", "--no-headers"),
            lambda pods: len(re.findall(r" 1/1 +Running ", pods)) == len(_PODS),
            timeout_seconds=120,
        )
        # A signal stands out after three samples, which are a minute apart in a range of three hours.
        time.sleep(240)
        variables = {"PROMETHEUS_URL": monitor.url, "KUBECONFIG": str(cluster.viewer)}
        home = Home.make(tmp_path / "home", config="model: builtin/triage\n", **variables)
        answers = {
            name: home.run("ask", "-n", f"why is pod {name} slow in namespace {namespace}?").stdout for name in _PODS
        }
    told = {
        name: [line.removeprefix("- Metrics ") for line in answer.splitlines() if line.startswith("- Metrics now: ")]
        for name, answer in answers.items()
    }
    assert [line.split(" of ")[0] for line in told["busy"]] == ["now: CPU throttling"]
    assert told["full-db"][0].startswith("now: connections of the maximum of PostgreSQL of ")
    assert told["full-cache"][0].startswith("now: connections of the maximum of Redis of ")
    assert {name: told[name] for name in ("idle", "db", "cache")} == {"idle": [], "db": [], "cache": []}
    assert not any(answer.startswith("**Root cause**") for answer in answers.values())


def _scraped(stack: ExitStack, cluster: Cluster, namespace: str, full: PostgresqlServer) -> dict[str, object]:
    """Start the exporters, use up the connections of a database and of a cache, and return what scrapes them."""
    idle = PostgresqlServer()
    stack.callback(idle.close)
    idle.start()
    for _ in range(190):
        stack.enter_context(psycopg.connect(full.url("postgres")))
    caches = {name: stack.enter_context(redis(_MOST_CLIENTS)) for name in ("full-cache", "cache")}
    for _ in range(_MOST_CLIENTS - 2):
        stack.enter_context(socket.create_connection(("127.0.0.1", caches["full-cache"])))
    targets = {
        **{name: stack.enter_context(redis_exporter(port)) for name, port in caches.items()},
        "full-db": stack.enter_context(postgresql_exporter(full.port, OWNER)),
        "db": stack.enter_context(postgresql_exporter(idle.port, OWNER)),
    }
    labelled = [
        {"targets": [address], "labels": {"namespace": namespace, "pod": pod}} for pod, address in targets.items()
    ]
    kubelet = stack.enter_context(kubelet_exporter(cluster, _NODE))
    return {
        "global": {"scrape_interval": "10s", "scrape_timeout": "10s"},
        "scrape_configs": [
            {"job_name": "exporters", "static_configs": labelled},
            {"job_name": "cadvisor", "honor_labels": True, "static_configs": [{"targets": [kubelet]}]},
        ],
    }
