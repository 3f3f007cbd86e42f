"""The commands of the shipped toolsets only read, and no argument of a model turns them into something else."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.assets import toolset_files
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import Tool, ToolInvocation
from tests.toolsets.yaml.support import toolset_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.tools import Toolset

_ENVIRONMENT = Environment.of({"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
_ANY_TOOLSET = "toolsets: {any: {tools: [{name: any, description: d, command: date}]}}"


def _call(toolset: Toolset, name: str, arguments: Mapping[str, str]) -> ToolInvocation:
    tool: Tool = next(tool for tool in toolset.tools if tool.name == name)
    return ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments)


def test_the_shipped_tools_run_only_verbs_that_read() -> None:
    reading = {"get", "describe", "events", "top", "rollout history", "auth can-i", "api-resources", "explain"}
    reading |= {"list", "status", "history"}
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=()), _ENVIRONMENT)
    for definition in catalogue.definitions:
        for tool in definition.tools:
            for part in tool.template.replace("$(", "|").split("|"):
                words = part.split()
                if words and words[0] in {"kubectl", "helm"}:
                    assert words[1] in reading or " ".join(words[1:3]) in reading, part
                    assert not {"--raw", "-f", "--filename", "exec", "proxy", "delete", "apply"} & set(words)


async def test_without_a_cluster_kubectl_gives_an_error_result_that_says_so() -> None:
    environment = _ENVIRONMENT.with_variables({"KUBECONFIG": "/nonexistent/kubeconfig"})
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=()), environment)
    readiness = await check_toolsets(catalogue, ToolsetContext(environment=environment))
    toolset = next(each.toolset for each in readiness.ready if each.toolset.name == "kubernetes/core")
    for name, arguments in (
        ("kubectl_get", {"kind": "pods", "output": "yaml"}),
        ("kubectl_jq", {"kind": "pods", "expression": ".items[]"}),
        ("kubectl_describe", {"kind": "pods", "name": "web"}),
    ):
        result = await toolset.call(_call(toolset, name, arguments))
        assert (result.status, result.return_code) == ("error", 1)
        assert "localhost:8080 was refused" in (result.error or "")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("kubectl_get", {"kind": "--raw=/api/v1/secrets"}),
        ("kubectl_get", {"kind": "-f"}),
        ("kubectl_get", {"kind": "pods", "name": "--output=json"}),
        ("kubectl_get", {"kind": "pods", "name": "-ojson"}),
        ("kubectl_get", {"kind": "pods", "name": "x -o json"}),
        ("kubectl_get", {"kind": "pods", "namespace": "a --kubeconfig=/x"}),
        ("kubectl_get", {"kind": "pods", "namespace": "-A"}),
        ("kubectl_get", {"kind": "pods", "selector": "--raw"}),
        ("kubectl_get", {"kind": "pods", "selector": "a=$(id)"}),
        ("kubectl_get", {"kind": "https://evil.example"}),
        ("kubectl_get", {"kind": "../secrets"}),
        ("kubectl_describe", {"kind": "pods", "name": "-f"}),
        ("kubectl_events", {"object": "pod/--x"}),
        ("kubectl_rollout_history", {"object": "-f/x"}),
        ("kubectl_auth_can_i", {"verb": "get", "resource": "--list"}),
        ("kubectl_auth_can_i", {"verb": "get", "resource": "pods", "as_user": "--x"}),
        ("kubectl_explain", {"path": "--x"}),
        ("kubectl_api_resources", {"api_group": "--x"}),
        ("kubectl_columns", {"kind": "pods", "columns": "--help"}),
        ("helm_status", {"release": "--post-renderer=x"}),
        ("helm_list", {"namespace": "-A"}),
        ("helm_values", {"release": "x", "namespace": "a b"}),
    ],
)
async def test_no_argument_becomes_an_option_of_kubectl_or_helm(name: str, arguments: dict[str, str]) -> None:
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=()), _ENVIRONMENT)
    definition = next(each for each in catalogue.definitions if any(tool.tool.name == name for tool in each.tools))
    toolset = replace(toolset_of(_ANY_TOOLSET), definition=definition)
    result = await toolset.call(_call(toolset, name, arguments))
    assert (result.status, result.invocation, result.return_code) == ("error", None, None)
    assert "must match the pattern" in (result.error or "") or "read as an option" in (result.error or "")
