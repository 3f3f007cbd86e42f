"""Sources are found and read by a real pod of the chart, with the rights that the chart gives it.

The source is a real Prometheus behind a Service that is labelled like that of the usual charts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from holmes.values.json_types import JsonObject, JsonValue
from tests.cluster.fixtures import Cluster, create_namespace, wait_until
from tests.cluster.images import SHOP
from tests.cluster.layout import REGISTRY
from tests.helm.chart import CHART, Helm, at
from tests.helm.release import VALUES, Release, place_for_release

pytestmark = [
    *(pytest.mark.cluster, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(400)),
    pytest.mark.usefixtures("image"),
]

NAME: Final = "app.kubernetes.io/name"
SCRAPES: Final = {
    "global": {"scrape_interval": "1s"},
    "scrape_configs": [
        {"job_name": "cadvisor", "honor_labels": True, "static_configs": [{"targets": ["127.0.0.1:8000"]}]}
    ],
}
# The node's Debian has the programs and their libraries. The container has used 97 % of its memory for three hours,
# because a few samples do not stand out.
PROMETHEUS: Final = r"""
set -- /host/lib/*-linux-gnu/ld-linux-*
program() { name=$1; shift; "$loader" --library-path "${loader%/*}" "/host/bin/$name" "$@"; }
loader=$1 now=$(date +%s) labels="namespace=\"$NAMESPACE\",pod=\"$HOSTNAME\",container=\"prometheus\""
samples() { echo "# TYPE ${1%%{*} gauge"; for at in $(seq $((now - 10800)) 60 "$now"); do echo "$1 $2 $at"; done; }
{ samples "container_memory_working_set_bytes{$labels}" 97e6
  samples "kube_pod_container_resource_limits{$labels,resource=\"memory\"}" 100e6
  echo "# EOF"
} > /tmp/history
grep "$now\$" /tmp/history | sed "s/ $now\$//" > /metrics/metrics
program promtool tsdb create-blocks-from openmetrics /tmp/history /tmp/data
program prometheus --config.file=/config/prometheus.yml --storage.tsdb.path=/tmp/data
"""
EXPOSED: Final = "exec httpd -f -p 8000 -h /metrics"
# Accepts connections and requests, and never answers.
SILENT: Final = "exec nc -ll -p 9090 -e sh -c 'cat >> /tmp/requests'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """A namespace with a Prometheus, and the pod of Holmes."""

    release: Release
    namespace: str

    def holmes(self, arguments: str, **variables: str) -> str:
        """What the program prints in the pod of the server."""
        told = " ".join(f"{name}={value}" for name, value in {"HOME": "/tmp", **variables}.items())
        return self.release.inside(f"{told} holmes {arguments} --config /etc/holmes/config.yaml || true")

    def ask(self, **variables: str) -> str:
        """The answer to a question about the workload whose metrics are read."""
        question = f"Is deployment prometheus in namespace {self.namespace} healthy?"
        return self.holmes(f"ask -n --model builtin/triage '{question}'", **variables)

    def state(self, **variables: str) -> str:
        """The line of the toolset of metrics."""
        lines = self.holmes("toolset list", **variables).splitlines()
        (line,) = (each for each in lines if each.startswith("prometheus/metrics "))
        return " ".join(line.split()[1:])

    def lead_to(self, app: str) -> None:
        """Let the Service lead to the pods of `app`."""
        patch = json.dumps({"spec": {"selector": {"app": app}}})
        self.kubectl("patch", "service", "prometheus", f"--patch={patch}")

    def kubectl(self, *arguments: str) -> str:
        return self.release.cluster.run(f"--namespace={self.namespace}", *arguments)


def _deployment(app: str, scripts: dict[str, str]) -> JsonObject:
    own: JsonObject = {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    mounts: list[JsonValue] = [{"name": name, "mountPath": f"/{name}"} for name in ("config", "metrics")]
    mounts.append({"name": "host", "mountPath": "/host", "readOnly": True})
    containers: list[JsonValue] = [
        {
            "name": name,
            "image": f"{REGISTRY}/{SHOP[0]}",
            "command": ["sh", "-c", script],
            "env": [own],
            "volumeMounts": mounts,
        }
        for name, script in scripts.items()
    ]
    volumes: list[JsonValue] = [
        {"name": "host", "hostPath": {"path": "/usr"}},
        {"name": "config", "configMap": {"name": "prometheus"}},
        {"name": "metrics", "emptyDir": {}},
    ]
    template: JsonObject = {
        "metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": containers, "volumes": volumes},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": template},
    }


def _service(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {NAME: "prometheus"}},
        "spec": {"selector": {"app": "prometheus"}, "ports": [{"name": "http-web", "port": 9090}]},
    }


def _apply(cluster: Cluster, namespace: str, objects: Sequence[JsonValue], folder: pytest.TempPathFactory) -> None:
    file = folder.mktemp("objects") / "list.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    cluster.run("apply", f"--namespace={namespace}", f"--filename={file}")


@pytest.fixture(scope="module")
def monitoring(cluster: Cluster, chart_helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitoring]:
    release = place_for_release(cluster, chart_helm)
    namespace = create_namespace(cluster, "monitoring")
    config: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus"},
        "data": {"prometheus.yml": json.dumps(SCRAPES)},
    }
    running = _deployment("prometheus", {"prometheus": PROMETHEUS, "exposed": EXPOSED})
    objects: list[JsonValue] = [config, running, _deployment("silent", {"silent": SILENT}), _service("prometheus")]
    try:
        _apply(cluster, namespace, objects, tmp_path_factory)
        _install(release, cluster, namespace)
        yield Monitoring(release=release, namespace=namespace)
        release.helm_run("uninstall", "holmes")
    finally:
        cluster.run("delete", "namespace", namespace, release.namespace, "--wait=false")


def _install(release: Release, cluster: Cluster, namespace: str) -> None:
    """Install the chart, and give its pod the name of the Service, because the test cluster has no DNS."""
    values: JsonObject = {**VALUES, "replicas": 0, "persistence": {"enabled": False}}
    release.helm_run("install", "holmes", str(CHART), values=values)
    service = json.loads(cluster.run(f"--namespace={namespace}", "get", "service", "prometheus", "--output=json"))
    alias = {"ip": at(service, "spec")["clusterIP"], "hostnames": [f"prometheus.{namespace}.svc"]}
    patch = {"spec": {"replicas": 1, "template": {"spec": {"hostAliases": [alias]}}}}
    release.kubectl("patch", "deployment", "holmes", f"--patch={json.dumps(patch)}")
    release.kubectl("rollout", "status", "deployment/holmes", "--timeout=110s")


def test_the_only_source_is_found_and_read(monitoring: Monitoring) -> None:
    state = wait_until("the source is read", monitoring.state, lambda line: line.startswith("enabled"))
    assert "prometheus: Prometheus 2" in state
    assert state.endswith("found in the cluster")
    answer = monitoring.ask()
    assert re.search(r"^- Metrics now: memory of its limit .*97 %", answer, re.MULTILINE), answer


def test_a_source_is_not_read_if_the_search_is_off(monitoring: Monitoring) -> None:
    assert monitoring.state(HOLMES_DISCOVER_SOURCES="false") == "disabled not configured"
    assert "Metrics" not in monitoring.ask(HOLMES_DISCOVER_SOURCES="false")


def test_of_two_sources_none_is_read(monitoring: Monitoring, tmp_path_factory: pytest.TempPathFactory) -> None:
    second = create_namespace(monitoring.release.cluster, "monitoring")
    try:
        _apply(monitoring.release.cluster, second, [_service("other")], tmp_path_factory)
        state = monitoring.state()
        assert "Metrics" not in monitoring.ask()
    finally:
        monitoring.release.cluster.run("delete", "namespace", second)
    named = sorted((f"{monitoring.namespace}/prometheus", f"{second}/other"))
    assert state == (
        f"disabled not configured; found {', '.join(f'prometheus (Service {each})' for each in named)}; "
        "see holmes toolset show prometheus/metrics"
    )


def test_a_source_that_never_responds_gets_no_login_and_costs_one_line(monitoring: Monitoring) -> None:
    monitoring.lead_to("silent")
    state = wait_until("the Service leads there", monitoring.state, lambda line: "no response" in line)
    assert state.startswith("disabled not configured; found prometheus")
    assert state.endswith("not used: no response within 5 s")
    sent = monitoring.kubectl("exec", "deployment/silent", "--", "cat", "/tmp/requests").lower()
    assert "get /api/v1/" in sent
    assert "authorization" not in sent
    assert "cookie" not in sent


def test_a_source_that_cannot_be_reached_costs_one_line(monitoring: Monitoring) -> None:
    monitoring.lead_to("nothing")
    state = wait_until("the Service leads nowhere", monitoring.state, lambda line: "no response" not in line)
    assert "not used: prometheus (http://prometheus." in state
    assert "the connection is refused" in state
    answer = monitoring.ask()
    assert "**Healthy**" in answer, answer
    assert "Metrics" not in answer
