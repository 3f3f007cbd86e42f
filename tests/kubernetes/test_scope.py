"""SCOPED_NAMESPACES: no request leaves for another namespace, whoever asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.app.cluster import with_choices
from holmes.diagnosis.scan import ScanRequest, scan
from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.errors import Forbidden, NotFound
from holmes.kubernetes.scope import SCOPE_VARIABLE
from holmes.kubernetes.workloads import find_pods
from holmes.settings.load import load_settings
from holmes.toolsets.kubernetes_diagnosis.toolset import DIAGNOSE, KubernetesDiagnosisToolset
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, KubernetesLogsToolset
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.kubernetes_api import (
    KubernetesApi,
    document,
    empty_cluster,
    kubernetes_api,
    listing,
    log,
    pod,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Tool, ToolResult, Toolset

OUTSIDE = "outside SCOPED_NAMESPACES; available: shop, billing"


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    """A cluster that would answer everything."""
    with kubernetes_api() as server:
        for namespace in ("shop", "billing", "other", "kube-system", None):
            empty_cluster(server, namespace)
        names = ("shop", "billing", "other", "kube-system")
        server.on("/api/v1/namespaces", listing([{"metadata": {"name": name, "uid": name}} for name in names]))
        for namespace in ("shop", "other"):
            server.on(f"/api/v1/namespaces/{namespace}/pods/cart", document(pod("cart", namespace=namespace)))
            server.on(f"/api/v1/namespaces/{namespace}/pods/cart/log", log(["hello"]))
        yield server


@pytest.fixture
def environment(api: KubernetesApi, tmp_path: Path) -> Environment:
    """Two namespaces; the kubeconfig itself means another one."""
    file = write_kubeconfig(tmp_path, api.url)
    file.write_text(file.read_text().replace('"namespace": "shop"', '"namespace": "other"'))
    return Environment.of({"KUBECONFIG": str(file), SCOPE_VARIABLE: "shop,billing"})


def asked_namespaces(api: KubernetesApi) -> set[str]:
    return {
        request.path.split("/namespaces/")[1].split("/")[0]
        for request in api.requests
        if "/namespaces/" in request.path
    }


async def call(toolset: Toolset, tool: Tool, **arguments: JsonValue) -> ToolResult:
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/other/pods",
        "/api/v1/namespaces/other/pods/cart/log",
        "/api/v1/namespaces/other",
        "/apis/example.com/v1/namespaces/other/widgets",
        "/api/v1/pods",
        "/apis/apps/v1/deployments",
        "/api/v1/events",
        "/api/v1/nodes/a/proxy/pods",
    ],
)
async def test_a_request_outside_is_refused_before_it_is_sent(
    path: str, api: KubernetesApi, environment: Environment
) -> None:
    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(Forbidden, match=OUTSIDE):
            await client.get(path)
        with pytest.raises(Forbidden, match=OUTSIDE):
            await client.list(path)
        with pytest.raises(Forbidden, match=OUTSIDE):
            async with client.stream_text(path):
                pass
        assert client.namespace == "shop"
    assert api.requests == []


async def test_a_scan_reads_the_scope_and_says_what_it_did_not_read(
    api: KubernetesApi, environment: Environment
) -> None:
    async with await ClusterClient.connect(environment) as client:
        result = await scan(client, ScanRequest())
        with pytest.raises(ConfigError, match=f"namespace 'other' is {OUTSIDE}"):
            await scan(client, ScanRequest(namespaces=("shop", "other")))
    assert asked_namespaces(api) == {"shop", "billing"}
    assert result.report.namespaces == ("shop", "billing")
    assert {each.name for each in result.state.of("Namespace")} == {"shop", "billing"}
    assert "kube-system" in {each.namespace for each in result.state.reading.gaps}


async def test_python_toolsets_stay_inside(api: KubernetesApi, environment: Environment) -> None:
    logs, diagnosis = KubernetesLogsToolset(environment), KubernetesDiagnosisToolset(environment)
    with pytest.raises(Forbidden, match=f"namespace 'other' is {OUTSIDE}"):
        await call(logs, KUBERNETES_LOGS, name="cart", namespace="other")
    assert "hello" in (await call(logs, KUBERNETES_LOGS, name="cart")).data
    with pytest.raises(ConfigError, match=OUTSIDE):
        await call(diagnosis, DIAGNOSE, namespace="other", max_tokens=4_000)
    assert (await call(diagnosis, DIAGNOSE, namespace="*", max_tokens=4_000)).status == "success"
    assert asked_namespaces(api) == {"shop", "billing"}


async def test_a_hint_names_no_namespace_outside(api: KubernetesApi, environment: Environment) -> None:
    api.on("/api/v1/namespaces", listing([{"metadata": {"name": name}} for name in ("shop", "billings-of-others")]))
    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(NotFound) as caught:
            await find_pods(client, kind="pod", name="cart", namespace="billing")
    assert "others" not in str(caught.value)


def test_the_setting_reaches_the_tools_and_a_namespace_outside_is_one_line(tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "SCOPED_NAMESPACES": "shop, billing"}
    assert with_choices(load_settings(variables), {}).get(SCOPE_VARIABLE) == "shop,billing"
    with pytest.raises(ConfigError, match=f"namespace 'other' is {OUTSIDE}"):
        with_choices(load_settings(variables, None, {"namespace": "other"}), {})
    with pytest.raises(ConfigError, match="SCOPED_NAMESPACES='Shop': 'Shop' is not a valid namespace name"):
        load_settings({**variables, "SCOPED_NAMESPACES": "Shop"})
    with pytest.raises(ConfigError, match="SCOPED_NAMESPACES=',': the list contains no namespace"):
        load_settings({**variables, "SCOPED_NAMESPACES": " , "})
