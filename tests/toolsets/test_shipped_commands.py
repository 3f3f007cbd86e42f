"""The commands of the shipped toolsets only read, and no argument of a model turns them into something else."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import Tool, ToolInvocation
from tests.support.shipped import shipped_catalogue
from tests.toolsets.yaml.support import toolset_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.tools import Parameter, Toolset

_ENVIRONMENT = Environment.of({"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
_READING: Final = {
    "kubectl": {"get", "describe", "events", "top", "rollout history", "auth can-i", "api-resources", "explain"}
    | {"logs"},
    "helm": {"list", "status", "history", "get"},
    "docker": {"ps", "inspect", "logs", "system df", "events"},
    "crictl": {"ps", "inspect", "logs", "pods", "images", "imagefsinfo", "info", "version"},
    "hubble": {"observe"},
}
# A program with its arguments, where a command begins or an argument of another program is one.
_COMMAND: Final = re.compile(r"(?<![\w./-])(kubectl|helm|docker|crictl|hubble)[ \t]+([^\n|;]*)")
_TEMPLATE: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}")
_ANY_TOOLSET = "toolsets: {any: {tools: [{name: any, description: d, command: date}]}}"


def _call(toolset: Toolset, name: str, arguments: Mapping[str, str]) -> ToolInvocation:
    tool: Tool = next(tool for tool in toolset.tools if tool.name == name)
    return ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments)


def test_the_shipped_tools_run_only_verbs_that_read() -> None:
    catalogue = shipped_catalogue(_ENVIRONMENT)
    for definition in catalogue.definitions:
        for tool in definition.tools:
            found = list(_COMMAND.finditer(tool.template))
            assert found, tool.tool.name
            for program, rest in (each.groups() for each in found):
                words = [each for each in _TEMPLATE.sub("", rest).split() if not each.startswith("--host=")]
                assert _READING[program] & {words[0], " ".join(words[:2])}, (tool.tool.name, rest)
                assert not {"--raw", "-f", "--filename", "exec", "proxy", "delete", "apply"} & set(words)


def test_every_text_that_a_shipped_tool_accepts_has_a_pattern() -> None:
    catalogue = shipped_catalogue(_ENVIRONMENT)
    for definition in catalogue.definitions:
        for tool in definition.tools if definition.name != "kubernetes/core" else ():
            patterns = {rule.name for rule in tool.rules if rule.pattern is not None}
            texts = {each.name for each in tool.tool.parameters if "string" in (each.schema.types or ("string",))}
            chosen = {each.name for each in tool.tool.parameters if each.schema.enum}
            assert texts - chosen <= patterns, tool.tool.name


async def test_without_a_cluster_kubectl_gives_an_error_result_that_says_so() -> None:
    environment = _ENVIRONMENT.with_variables({"KUBECONFIG": "/nonexistent/kubeconfig"})
    catalogue = shipped_catalogue(environment)
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
    catalogue = shipped_catalogue(_ENVIRONMENT)
    definition = next(each for each in catalogue.definitions if any(tool.tool.name == name for tool in each.tools))
    toolset = replace(toolset_of(_ANY_TOOLSET), definition=definition)
    result = await toolset.call(_call(toolset, name, arguments))
    assert (result.status, result.invocation, result.return_code) == ("error", None, None)
    assert "must match the pattern" in (result.error or "") or "read as an option" in (result.error or "")


async def test_no_free_text_of_any_shipped_tool_takes_an_option_a_quote_or_another_command() -> None:
    """A pattern must refuse what would become an option of kubectl, or end a string in the jq program of a view."""
    catalogue = shipped_catalogue(_ENVIRONMENT)
    checked = 0
    for definition in catalogue.definitions:
        if not definition.is_optional:
            continue
        toolset = replace(toolset_of(_ANY_TOOLSET), definition=definition)
        for tool in toolset.tools:
            fitting = {each.name: _fitting(each) for each in tool.parameters if each.required}
            # Numbers are checked before a toolset is called.
            texts = [each for each in tool.parameters if each.schema.types == ("string",)]
            for parameter in texts:
                for value in ("--output=yaml", "-oyaml", "x --raw", "$(id)", 'x" or "x', "x\\", "x{{y", "x\ny"):
                    arguments = {**fitting, parameter.name: value}
                    result = await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))
                    checked += 1
                    assert (result.status, result.invocation) == ("error", None), (tool.name, parameter.name, value)
    assert checked > 300


def _fitting(parameter: Parameter) -> str:
    if parameter.schema.enum:
        return str(parameter.schema.enum[0])
    return "3" if "integer" in parameter.schema.types else "databases.example.org" if parameter.name == "kind" else "x"
