"""`kubernetes_logs` with VictoriaLogs: pods that are gone, lines that nodes no longer have, and sources that fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from holmes.kubernetes.errors import NotFound
from holmes.observability.logs.source import LogAccess
from holmes.toolsets.kubernetes_logs.reader import ReadLimits
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, KubernetesLogsToolset
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.observability.logs.records import BEGIN, Line, send_to_victoria_logs
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    Request,
    document,
    ended,
    kubernetes_api,
    listing,
    log,
    pod,
    running,
    status,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult

NODE_BEGIN: Final = 1_738_317_600 - BEGIN
"""The time of the first line of a node's log, as `records` counts time."""
NAMESPACE: Final = "pod-logs"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
REPLICA_SETS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
GONE: Final = "checkout-7d9c8b6f5-x2k4p"
POD: Final = "checkout-6b5d8f7c9-9vvcz"
RANGE: Final = {"since": "2025-01-31T09:00:00Z", "until": "2025-01-31T10:30:00Z", "namespace": NAMESPACE}


@pytest.fixture(scope="module")
def source(victoria_logs_url: str) -> LogAccess:
    """A deleted pod that failed, lines of an existing one before those of its node, and a pod with a similar name."""

    def line(at: float, text: str, pod: str) -> Line:
        return Line(at=NODE_BEGIN + at, text=text, pod=pod, namespace=NAMESPACE)

    lines = [line(each - 2_000, f"GET /cart {each}", GONE) for each in range(200)]
    lines += [line(each - 1_800, "could not connect to db:5432: connection refused", GONE) for each in range(40)]
    lines += [line(each - 100, f"early {each}", POD) for each in range(20)]
    lines += [line(-60, "panic: nil\n\tmain.go:7", "crashed")]
    lines += [line(-1_990, "not mine", "checkout-api-7d9c8b6f5-9vvcz")]
    lines += [line(-1_950, "started", f"replicas-{each}") for each in range(5)]
    send_to_victoria_logs(victoria_logs_url, sorted(lines, key=lambda each: each.at), "fluent-bit")
    return LogAccess(name="prod", url=victoria_logs_url, product="victorialogs")


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


@pytest.fixture
def environment(api: KubernetesApi, tmp_path: Path) -> Environment:
    return Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})


def call(environment: Environment, *sources: LogAccess, **arguments: JsonValue) -> ToolResult:
    toolset = KubernetesLogsToolset(environment, ReadLimits(timeout_seconds=5), sources)
    invocation = ToolInvocation(call_id=ToolCallId("c"), tool=KUBERNETES_LOGS, arguments={**RANGE, **arguments})
    return asyncio.run(toolset.call(invocation))


def test_the_log_of_a_deleted_pod_is_analysed_as_that_of_a_running_one(
    environment: Environment, source: LogAccess
) -> None:
    result = call(environment, source, name=GONE, tail=3)
    lines = result.data.splitlines()
    assert lines[0].startswith(
        f"Logs of Pod '{GONE}' in namespace 'pod-logs': 1 of 1 pods, 1 container log, showing 3 of "
    )
    assert "showing 3 of 240 matching lines (240 lines read)" in lines[0]
    assert lines[1] == f"From log source prod, no longer in the cluster: {GONE}"
    assert lines[2] == "Trouble in the last lines of these logs, found by the built-in rules:"
    assert "connection refused" in lines[3]
    assert "not before" in lines[3]
    assert f"=== pod {GONE}, container app, from log source prod: the pod no longer exists" in lines
    assert lines[-1] == "2025-01-31T09:30:39Z could not connect to db:5432: connection refused"


def on_deployment(api: KubernetesApi) -> None:
    """A Deployment with one pod, whose node has two lines."""
    selector = {"matchLabels": {"app": "checkout"}}
    metadata = {"name": "checkout", "namespace": NAMESPACE, "uid": "d"}
    api.on(f"{DEPLOYMENTS}/checkout", document({"metadata": metadata, "spec": {"selector": selector}}))
    owner = [{"kind": "Deployment", "name": "checkout", "uid": "d", "controller": True}]
    api.on(
        REPLICA_SETS,
        listing([{"metadata": {"name": "r", "uid": "r", "ownerReferences": owner, "labels": {"app": "checkout"}}}]),
    )
    api.on(PODS, listing([pod(POD, namespace=NAMESPACE, owner="r", labels={"app": "checkout"})]))
    api.on(f"{PODS}/{POD}/log", log(["late 0", "late 1"]))


def test_deleted_pods_and_earlier_lines_join_the_logs_of_a_workload(
    api: KubernetesApi, environment: Environment, source: LogAccess
) -> None:
    on_deployment(api)
    result = call(environment, source, name="checkout", tail=10)
    head, *lines = result.data.splitlines()
    assert "2 of 2 pods, 3 container logs, showing 20 of 262 matching lines (262 lines read); searched with" in head
    headings = [line for line in lines if line.startswith(("===", "From"))]
    assert headings == [
        f"From log source prod, no longer in the cluster: {GONE}",
        f"=== pod {POD}, container app, from log source prod: running since 2025-01-31T10:00:00Z, ready",
        f"=== pod {POD}, container app: running since 2025-01-31T10:00:00Z, ready",
        f"=== pod {GONE}, container app, from log source prod: the pod no longer exists",
    ]
    assert lines.index("2025-01-31T09:58:39Z early 19") < lines.index("2025-01-31T10:00:00.123Z late 0")
    assert "not mine" not in result.data


def test_deleted_pods_beyond_the_limit_are_counted(environment: Environment, source: LogAccess) -> None:
    lines = call(environment, source, name="replicas", kind="StatefulSet", max_pods=2, tail=1).data.splitlines()
    assert "From log source prod, 2 of 5 other pods are read; raise max_pods to read the others" in lines
    assert "From log source prod, no longer in the cluster: replicas-0, replicas-1" in lines


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (status(403, "Forbidden", "no"), "not known if still in the cluster, because the API server did not answer"),
        (Answer(delay_seconds=4), "not known if still in the cluster, because the API server did not answer"),
        (document(pod(GONE, namespace=NAMESPACE)), "still in the cluster, but not found as pods of this workload"),
    ],
    ids=["forbidden", "time-out", "of another owner"],
)
def test_only_a_pod_that_the_api_server_does_not_find_is_called_deleted(
    api: KubernetesApi, environment: Environment, source: LogAccess, answer: Answer, told: str
) -> None:
    on_deployment(api)
    api.on(f"{PODS}/{GONE}", answer)
    text = call(environment, source, name="checkout", tail=10).data
    assert f"From log source prod, {told}" in text
    assert f"=== pod {GONE}, container app, from log source prod: state unknown" in text
    assert "no longer" not in text


def test_the_lost_log_of_the_previous_instance_is_read_from_the_source(
    api: KubernetesApi, environment: Environment, source: LogAccess
) -> None:
    def respond(request: Request) -> Answer:
        if request.query.get("previous") == "true":
            return Answer(body=b"unable to retrieve container logs for containerd://0123456789abcdef\n")
        return Answer(body=b"2025-01-31T10:00:00.1Z started\n")

    containers = {"app": running(restarts=1, last=ended(2))}
    api.on(f"{PODS}/crashed", document(pod("crashed", namespace=NAMESPACE, containers=containers)))
    api.on(f"{PODS}/crashed/log", respond)
    result = call(environment, source, name="crashed")
    heading = "=== pod crashed, container app (previous instance), from log source prod: exited 2 (Error) at 2025-01-31"
    assert heading in result.data
    assert "2025-01-31T09:59:00Z panic: nil\n2025-01-31T09:59:00Z \tmain.go:7\n===" in result.data
    assert "the node has already deleted this log" not in result.data
    alone = call(environment, name="crashed")
    assert "the node has already deleted this log" in alone.data


def test_a_node_that_does_not_answer_costs_no_log_that_the_source_has(
    api: KubernetesApi, environment: Environment, source: LogAccess
) -> None:
    api.on(f"{PODS}/{POD}", document(pod(POD, namespace=NAMESPACE)))
    api.on(f"{PODS}/{POD}/log", status(500, "InternalError", "dial tcp 10.0.0.9:10250: i/o timeout"))
    assert call(environment, name=POD).status == "error"
    result = call(environment, source, name=POD, tail=2)
    assert result.status == "success"
    assert result.data.endswith("2025-01-31T09:58:38Z early 18\n2025-01-31T09:58:39Z early 19")


@pytest.mark.parametrize("include", ["REFUSED|timeout", r"\brefused$"])
def test_filters_work_alike_whether_the_source_or_holmes_searches(
    environment: Environment, source: LogAccess, include: str
) -> None:
    result = call(environment, source, name=GONE, include=include, tail=1)
    assert "showing 1 of 40 matching lines" in result.data
    assert result.data.endswith("connection refused")


def test_a_pod_of_which_nothing_is_stored_is_not_found(environment: Environment, source: LogAccess) -> None:
    with pytest.raises(ToolError, match=r"Not found.*Log source prod has no lines of these pods in the range"):
        call(environment, source, name="checkout-ap")
    with pytest.raises(NotFound):
        call(environment, name="checkout-ap")


def test_the_second_source_is_read_if_the_first_fails(environment: Environment, source: LogAccess) -> None:
    away = LogAccess(name="away", url="http://127.0.0.1:9", product="loki")
    result = call(environment, away, source, name=GONE, tail=1)
    assert result.data.endswith("connection refused")
