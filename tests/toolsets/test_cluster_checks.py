"""A toolset for software that the cluster does not have is absent, and all of them cost one request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import Readiness, check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from tests.support.kubernetes_api import KubernetesApi, document, kubernetes_api, status, write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DISCOVERY = document(
    {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "cert-manager.io"},
                "versions": [{"version": "v1", "resources": [{"resource": "certificates"}]}],
            }
        ],
    }
)
_GROUPS = document({"kind": "APIGroupList", "groups": [{"name": "cert-manager.io"}]})


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


async def _check(tmp_path: Path, prerequisites: dict[str, str], kubeconfig: Path) -> Readiness:
    path = tmp_path / "toolsets.yaml"
    lines = (
        f"  {name}: {{description: d, prerequisites: {each}, tools: [{{name: t{name}, description: d, command: id}}]}}"
        for name, each in prerequisites.items()
    )
    path.write_text("\n".join(("toolsets:", *lines, "")))
    environment = Environment.of({"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)})
    catalogue = load_catalogue(read_catalogue(CatalogueFiles(shipped=(path,)), entry_points=()), environment)
    return await check_toolsets(catalogue, ToolsetContext(environment=environment))


def _states(readiness: Readiness) -> dict[str, tuple[str, str | None]]:
    return {status.name: (status.state, status.reason) for status in readiness.statuses}


async def test_twenty_toolsets_ask_for_their_kinds_with_one_request(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/apis", _DISCOVERY)
    wanted = {f"n{number}": "[{kind: nodes.example.org}]" for number in range(20)}
    wanted |= {
        "there": "[{kind: certificates.cert-manager.io}]",
        "either": "[{kind: [issuers.cert-manager.io, certificates.cert-manager.io]}]",
        "neither": "[{kind: [issuers.cert-manager.io, certificates.example.org]}]",
    }
    states = _states(await _check(tmp_path, wanted, write_kubeconfig(tmp_path, api.url)))
    assert states["there"] == states["either"] == ("enabled", None)
    assert states["n7"] == ("absent", "the cluster has no nodes.example.org")
    assert states["neither"] == ("absent", "the cluster has no issuers.cert-manager.io or certificates.example.org")
    assert [request.path for request in api.requests] == ["/apis"]


async def test_the_groups_of_an_old_server_are_enough(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/apis", _GROUPS)
    wanted = {"there": "[{kind: certificates.cert-manager.io}]", "not": "[{kind: certificates.example.org}]"}
    states = _states(await _check(tmp_path, wanted, write_kubeconfig(tmp_path, api.url)))
    assert {name: state for name, (state, _) in states.items()} == {"there": "enabled", "not": "absent"}


async def test_an_object_can_be_required(api: KubernetesApi, tmp_path: Path) -> None:
    there, hidden = "/api/v1/namespaces/kube-system/configmaps/status", "/apis/example.org/v1/things/hidden"
    api.on(there, document({"kind": "ConfigMap"}))
    api.on(hidden, status(403, "Forbidden", "not allowed"))
    wanted = {
        "there": f"[{{object: {there}}}]",
        "gone": f"[{{object: {there}-x}}]",
        "hidden": f"[{{object: {hidden}}}]",
    }
    states = _states(await _check(tmp_path, wanted, write_kubeconfig(tmp_path, api.url)))
    assert {name: state for name, (state, _) in states.items()} == {
        "there": "enabled",
        "gone": "absent",
        "hidden": "absent",
    }


async def test_a_program_is_looked_for_and_not_run(tmp_path: Path) -> None:
    wanted = {"there": "[{program: bash}]", "gone": "[{program: no-such-program}]"}
    states = _states(await _check(tmp_path, wanted, tmp_path / "none"))
    assert states == {"there": ("enabled", None), "gone": ("absent", "'no-such-program' is not installed")}


async def test_a_cluster_that_is_away_fails_and_a_missing_one_is_absent(api: KubernetesApi, tmp_path: Path) -> None:
    wanted = {"one": "[{kind: nodes.example.org}]"}
    api.on("/apis", status(403, "Forbidden", "not allowed"))
    states = _states(await _check(tmp_path, wanted, write_kubeconfig(tmp_path, api.url)))
    assert states["one"][0] == "absent"
    away = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    states = _states(await _check(tmp_path, wanted, away))
    assert states["one"][0] == "failed"
    states = _states(await _check(tmp_path, wanted, tmp_path / "none"))
    assert states["one"][0] == "absent"


async def test_the_commands_of_absent_software_are_not_compiled(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/apis", _DISCOVERY)
    path = tmp_path / "toolsets.yaml"
    tool = "tools: [{name: %s, description: d, command: 'id {%% if'}]"
    path.write_text(
        "toolsets:\n"
        f"  gone: {{description: d, prerequisites: [{{kind: a.example.org}}], {tool % 'a'}}}\n"
        f"  there: {{description: d, prerequisites: [{{kind: certificates.cert-manager.io}}], {tool % 'b'}}}\n"
        "  fine: {description: d, prerequisites: [{program: bash}], tools: [{name: c, description: d, command: id}]}\n"
    )
    kubeconfig = write_kubeconfig(tmp_path, api.url)
    environment = Environment.of({"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig)})
    written = read_catalogue(CatalogueFiles(shipped=(path,)), entry_points=())
    catalogue = load_catalogue(written, environment, deferred=(path,))
    readiness = await check_toolsets(catalogue, ToolsetContext(environment=environment))
    states = _states(readiness)
    assert states["gone"] == ("absent", "the cluster has no a.example.org")
    assert states["fine"] == ("enabled", None)
    assert states["there"][0] == "failed"
    assert "toolsets.yaml:3: tool 'b'" in (states["there"][1] or "")
    assert [tool.name for each in readiness.ready for tool in each.toolset.tools] == ["c"]
