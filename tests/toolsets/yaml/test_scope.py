"""Commands stay inside SCOPED_NAMESPACES: what they name is looked at before they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.assets import toolset_files
from holmes.core.environment import Environment
from holmes.core.messages import ToolCallId
from holmes.core.tools import ToolInvocation
from holmes.kubernetes.scope import SCOPE_VARIABLE
from holmes.toolsets.yaml.building import build_definition, checked_keys
from holmes.toolsets.yaml.loader import read_toolsets
from holmes.toolsets.yaml.toolset import YamlToolset
from tests.toolsets.yaml.support import one_tool, run, toolset_of

if TYPE_CHECKING:
    from holmes.core.json_types import JsonValue
    from holmes.core.tools import ToolResult

# bash takes a function from a variable of this form: these programs only say how they were called.
PROGRAMS = "env: {BASH_FUNC_kubectl%%: '() { echo ran $*; }', BASH_FUNC_helm%%: '() { echo ran $*; }'}"


async def scoped(command: str, **arguments: JsonValue) -> ToolResult:
    """Run a command of a user's toolset in a scope of two namespaces."""
    text = one_tool(f"{PROGRAMS}\nparameters: {{namespace: {{required: false}}}}\ncommand: {command}")
    return await run(toolset_of(text, **{SCOPE_VARIABLE: "shop,billing"}), **arguments)


@pytest.mark.parametrize(
    ("command", "namespace"),
    [
        ("kubectl get pods -n {{ namespace }}", "other"),
        ("kubectl get pods --namespace={{ namespace }}", "other"),
        ("kubectl get pods --namespace {{ namespace }} | grep x", "other"),
        ("echo x; kubectl get pods -n other", None),
        ("kubectl get pods -A", None),
        ("kubectl get pods --all-namespaces -o wide", None),
        ("helm list -A", None),
        ("kubectl get pods -n shop; kubectl get pods -n other", None),
    ],
)
async def test_another_namespace_or_all_of_them_are_refused(command: str, namespace: str | None) -> None:
    result = await scoped(command, namespace=namespace)
    assert (result.status, result.data) == ("error", "")
    assert result.error is not None
    assert result.error.endswith("outside SCOPED_NAMESPACES; available: shop, billing")


@pytest.mark.parametrize(
    ("command", "namespace", "ran"),
    [
        ("kubectl get pods -n {{ namespace }}", "billing", "ran get pods -n billing"),
        ("kubectl get pods -n {{ namespace }}", None, "ran get pods -n shop"),
        ("kubectl get pods -n {{ namespace }} | sort -n | tail -n 5", "shop", "ran get pods -n shop"),
        ("kubectl get nodes", None, "ran get nodes"),
    ],
)
async def test_inside_and_without_a_namespace_a_command_runs(command: str, namespace: str | None, ran: str) -> None:
    result = await scoped(command, namespace=namespace)
    assert (result.error, result.data.strip()) == (None, ran)


async def test_every_included_tool_that_takes_a_namespace_refuses_another_one() -> None:
    environment = Environment.of({SCOPE_VARIABLE: "shop,billing"})
    values: dict[str, JsonValue] = {
        "kind": "pods", "object": "pod/a", "what": "pods", "release": "web", "columns": "A:.metadata.name",
        "expression": ".", "verb": "get", "resource": "pods",
    }  # fmt: skip
    refused = 0
    for file in toolset_files():
        for written in read_toolsets(file).toolsets:
            toolset = YamlToolset(
                definition=build_definition(written, checked_keys(written, {}).keys), environment=environment
            )
            for tool in toolset.tools:
                names = {parameter.name for parameter in tool.parameters}
                if "namespace" not in names:
                    continue
                arguments = {name: value for name, value in values.items() if name in names}
                result = await toolset.call(
                    ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments={**arguments, "namespace": "other"})
                )
                assert "outside SCOPED_NAMESPACES" in str(result.error), (tool.name, result)
                refused += 1
    assert refused > 10
