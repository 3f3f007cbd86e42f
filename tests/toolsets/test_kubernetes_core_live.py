"""The shipped kubectl tools on the real cluster."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from typing import TYPE_CHECKING

import pytest
import yaml

from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult, Toolset
    from tests.cluster.fixtures import Cluster
from tests.support.shipped import shipped_catalogue

pytestmark = pytest.mark.cluster

_PLANTED = "hunter2-planted-value"
_COPY: dict[str, JsonValue] = {
    "apiVersion": "v1",
    "data": {"password": base64.b64encode(_PLANTED.encode()).decode()},
    "kind": "Secret",
    "metadata": {"name": "copied"},
    "stringData": {"password": _PLANTED},
}
_COPIES: dict[str, JsonValue] = {
    "copy/json": json.dumps(_COPY),
    "copy/pretty-json": json.dumps(_COPY, indent=2),
    "copy/json-without-indentation": json.dumps(_COPY, indent=0),
    "copy/yaml": yaml.safe_dump(_COPY),
    "copy/flow": yaml.safe_dump(_COPY, default_flow_style=True),
    "copy/escaped-json": json.dumps({"object": json.dumps(_COPY)}),
    "copy/twice-escaped-json": json.dumps(json.dumps(json.dumps(_COPY))),
    "copy/escaped-yaml": json.dumps({"object": yaml.safe_dump(_COPY)}),
    "copy/short": json.dumps({"kind": "Secret", "data": {"p": _PLANTED}}),
    # kubectl describe cuts lines off, and so the kind of this one.
    "copy/cut": json.dumps({"data": {"a": _PLANTED, "b": "x" * 300}, "kind": "Secret"}),
}
_TEXTS = tuple(str(text) for text in _COPIES.values())


async def _toolset(kubeconfig: Path, namespace: str, kubectl: Path, home: str = "/nonexistent") -> Toolset:
    path = f"{kubectl.parent}:{os.environ['PATH']}"
    environment = Environment.of({"PATH": path, "HOME": home, "KUBECONFIG": str(kubeconfig)})
    environment = environment.with_variables({"HOLMES_KUBE_NAMESPACE": namespace})
    catalogue = shipped_catalogue(environment)
    context = ToolsetContext(environment=environment)
    readiness = await check_toolsets(catalogue, context)
    return next(each.toolset for each in readiness.ready if each.toolset.name == "kubernetes/core")


async def _call(toolset: Toolset, tool_name: str, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == tool_name)
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))


async def test_no_tool_shows_the_value_of_a_secret(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    def planted_object(kind: str, name: str, **fields: JsonValue) -> dict[str, JsonValue]:
        metadata: JsonValue = {"name": name, "annotations": {**_COPIES, "team": "payments"}}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}

    token: dict[str, JsonValue] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    items: list[JsonValue] = [
        planted_object("Secret", "applied", stringData={"password": _PLANTED}),
        planted_object("ConfigMap", "settings", data={"mode": "fast", **{f"d{i}": t for i, t in enumerate(_TEXTS)}}),
        token,
    ]
    manifest = tmp_path / "secret.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    cluster.run("apply", f"--namespace={namespace}", f"--filename={manifest}")
    uid = cluster.run("get", f"--namespace={namespace}", "configmap", "settings", "--output=jsonpath={.metadata.uid}")
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": namespace}
    events: list[JsonValue] = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{number}"},
            "involvedObject": {**about, "uid": uid},
            "type": "Warning",
            "reason": "ApplyFailed",
            "message": f"failed: {text}",
        }
        for number, text in enumerate(_TEXTS)
    ]
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": events}))
    cluster.run("create", f"--namespace={namespace}", f"--filename={manifest}")
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
        ("kubectl_get", {"kind": "configmap/settings", "output": "yaml"}),
        ("kubectl_get", {"kind": "events"}),
        ("kubectl_get", {"kind": "events", "output": "wide"}),
        ("kubectl_get", {"kind": "events", "output": "yaml"}),
        ("kubectl_get", {"kind": "pods,secrets", "namespace": "*", "output": "yaml"}),
        ("kubectl_describe", {"kind": "secret"}),
        ("kubectl_describe", {"kind": "configmap"}),
        ("kubectl_describe", {"kind": "configmaps,secrets"}),
        ("kubectl_describe", {"kind": "events"}),
        ("kubectl_events", {}),
        ("kubectl_events", {"namespace": "*"}),
        ("kubectl_events", {"object": "configmap/settings", "warnings_only": True}),
        ("kubectl_jq", {"kind": "secrets,configmaps,events", "expression": "., (.. | strings)"}),
        ("kubectl_columns", {"kind": "secrets", "columns": "A:.data.password,B:.metadata.annotations,C:.data"}),
        ("kubectl_columns", {"kind": "configmaps,events", "columns": "A:.data,B:.metadata.annotations,C:.message"}),
        ("kubectl_count", {"kind": "secrets", "by": ".data.password"}),
    ]
    for name, arguments in calls:
        result = await _call(toolset, name, **arguments)
        assert result.status == "success", (name, arguments, result)
        assert not [value for value in planted if value in result.data], (name, arguments, result.data)
    described = await _call(toolset, "kubectl_describe", kind="secret", name="token")
    assert "token:  (hidden)" in described.data
    described = await _call(toolset, "kubectl_describe", kind="configmap", name="settings")
    assert "copy/yaml: (hidden)" in described.data
    assert "team: payments" in described.data
    assert "mode:\n----\nfast\n" in described.data
    assert described.data.count("ApplyFailed") == len(_TEXTS)
    listed = await _call(toolset, "kubectl_events")
    assert listed.data.count("ApplyFailed") == len(_TEXTS)


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


async def test_a_kuberc_file_does_not_turn_tables_of_secrets_into_yaml(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster.run("create", f"--namespace={namespace}", "secret", "generic", "db", f"--from-literal=password={_PLANTED}")
    kuberc = tmp_path / ".kube" / "kuberc"
    kuberc.parent.mkdir()
    defaults: JsonValue = [{"command": "get", "options": [{"name": "output", "default": "yaml"}]}]
    preference = {"apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference", "defaults": defaults}
    kuberc.write_text(yaml.safe_dump(preference))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(cluster.admin)}
    plain = await asyncio.create_subprocess_exec(
        cluster.kubectl, "get", "secrets", f"--namespace={namespace}", env=environment, stdout=asyncio.subprocess.PIPE
    )
    encoded = base64.b64encode(_PLANTED.encode())
    assert encoded in (await plain.communicate())[0], "this kubectl does not read the file, and the test shows nothing"
    toolset = await _toolset(cluster.admin, namespace, cluster.kubectl, home=str(tmp_path))
    for arguments in ({"kind": "secrets"}, {"kind": "secrets", "output": "wide"}, {"kind": "secret", "name": "db"}):
        result = await _call(toolset, "kubectl_get", **arguments)
        assert result.data.startswith("NAME")
        assert encoded.decode() not in result.data
    for variable in ({"KUBECTL_KUBERC": "false"}, {"KUBERC": "off"}):
        plain = await asyncio.create_subprocess_exec(
            cluster.kubectl,
            "get",
            "secrets",
            f"--namespace={namespace}",
            env=environment | variable,
            stdout=asyncio.subprocess.PIPE,
        )
        assert encoded not in (await plain.communicate())[0]


async def test_a_column_of_a_custom_resource_shows_no_value_of_a_secret_inside_of_it(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    group = f"{namespace}.example.org"
    columns = {
        "Encoded": ".spec.secret.data.password",
        "Plain": ".spec.template.stringData.password",
        "Pin": ".spec.template.stringData.pin",
        "Group": ".spec.template.stringData",
        "Listed": ".spec.list.items[0].data.password",
        "Raw": ".spec.raw",
        "Mode": ".spec.mode",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "additionalPrinterColumns": [
            {"name": name, "type": "string", "jsonPath": path} for name, path in columns.items()
        ],
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"vaults.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Vault", "plural": "vaults", "singular": "vault"},
            "versions": [version],
        },
    }
    encoded = base64.b64encode(_PLANTED.encode()).decode()
    spec: JsonValue = {
        "secret": {"kind": "Secret", "data": {"password": encoded}},
        "template": {"stringData": {"password": f"<{_PLANTED}>&more", "pin": "4711"}},
        "list": {"kind": "SecretList", "items": [{"metadata": {"name": "x"}, "data": {"password": f"{encoded}=2"}}]},
        "raw": json.dumps({"data": {"password": f"{encoded}=3"}, "kind": "Secret"}),
        "mode": "fast",
    }
    vault = {"apiVersion": f"{group}/v1", "kind": "Vault", "metadata": {"name": "main"}, "spec": spec}
    manifest = tmp_path / "objects.json"
    manifest.write_text(json.dumps(definition))
    cluster.run("apply", f"--filename={manifest}")
    try:
        cluster.run("wait", "--for=condition=Established", f"crd/vaults.{group}", "--timeout=20s")
        manifest.write_text(json.dumps(vault))
        cluster.run("apply", f"--namespace={namespace}", f"--filename={manifest}")
        planted = (_PLANTED, encoded, "4711")
        plain = cluster.run("get", f"vaults.{group}", f"--namespace={namespace}")
        assert all(value in plain for value in planted), plain
        toolset = await _toolset(cluster.admin, namespace, cluster.kubectl)
        kind = f"vaults.{group}"
        calls: list[tuple[str, dict[str, JsonValue]]] = [
            ("kubectl_get", {"kind": kind}),
            ("kubectl_get", {"kind": f"{kind}/main"}),
            ("kubectl_get", {"kind": f"configmaps,{kind}", "namespace": "*", "output": "wide"}),
            ("kubectl_get", {"kind": kind, "output": "labels"}),
            ("kubectl_get", {"kind": kind, "output": "yaml"}),
            ("kubectl_columns", {"kind": kind, "columns": ",".join(f"{name}:{columns[name]}" for name in columns)}),
            ("kubectl_count", {"kind": kind, "by": ".spec.template.stringData"}),
            ("kubectl_jq", {"kind": kind, "expression": "., (.. | strings)"}),
        ]
        for name, arguments in calls:
            result = await _call(toolset, name, **arguments)
            assert result.status == "success", (name, arguments, result)
            assert not [value for value in planted if value in result.data], (name, arguments, result.data)
        table = await _call(toolset, "kubectl_get", kind=kind)
        assert table.data.split()[:2] == ["NAME", "ENCODED"]
        assert table.data.split()[-1] == "fast"
        assert (await _call(toolset, "kubectl_get", kind=kind, name="none")).status == "error"
        assert (await _call(toolset, "kubectl_get", kind=kind, selector="a=b")).status == "no_data"
    finally:
        cluster.run("delete", "crd", f"vaults.{group}", "--wait=false")
