"""The shipped kubectl tools on the real cluster."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from holmes.assets import toolset_files
from holmes.core.environment import Environment
from holmes.core.messages import ToolCallId
from holmes.core.tools import ToolInvocation
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.core.json_types import JsonValue
    from holmes.core.tools import ToolResult, Toolset
    from tests.cluster.fixtures import Cluster

pytestmark = pytest.mark.cluster

_PLANTED = "hunter2-planted-value"


async def _toolset(kubeconfig: Path, namespace: str, kubectl: Path) -> Toolset:
    path = f"{kubectl.parent}:{os.environ['PATH']}"
    environment = Environment.of({"PATH": path, "HOME": "/nonexistent", "KUBECONFIG": str(kubeconfig)})
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=()), environment)
    context = ToolsetContext(environment=environment, results=None, config={}, cluster_namespace=namespace)
    readiness = await check_toolsets(catalogue, context)
    return next(each.toolset for each in readiness.ready if each.toolset.name == "kubernetes/core")


async def _call(toolset: Toolset, tool_name: str, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == tool_name)
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))


async def test_no_tool_shows_the_value_of_a_secret(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    manifest = tmp_path / "secret.json"
    secret: dict[str, JsonValue] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "applied"},
        "stringData": {"password": _PLANTED},
    }
    token: dict[str, JsonValue] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret, token]}))
    cluster.run("apply", f"--namespace={namespace}", f"--filename={manifest}")
    jsonpath = "--output=jsonpath={.data.token}"
    cluster.run("wait", f"--namespace={namespace}", "--for=jsonpath={.data.token}", "secret/token", "--timeout=20s")
    encoded = cluster.run("get", f"--namespace={namespace}", "secret", "applied", "--output=jsonpath={.data.password}")
    planted = {_PLANTED, encoded, cluster.run("get", f"--namespace={namespace}", "secret", "token", jsonpath), "eyJ"}
    toolset = await _toolset(cluster.admin, namespace, cluster.kubectl)
    calls: list[tuple[str, dict[str, JsonValue]]] = [
        ("kubectl_get", {"kind": "secrets"}),
        ("kubectl_get", {"kind": "secrets", "output": "wide"}),
        ("kubectl_get", {"kind": "secrets", "output": "labels"}),
        ("kubectl_get", {"kind": "secrets", "output": "yaml"}),
        ("kubectl_get", {"kind": "secret/applied", "output": "yaml"}),
        ("kubectl_get", {"kind": "pods,secrets", "namespace": "*", "output": "yaml"}),
        ("kubectl_describe", {"kind": "secret"}),
        ("kubectl_jq", {"kind": "secrets", "expression": "., (.. | strings)"}),
        ("kubectl_columns", {"kind": "secrets", "columns": "A:.data.password,B:.metadata.annotations,C:.data"}),
        ("kubectl_count", {"kind": "secrets", "by": ".data.password"}),
    ]
    for name, arguments in calls:
        result = await _call(toolset, name, **arguments)
        assert result.status == "success", (name, arguments, result)
        assert not [value for value in planted if value in result.data], (name, arguments)
    described = await _call(toolset, "kubectl_describe", kind="secret", name="token")
    assert "token:  (hidden)" in described.data


async def test_a_forbidden_resource_is_an_error_with_the_servers_own_words(cluster: Cluster, namespace: str) -> None:
    toolset = await _toolset(cluster.nobody, namespace, cluster.kubectl)
    for name, arguments in (
        ("kubectl_get", {"kind": "pods"}),
        ("kubectl_get", {"kind": "pods", "output": "yaml"}),
        ("kubectl_jq", {"kind": "pods", "expression": "."}),
        ("kubectl_describe", {"kind": "pods"}),
    ):
        result = await _call(toolset, name, **arguments)
        assert (result.status, result.return_code) == ("error", 1)
        assert "Forbidden" in (result.error or "")
    answer = await _call(toolset, "kubectl_auth_can_i", verb="get", resource="pods")
    assert (answer.status, answer.data.split()[0]) == ("success", "no")


async def test_objects_are_listed_counted_chosen_and_explained(cluster: Cluster, namespace: str) -> None:
    cluster.run("create", f"--namespace={namespace}", "configmap", "settings", "--from-literal=mode=fast")
    toolset = await _toolset(cluster.viewer, namespace, cluster.kubectl)
    expected: list[tuple[str, dict[str, JsonValue], str]] = [
        ("kubectl_get", {"kind": "cm", "name": "settings"}, "settings"),
        ("kubectl_get", {"kind": "cm/settings", "output": "yaml"}, "mode: fast"),
        ("kubectl_columns", {"kind": "cm", "columns": "N:.metadata.name,M:.data.mode"}, "settings          fast"),
        ("kubectl_jq", {"kind": "cm", "name": "settings", "expression": ".data.mode"}, "fast\n"),
        ("kubectl_count", {"kind": "cm", "field_selector": "metadata.name=settings"}, "1\n"),
        ("kubectl_describe", {"kind": "cm", "name": "settings"}, "mode:"),
        ("kubectl_get", {"kind": "ns", "namespace": "*"}, namespace),
        ("kubectl_api_resources", {"api_group": "apps"}, "deployments"),
        ("kubectl_explain", {"path": "configmap.data"}, "FIELD: data"),
    ]
    for name, arguments, fragment in expected:
        result = await _call(toolset, name, **arguments)
        assert result.status == "success", (name, arguments, result)
        assert fragment in result.data, (name, arguments, result.data)
    missing = await _call(toolset, "kubectl_get", kind="cm", selector="app=nothing")
    assert (missing.status, "No resources found" in missing.data) == ("no_data", True)
