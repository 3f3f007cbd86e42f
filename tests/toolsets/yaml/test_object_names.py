"""A model that mixes up kinds, names and namespaces gets what it wants, or an error that says what exists."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from holmes.app.models import build_models
from holmes.app.toolsets import open_toolsets
from holmes.core.tools_utils.tool_executor import ToolExecutor, tool_result_message
from holmes.settings.load import load_settings
from holmes.snapshot.server.serving import serve_snapshot
from holmes.toolsets.mcp.session import McpSessions
from holmes.toolsets.yaml.object_names import plain_object
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.tools import output_text
from tests.support.recorded_incidents import recording_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holmes.values.json_types import JsonObject


def _deployment(name: str, namespace: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": name}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": "a"}]}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    return {"kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _with_pods(name: str, namespace: str, *pods: str) -> list[dict[str, Any]]:
    labels = {"app": name}
    meta = {"name": f"{name}-5d", "namespace": namespace, "owner": f"Deployment/{name}", "labels": labels}
    set_spec = {"replicas": 1, "selector": {"matchLabels": labels}}
    found: list[dict[str, Any]] = [
        _deployment(name, namespace),
        {"kind": "ReplicaSet", "metadata": meta, "spec": set_spec},
    ]
    for pod in pods:
        own = {"name": pod, "namespace": namespace, "owner": f"ReplicaSet/{name}-5d", "labels": labels}
        spec = {"containers": [{"name": name, "image": "a"}]}
        found.append({"kind": "Pod", "metadata": own, "spec": spec, "status": {"phase": "Running"}})
    return found


CLUSTER = {
    "objects": [
        *_with_pods("cart", "shop", "cart-5d-aa"),
        *_with_pods("web", "shop", "web-5d-aa", "web-5d-bb"),
        *_with_pods("ledger", "bank", "ledger-5d-aa"),
    ]
}


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncIterator[ToolExecutor]:
    async with serve_snapshot(recording_of(CLUSTER, tmp_path / "recording")) as server:
        variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        overrides = {"kubeconfig": str(server.kubeconfig), "model": "builtin/triage"}
        settings = load_settings(variables, overrides=overrides)
        opened = await open_toolsets(settings, McpSessions(tmp_path))
        yield ToolExecutor(opened.create(build_models(settings).models, None, None, None))


async def _shown(executor: ToolExecutor, tool: str, **arguments: str) -> str:
    call = ToolCall(id=ToolCallId("call"), name=tool, arguments=json.dumps({"namespace": "shop", **arguments}))
    return output_text(tool_result_message(call, await executor.run(call)))


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"kind": "pods/web", "name": "web"}, ("pods", "web")),
        ({"kind": "deploy", "name": "deployment/web"}, ("deployment", "web")),
        ({"kind": "pod", "name": "deployment/web"}, ("deployment", "web")),
        ({"kind": "pod", "name": "shop/web", "namespace": "shop"}, ("pod", "web")),
        ({"kind": "deploy,svc", "name": "web"}, ("deploy,svc", "web")),
        ({"kind": "pods/web"}, ("pods/web", None)),
        ({"kind": "certificates.cert-manager.io", "name": "web"}, ("certificates.cert-manager.io", "web")),
    ],
)
def test_a_kind_in_front_of_a_name_is_split(given: JsonObject, plain: tuple[str, str | None]) -> None:
    found = plain_object(given)
    assert (found.get("kind"), found.get("name")) == plain


async def test_a_kind_in_front_of_a_name_works_in_a_command(executor: ToolExecutor) -> None:
    assert "cart" in await _shown(executor, "kubectl_get", kind="deploy", name="deployments/cart")


async def test_a_workload_with_one_pod_is_answered_with_this_pod(executor: ToolExecutor) -> None:
    shown = await _shown(executor, "kubectl_get", kind="pod", name="cart")
    assert "cart-5d-aa" in shown
    assert "'cart' is a Deployment; this is its pod cart-5d-aa" in shown


async def test_a_workload_with_several_pods_is_answered_with_their_names_once(executor: ToolExecutor) -> None:
    shown = await _shown(executor, "kubectl_get", kind="pods/web")
    assert "'web' is a Deployment; its pods: web-5d-aa, web-5d-bb" in shown
    assert shown.count('pods "web" not found') == 1
    assert shown.count("exit code") == 1


async def test_a_missing_name_is_answered_with_the_nearest_and_with_other_namespaces(executor: ToolExecutor) -> None:
    assert "did you mean web?" in await _shown(executor, "kubectl_get", kind="deployment", name="wep")
    shown = await _shown(executor, "kubectl_get", kind="deployment", name="ledger")
    assert "'ledger' exists in namespace bank" in shown
    shown = await _shown(executor, "kubernetes_logs", name="ledger")
    assert "'ledger' exists in namespace bank" in shown


async def test_a_name_in_all_namespaces_is_looked_up(executor: ToolExecutor) -> None:
    shown = await _shown(executor, "kubectl_get", kind="deployment", name="ledger", namespace="*")
    assert "'ledger' is in namespace bank" in shown


async def test_a_workload_is_found_where_a_pod_is_named(executor: ToolExecutor) -> None:
    assert "Deployment shop/web" in await _shown(executor, "kubernetes_related", resource="pods/web")
    assert "Logs of Deployment 'web'" in await _shown(executor, "kubernetes_logs", kind="pods/web", name="web")
