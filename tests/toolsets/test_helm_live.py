"""The shipped helm tools with the real helm on the real cluster."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.cluster.fixtures import create_namespace
from tests.support.shipped import shipped_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult, Toolset
    from tests.cluster.fixtures import Cluster

pytestmark = pytest.mark.cluster

_PLANTED = "hunter2-secret"
_NUMBER = "90210077341"
_FORBIDDEN = (_PLANTED, base64.b64encode(_PLANTED.encode()).decode(), _NUMBER)
_CHART = {
    "Chart.yaml": "{apiVersion: v2, name: shop, version: 0.1.0, appVersion: '7.1'}",
    "values.yaml": f"mode: slow\ncolor: green\npassword: {_PLANTED}\n",
    "templates/secret.yaml": """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: "{{ .Release.Name }}-db"}
  stringData: {password: {{ .Values.password }}}
  data: {encoded: {{ .Values.password | toString | b64enc }}}
""",
    # What PyYAML and Kubernetes read differently: the tool must show what the cluster got.
    "templates/configmap.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data:
  mode: {{ .Values.mode }}
  at: 22:30
  ratio: 1:20.5
  day: 2026-11-21
  start: 2026-11-21T08:00:00Z
  sign: =
  on: "on"
""",
    "templates/NOTES.txt": "Log in with {{ .Values.password }}\n",
}


@dataclass(frozen=True)
class _Helm:
    """The real helm as the user `admin` in one namespace, and the chart to install."""

    program: Path
    kubeconfig: Path
    namespace: str
    chart: Path

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.chart.parent), "KUBECONFIG": str(self.kubeconfig)}
        command = [str(self.program), f"--namespace={self.namespace}", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def run(self, *arguments: str) -> None:
        done = self.attempt(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.fixture(scope="module")
def shop(cluster: Cluster, helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Helm]:
    """The release `shop` after one upgrade that changed its mode, and `broken`, whose password has the wrong type."""
    chart = tmp_path_factory.mktemp("helm") / "chart"
    for name, text in _CHART.items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    values = chart.parent / "production.yaml"
    values.write_text(f"mode: fast\npassword: {_PLANTED}\ndatabase: {{url: 'postgres://shop:{_PLANTED}@db/shop'}}\n")
    namespace = create_namespace(cluster, "helm")
    admin = _Helm(program=helm, kubeconfig=cluster.admin, namespace=namespace, chart=chart)
    admin.run("install", "shop", str(chart))
    admin.run("upgrade", "shop", str(chart), f"--values={values}")
    assert admin.attempt("install", "broken", str(chart), f"--set=password={_NUMBER}").returncode == 1
    yield admin
    cluster.run("delete", "namespace", namespace, "--wait=false")


async def _toolset(helm: _Helm, *, kubeconfig: Path | None = None, namespace: str | None = None) -> Toolset:
    variables = {
        "PATH": f"{helm.program.parent}:{os.environ['PATH']}",
        "HOME": "/nonexistent",
        "KUBECONFIG": str(kubeconfig or helm.kubeconfig),
    }
    environment = Environment.of({**variables, **({"HOLMES_KUBE_NAMESPACE": namespace} if namespace else {})})
    catalogue = shipped_catalogue(environment)
    readiness = await check_toolsets(catalogue, ToolsetContext(environment=environment))
    return next(each.toolset for each in readiness.ready if each.toolset.name == "helm/core")


async def _call(toolset: Toolset, tool_name: str, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == tool_name)
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))


async def test_every_tool_shows_the_real_release_and_none_shows_a_secret(shop: _Helm) -> None:
    toolset = await _toolset(shop, namespace=shop.namespace)
    expected: list[tuple[str, dict[str, JsonValue], tuple[str, ...]]] = [
        ("helm_list", {}, (shop.namespace, "shop", "deployed", "shop-0.1.0")),
        ("helm_list", {"namespace": shop.namespace}, ("broken", "failed", "7.1")),
        ("helm_status", {"release": "shop"}, ("NAME: shop", "STATUS: deployed", "REVISION: 2", "shop-settings")),
        ("helm_status", {"release": "broken"}, ("STATUS: failed", ".stringData.password: expected string")),
        ("helm_history", {"release": "shop"}, ("superseded", "Install complete", "deployed", "Upgrade complete")),
        ("helm_history", {"release": "broken"}, ("failed", ".stringData.password: expected string")),
        ("helm_values", {"release": "shop"}, ("mode: fast", "password: (hidden)", "postgres://shop:(hidden)@db")),
        ("helm_values", {"release": "shop", "all": True}, ("mode: fast", "color: green", "password: (hidden)")),
        ("helm_values", {"release": "shop", "all": True, "revision": 1}, ("mode: slow", "password: (hidden)")),
        ("helm_values", {"release": "broken"}, ("password: (hidden)",)),
        ("helm_manifest", {"release": "shop"}, ("kind: ConfigMap", "mode: fast", "- encoded\n  - password\n")),
        ("helm_manifest", {"release": "shop", "revision": 1}, ("name: shop-settings", "mode: slow", "kind: Secret")),
        ("helm_manifest", {"release": "broken"}, ("kind: Secret", "- password\n")),
    ]
    assert {name for name, _, _ in expected} == {tool.name for tool in toolset.tools}
    for name, arguments, fragments in expected:
        result = await _call(toolset, name, **arguments)
        assert (result.status, result.return_code) == ("success", 0), (name, arguments, result)
        assert not [each for each in fragments if each not in result.data], (name, arguments, result.data)
        assert not [each for each in _FORBIDDEN if each in repr(result)], (name, arguments)


async def test_the_planted_values_are_what_helm_itself_shows(shop: _Helm) -> None:
    for arguments in (["get", "manifest", "shop"], ["get", "values", "shop", "--all"], ["status", "shop"]):
        assert _PLANTED in shop.attempt(*arguments).stdout
    for arguments in (["history", "broken"], ["status", "broken"]):
        assert _NUMBER in shop.attempt(*arguments).stdout


async def test_the_history_has_one_line_for_each_revision(shop: _Helm) -> None:
    toolset = await _toolset(shop)
    result = await _call(toolset, "helm_history", release="shop", namespace=shop.namespace)
    header, first, second = result.data.splitlines()
    assert header.split() == ["REVISION", "UPDATED", "STATUS", "CHART", "APP", "DESCRIPTION"]
    assert (first.split()[0], first.split()[2:5]) == ("1", ["superseded", "shop-0.1.0", "7.1"])
    assert (second.split()[0], second.split()[2:5]) == ("2", ["deployed", "shop-0.1.0", "7.1"])


async def test_the_manifest_says_what_the_cluster_got(cluster: Cluster, shop: _Helm) -> None:
    toolset = await _toolset(shop)
    shown = await _call(toolset, "helm_manifest", release="shop", namespace=shop.namespace)
    documents = {document["kind"]: document for document in yaml.safe_load_all(shown.data)}
    live = cluster.run("get", "configmap", "shop-settings", f"--namespace={shop.namespace}", "--output=json")
    assert documents["ConfigMap"]["data"] == json.loads(live)["data"]


async def test_an_uninstalled_release_that_was_kept_is_listed(shop: _Helm) -> None:
    shop.run("install", "retired", str(shop.chart))
    shop.run("uninstall", "retired", "--keep-history")
    toolset = await _toolset(shop)
    listed = await _call(toolset, "helm_list", namespace=shop.namespace)
    states = {line.split()[0]: line.split() for line in listed.data.splitlines()}
    assert "uninstalled" in states["retired"]
    values = await _call(toolset, "helm_values", release="retired", namespace=shop.namespace)
    assert (values.status, values.data) == ("no_data", "")


@pytest.mark.parametrize("arguments", [{"release": "shoop"}, {"release": "shop", "namespace": "elsewhere"}])
async def test_a_release_that_does_not_exist_is_an_error_that_names_it(
    shop: _Helm, arguments: dict[str, JsonValue]
) -> None:
    toolset = await _toolset(shop, namespace=shop.namespace)
    namespace = arguments.get("namespace", shop.namespace)
    for tool in toolset.tools:
        if tool.name != "helm_list":
            result = await _call(toolset, tool.name, **arguments)
            assert (result.status, result.return_code) == ("error", 1), (tool.name, result)
            for fragment in ("release: not found", arguments["release"], namespace, "helm_list shows"):
                assert str(fragment) in (result.error or ""), (tool.name, result.error)


async def test_a_user_who_may_not_read_secrets_gets_the_servers_own_words(cluster: Cluster, shop: _Helm) -> None:
    toolset = await _toolset(shop, kubeconfig=cluster.viewer, namespace=shop.namespace)
    for name, arguments in (("helm_list", {}), ("helm_status", {"release": "shop"})):
        result = await _call(toolset, name, **arguments)
        assert (result.status, result.return_code) == ("error", 1)
        assert 'secrets is forbidden: User "viewer" cannot list resource "secrets"' in (result.error or "")
