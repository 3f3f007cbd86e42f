"""`kubernetes_logs` on the real cluster: what a node really says about crashed, waiting and busy containers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.toolsets.kubernetes_logs.reader import ReadLimits
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, KubernetesLogsToolset
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult
from tests.cluster.fixtures import apply_fault, wait_until

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue
    from tests.cluster.handle import Cluster, User

pytestmark = pytest.mark.cluster

SHELL_IMAGE = "registry.shop.example/checkout:2.4.1"


def _environment(cluster: Cluster, namespace: str, user: User = "viewer") -> Environment:
    kubeconfig = str(cluster.kubeconfig(user))
    return Environment.of({"KUBECONFIG": kubeconfig, "HOLMES_KUBE_NAMESPACE": namespace, "PATH": os.environ["PATH"]})


def _logs(cluster: Cluster, namespace: str, *, user: User = "viewer", **arguments: JsonValue) -> ToolResult:
    toolset = KubernetesLogsToolset(_environment(cluster, namespace, user), ReadLimits(timeout_seconds=20))
    invocation = ToolInvocation(call_id=ToolCallId("c"), tool=KUBERNETES_LOGS, arguments=arguments)
    return asyncio.run(toolset.call(invocation))


def _apply(cluster: Cluster, namespace: str, manifest: dict[str, JsonValue]) -> None:
    process = [str(cluster.kubectl), f"--kubeconfig={cluster.admin}", "apply", f"--namespace={namespace}", "-f", "-"]
    subprocess.run(process, input=json.dumps(manifest), text=True, check=True, capture_output=True, timeout=60)


def _pod(name: str, *, containers: dict[str, str], init: dict[str, str] | None = None) -> dict[str, JsonValue]:
    def entries(scripts: dict[str, str]) -> list[JsonValue]:
        return [{"name": one, "image": SHELL_IMAGE, "command": ["sh", "-c", script]} for one, script in scripts.items()]

    spec: dict[str, JsonValue] = {
        "containers": entries(containers),
        "initContainers": entries(init or {}),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _finished(cluster: Cluster, namespace: str, name: str) -> None:
    wait_until(
        f"pod {name} has ended",
        lambda: cluster.run("get", "pod", name, f"--namespace={namespace}", "--output=jsonpath={.status.phase}"),
        lambda phase: phase in {"Succeeded", "Failed"},
    )


async def test_probe_names_the_real_server(cluster: Cluster) -> None:
    async with await ClusterClient.connect(_environment(cluster, "default")) as client:
        found = await client.probe()

    assert found.server == cluster.server
    assert re.fullmatch(r"v1\.34\.\d+.*", found.version)


def test_a_crash_loop_shows_the_last_words_by_the_name_of_the_deployment(cluster: Cluster, namespace: str) -> None:
    apply_fault(cluster, namespace, "crash-loop")

    result = wait_until(
        "the crash is in the log",
        lambda: _logs(cluster, namespace, name="checkout", kind="Deployment"),
        lambda found: "CrashLoopBackOff" in found.data,
        timeout_seconds=90,
    )

    assert result.status == "success"
    assert "FATAL: could not connect to db.shop.svc:5432: connection refused" in result.data
    assert "exited 3 (Error)" in result.data
    assert "showing 3 of 3 lines" in result.data


def test_a_pod_that_cannot_pull_its_image_says_so(cluster: Cluster, namespace: str) -> None:
    apply_fault(cluster, namespace, "image-pull-error")
    name = json.loads(cluster.run("get", "deployment", f"--namespace={namespace}", "--output=json"))["items"][0]

    result = wait_until(
        "the pull failed",
        lambda: _logs(cluster, namespace, name=name["metadata"]["name"]),
        lambda found: "ImagePull" in found.data,
    )

    assert result.status == "no_data"
    assert re.search(r"- pod \S+, container \S+: waiting: (ErrImagePull|ImagePullBackOff): ", result.data)


def test_lines_of_all_containers_are_counted_exactly(cluster: Cluster, namespace: str) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"
    _apply(
        cluster,
        namespace,
        _pod(
            "busy", init={"prepare": "echo prepared"}, containers={"app": script, "side": "echo ERROR on the side >&2"}
        ),
    )
    _finished(cluster, namespace, "busy")

    everything = _logs(cluster, namespace, name="busy", tail=5)
    matching = _logs(cluster, namespace, name="busy", include="line 29[0-9]+$|error")

    assert "showing 5 of 3,000 lines" in everything.data
    assert "prepared" in everything.data
    assert "line 2999" in everything.data
    assert "showing 110 of 110 matching lines (3,000 lines read)" in matching.data
    assert "ERROR on the side" in matching.data


def test_a_time_range_leaves_out_what_is_older_and_newer(cluster: Cluster, namespace: str) -> None:
    _apply(
        cluster, namespace, _pod("clock", containers={"app": "echo first; sleep 3; echo second; sleep 3; echo third"})
    )
    _finished(cluster, namespace, "clock")
    stamps = {
        line.split()[1]: line.split()[0]
        for line in cluster.run("logs", "clock", f"--namespace={namespace}", "--timestamps").splitlines()
    }

    until = datetime.fromisoformat(stamps["third"]) - timedelta(seconds=1)

    result = _logs(cluster, namespace, name="clock", since=stamps["second"], until=until.isoformat())

    shown = [line.split()[-1] for line in result.data.splitlines() if line.startswith(stamps["first"][:4])]
    assert shown == ["second"]


def test_a_user_without_rights_is_told_what_to_check(cluster: Cluster, namespace: str) -> None:
    from holmes.kubernetes.errors import Forbidden

    with pytest.raises(Forbidden, match=rf"may not get pods 'x' .*kubectl auth can-i get pods -n {namespace}"):
        _logs(cluster, namespace, user="nobody", name="x", kind="Pod")
