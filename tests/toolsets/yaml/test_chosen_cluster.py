"""With `chosen_cluster` commands read the cluster that the user chose; what they name themselves wins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.scope import SCOPE_VARIABLE
from holmes.toolsets.yaml import scope
from tests.toolsets.yaml.support import one_tool, run, toolset_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.values.tools import ToolResult

CHOSEN = {"HOLMES_KUBE_CONTEXT": "prod eu", "HOLMES_KUBE_NAMESPACE": "shop"}
OPTIONS = "--request-timeout=30s --context=prod eu --namespace=shop"
_HELM = 'echo "helm $* $HELM_KUBECONTEXT/$HELM_NAMESPACE"; [ "$1" != status ] || { echo "$FAILURE" >&2; exit 1; }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for program, body in (("kubectl", 'echo "kubectl $*"'), ("oc", 'echo "oc $*"'), ("helm", _HELM)):
        file = tmp_path / program
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
    return tmp_path


async def _ran(
    folder: Path, command: str, variables: Mapping[str, str], *, chosen: bool = True, **arguments: str
) -> ToolResult:
    text = one_tool(f"command: {command}").replace("description: d", f"description: d\n    chosen_cluster: {chosen}", 1)
    return await run(toolset_of(text, PATH=f"{folder}:{os.environ['PATH']}", **variables), **arguments)


@pytest.mark.parametrize(
    ("command", "ran"),
    [
        ("kubectl get pods", f"kubectl get {OPTIONS} pods"),
        ("kubectl get -n other -- pods", f"kubectl get {OPTIONS} -n other -- pods"),
        ("kubectl rollout history deploy/web | cat", f"kubectl rollout {OPTIONS} history deploy/web"),
        ("kubectl -n other get pods", f"kubectl {OPTIONS} -n other get pods"),
        ("oc get pods", f"oc get {OPTIONS} pods"),
        ("kubectl version", "kubectl version"),
        ("timeout 5 kubectl get pods", f"kubectl get {OPTIONS} pods"),
        ("timeout -s KILL 5s nice -n 5 kubectl get 'a b'", f"kubectl get {OPTIONS} a b"),
        ("echo pods | xargs -n 1 kubectl get", f"kubectl get {OPTIONS} pods"),
        ("sh -c 'stdbuf -oL kubectl get pods'", f"kubectl get {OPTIONS} pods"),
        ("env A=1 timeout 5 echo kubectl get; timeout 5 true", "kubectl get"),
        ("helm list", "helm list prod eu/shop"),
    ],
)
async def test_a_command_reads_the_chosen_context_and_namespace(folder: Path, command: str, ran: str) -> None:
    assert (await _ran(folder, command, CHOSEN)).data == f"{ran}\n"


async def test_without_a_choice_only_the_time_of_a_request_is_limited(folder: Path) -> None:
    assert (await _ran(folder, "kubectl get pods; helm list", {})).data == (
        "kubectl get --request-timeout=30s pods\nhelm list /\n"
    )


async def test_a_toolset_that_does_not_ask_for_it_runs_as_it_is_written(folder: Path) -> None:
    result = await _ran(folder, "kubectl get pods; oc get pods; helm list", CHOSEN, chosen=False)
    assert result.data == "kubectl get pods\noc get pods\nhelm list /\n"


async def test_the_programs_that_kubectl_starts_get_the_path_of_the_user(folder: Path) -> None:
    (folder / "kubectl").write_text('#!/bin/sh\necho "$PATH"\n')
    assert (await _ran(folder, "kubectl get pods", CHOSEN)).data.startswith(f"{folder}:")


async def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    for program in ("bash", "sh"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    text = one_tool("command: oc get pods").replace("description: d", "description: d\n    chosen_cluster: true", 1)
    result = await run(toolset_of(text, PATH=str(tmp_path), **CHOSEN))
    assert result.error == "exit code 127: oc: command not found"


async def test_no_other_cluster_is_read_when_the_wrappers_cannot_run(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path_factory.mktemp("damaged")
    for program in ("kubectl", "oc"):
        (damaged / program).write_text("#!/bin/sh\n")
    monkeypatch.setattr(scope, "_WRAPPERS", damaged)
    result = await _ran(folder, "kubectl get pods", CHOSEN)
    assert result.error == f"the programs in {damaged} are not executable; reinstall Holmes"
    assert result.data == ""


async def test_a_scope_is_stronger_than_the_chosen_namespace(folder: Path) -> None:
    result = await _ran(folder, "kubectl get pods; helm list", {**CHOSEN, SCOPE_VARIABLE: "billing"})
    assert "--namespace=billing pods\nhelm list prod eu/billing\n" in result.data


async def test_helm_that_does_not_find_a_release_is_told_where_to_look(folder: Path) -> None:
    missing = {**CHOSEN, "FAILURE": "Error: release: not found"}
    result = await _ran(folder, "helm status -- {{ release }}", missing, release="web")
    assert result.error == (
        "exit code 1: Error: release: not found "
        "(release web, namespace shop; helm_list shows every release and its namespace)"
    )
    other = await _ran(folder, "helm status -- {{ release }}", {"FAILURE": "Error: forbidden"}, release="web")
    assert other.error == "exit code 1: Error: forbidden"
