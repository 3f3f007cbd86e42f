"""Commands stay inside SCOPED_NAMESPACES: what they name is looked at before they run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holmes.assets import toolset_files
from holmes.kubernetes.scope import SCOPE_VARIABLE
from holmes.toolsets.yaml.building import build_definition, checked_keys
from holmes.toolsets.yaml.loader import read_toolsets
from holmes.toolsets.yaml.scope import refuse_outside
from holmes.toolsets.yaml.toolset import YamlToolset
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.toolsets.yaml.support import one_tool, run, toolset_of

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult

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


SCOPE = ("shop", "billing")


@pytest.mark.parametrize(
    "command",
    [
        # Options in other forms and places.
        "kubectl get pods -Ao wide", "kubectl get pods --all-namespaces=1", "kubectl get pods \\\n  -n other",
        "kubectl exec -itn other web -- ls", "kubectl get pods -nother", "kubectl get pods -n '*'",
        "kubectl get pods -o jsonpath='{.a|b}' -n other", "kubectl cluster-info dump --namespaces shop,other",
        # Programs in other forms and places.
        "(kubectl get pods -A)", 'echo "$(kubectl get pods -A)"', "sh -c 'kubectl get pods -n other'",
        "echo a | xargs /usr/bin/kubectl get pods -n other --", '"kubectl" get pods -A', "stern . -n other",
        "echo don't; kubectl get pods -n other",
        # What is quoted is a word, and neither a separator nor a comment.
        "kubectl get pods -l '' -n other", "kubectl get pods -l '#' -n other", "kubectl get pods -l ';' -n other",
        'kubectl get pods -l "|" -A', "kubectl get '' namespaces", "kubectl logs -f -n other web",
        # Namespaces themselves, paths, and descriptions of nodes, which list all pods.
        "kubectl get ns", "kubectl get pods,Namespaces.v1. -o wide", "kubectl get ns/other",
        "kubectl get ns shop other",
        "kubectl describe -- namespace other", "kubectl describe nodes", "kubectl describe pods,Node/a",
        "kubectl get --raw /api/v1/namespaces/other/pods", "kubectl get --raw=/api/v1/nodes/a/proxy/pods",
    ],
)  # fmt: skip
def test_no_spelling_of_a_command_leads_outside(command: str) -> None:
    with pytest.raises(ToolError, match="SCOPED_NAMESPACES"):
        refuse_outside(command, SCOPE)
    refuse_outside(command, ())


@pytest.mark.parametrize(
    "command",
    [
        "kubectl exec web -n shop -- ls -A", "kubectl exec -n shop web -- sh -c 'ls -A; head -n 3 file'",
        "kubectl get pods -n shop -l 'a in (b, -n other)'", "kubectl get pods -n shop # never -A",
        "kubectl logs web -n shop --tail=9 | grep -A 5 -n error", "kubectl get pods -n shop | sort -n | tail -n 5",
        "kubectl get ns shop -o yaml", "kubectl get ns/shop ns/billing", "kubectl get nodes -o yaml",
        "kubectl get --raw /api/v1/namespaces/shop/pods?limit=5", "kubectl get pods -oname -nshop",
    ],
)  # fmt: skip
def test_options_of_other_programs_and_everyday_commands_are_no_objection(command: str) -> None:
    refuse_outside(command, SCOPE)


async def test_a_command_that_names_no_namespace_reads_the_default_one(tmp_path: Path) -> None:
    for program in ("kubectl", "helm"):
        file = tmp_path / program
        file.write_text(f'#!/bin/sh\necho "{program} $*${{HELM_NAMESPACE:+ in $HELM_NAMESPACE}}"\n')
        file.chmod(0o755)
    command = "kubectl get pods; kubectl get pods -n billing; kubectl version; helm list"
    said = {}
    for chosen in ("", "billing"):
        toolset = toolset_of(
            one_tool(f"command: {command}"),
            PATH=f"{tmp_path}:{os.environ['PATH']}", HOLMES_KUBE_NAMESPACE=chosen, **{SCOPE_VARIABLE: "shop,billing"},
        )  # fmt: skip
        said[chosen] = (await run(toolset)).data.splitlines()
    assert said[""] == [
        "kubectl get --namespace=shop pods in shop", "kubectl get --namespace=shop pods -n billing in shop",
        "kubectl version in shop", "helm list in shop",
    ]  # fmt: skip
    assert said["billing"][0] == "kubectl get --namespace=billing pods in billing"


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
