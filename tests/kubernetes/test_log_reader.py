"""Reading a few logs for the rules: one that cannot be read is told and never ends the scan."""

from __future__ import annotations

from pathlib import Path

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.cluster_state import LogKey
from holmes.kubernetes.log_reader import LogLimits, read_logs
from holmes.values.environment import Environment
from holmes.values.findings import ObjectRef
from tests.support.kubernetes_api import Answer, KubernetesApi, Request, write_kubeconfig


def key(name: str) -> LogKey:
    return LogKey(pod=ObjectRef(kind="Pod", namespace="shop", name=name), container="app", previous=False)


async def test_a_pod_whose_name_fits_no_path_does_not_take_the_other_logs_along(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    quiet_cluster.on("/api/v1/namespaces/shop/pods/web/log", Answer(body=b"panic: no config\n"))
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, quiet_cluster.url))})

    async with await ClusterClient.connect(environment) as client:
        reading = await read_logs(client, [key("we/../b"), key(""), key("web")], LogLimits())

    assert reading.logs == {key("web"): "panic: no config\n"}
    assert ["is not a valid Kubernetes name" in each.why for each in reading.unread] == [True, True]


async def test_a_log_that_is_cut_at_its_bytes_does_not_end_in_half_of_a_token(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    quiet_cluster.on("/api/v1/namespaces/shop/pods/web/log", Answer(body=b"panic: login with a-long-token failed\n"))
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, quiet_cluster.url))})

    async with await ClusterClient.connect(environment) as client:
        reading = await read_logs(client, [key("web")], LogLimits(bytes=23))

    assert reading.logs == {key("web"): "panic: login with "}


async def test_the_newest_lines_of_a_log_with_too_many_bytes_are_read(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    lines = [f"line {number:04} {'x' * 90}\n" for number in range(400)]

    def respond(request: Request) -> Answer:
        wanted = "".join(lines[-int(request.query["tailLines"]) :])
        return Answer(body=wanted[: int(request.query["limitBytes"])].encode())

    quiet_cluster.on("/api/v1/namespaces/shop/pods/web/log", respond)
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, quiet_cluster.url))})

    async with await ClusterClient.connect(environment) as client:
        reading = await read_logs(client, [key("web")], LogLimits(lines=300, bytes=10_000))

    assert reading.logs[key("web")].endswith(lines[-1])
    assert reading.logs[key("web")].count("\n") == 69
