"""Only a list of the right kind counts as a list, and no server can make Holmes read without end."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.sender import ClientLimits
from holmes.kubernetes.state_reader import StateReader
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ToolError
from tests.support.command_line import Home
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    Json,
    KubernetesApi,
    Responder,
    document,
    empty_cluster,
    listing,
    pod,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PODS = "/api/v1/pods"
GADGETS = "/apis/example.org/v1/gadgets"
INVALID = [
    {},
    {"kind": "Status", "status": "Success"},
    {"kind": "NodeList", "items": []},
    {"kind": "Table", "rows": []},
    {"items": {"web": {}}},
    {"items": "web"},
    {"items": [None, "web", 3]},
]


@pytest.fixture
async def client(api: KubernetesApi, tmp_path: Path) -> AsyncIterator[ClusterClient]:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})
    limits = ClientLimits(request_timeout_seconds=5, page_size=10)
    async with await ClusterClient.connect(environment, limits=limits) as connected:
        yield connected


@pytest.mark.parametrize("content", INVALID)
async def test_what_is_not_a_list_of_the_kind_is_an_error_and_no_empty_list(
    api: KubernetesApi, client: ClusterClient, content: Json
) -> None:
    api.on(PODS, document(content))
    with pytest.raises(
        ToolError, match=r"^GET /api/v1/pods: the API server did not return a list of objects"
    ) as raised:
        await client.list(PODS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["PodList", "List", ""])
async def test_the_lists_that_servers_send_are_lists(api: KubernetesApi, client: ClusterClient, kind: str) -> None:
    api.on(PODS, document({"kind": kind, "items": [pod("web")]}), document({"kind": kind, "items": None}))
    assert len((await client.list(PODS)).items) == 1
    assert (await client.list(PODS)).items == ()


async def test_the_list_of_a_custom_kind_can_have_any_name(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(GADGETS, document({"kind": "AllTheGadgetsList", "items": [{"metadata": {"name": "a"}}]}))
    assert len((await client.list(GADGETS)).items) == 1


def _in_circles(*tokens: str) -> Responder:
    """Pages without objects whose positions lead back to the first."""
    turns = count()
    return lambda _: document({"metadata": {"continue": tokens[next(turns) % len(tokens)]}, "items": []})


def _without_end(_: object, turns: count[int] = count()) -> Answer:  # noqa: B008  one for the process is enough
    items = [pod("web")] if next(turns) % 2 else []
    return document({"metadata": {"continue": f"page-{next(turns)}"}, "items": items})


@pytest.mark.parametrize("tokens", [("again",), ("a", "b"), ("a", "b", "c", "d")])
async def test_a_position_that_comes_again_ends_the_list_with_an_error(
    api: KubernetesApi, client: ClusterClient, tokens: tuple[str, ...]
) -> None:
    api.on(PODS, _in_circles(*tokens))
    with ends_before(10), pytest.raises(ToolError, match="returned the same page twice; 0 objects were read"):
        await client.list(PODS)
    assert len(api.asked(PODS)) == len(tokens) + 1


async def test_pages_without_end_are_an_error(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, _without_end)
    with ends_before(20), pytest.raises(ToolError, match=r"101 pages with only \d+ objects, and the list does not end"):
        await client.list(PODS)


async def test_a_server_that_sends_small_pages_is_read_to_the_end(api: KubernetesApi, client: ClusterClient) -> None:
    pages = [document({"metadata": {"continue": str(number)}, "items": [pod(f"p{number}")]}) for number in range(60)]
    api.on(PODS, *pages, document({"items": []}))
    found = await client.list(PODS)
    assert (len(found.items), found.complete) == (60, True)


@pytest.mark.parametrize("pages", [_in_circles("a", "b"), _without_end], ids=["circle", "endless"])
async def test_a_scan_keeps_what_it_read_of_a_list_without_end(
    quiet_cluster: KubernetesApi, tmp_path: Path, pages: Responder
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, pages)
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, quiet_cluster.url))})
    async with await ClusterClient.connect(environment) as client:
        with ends_before(30):
            state, _ = await StateReader(client).read()
    assert [gap.kind for gap in state.reading.gaps] == ["Pod"]


@pytest.mark.parametrize("content", INVALID)
async def test_a_cluster_whose_lists_are_all_invalid_was_not_read(
    quiet_cluster: KubernetesApi, tmp_path: Path, content: Json
) -> None:
    empty_cluster(quiet_cluster)
    for path in quiet_cluster.paths():
        quiet_cluster.on(
            path, document({**content, "kind": "Status"} if content.get("kind") == "NodeList" else content)
        )
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, quiet_cluster.url))})
    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(ClusterUnreachable, match=r"^Cannot read anything .*did not return a list of objects"):
            await StateReader(client).read()


def test_a_scan_of_invalid_lists_exits_with_3_and_one_line(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    for path in quiet_cluster.paths():
        quiet_cluster.on(path, document({"kind": "Status", "status": "Success"}))
    quiet_cluster.on("/version", document({"gitVersion": "v1.34.0"}))
    home = Home.make(tmp_path / "home", KUBECONFIG=str(write_kubeconfig(tmp_path, quiet_cluster.url)))
    done = home.run("scan")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "Cannot read anything from the cluster" in done.stderr.splitlines()[-1]


def test_one_invalid_list_is_a_gap_of_the_scan(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on("/version", document({"gitVersion": "v1.34.0"}))
    quiet_cluster.on(PODS, listing([pod("web")]))
    quiet_cluster.on("/api/v1/services", document({"kind": "Status"}))
    home = Home.make(tmp_path / "home", KUBECONFIG=str(write_kubeconfig(tmp_path, quiet_cluster.url)))
    done = home.run("scan")
    assert "Service: GET /api/v1/services: the API server did not return a list" in " ".join(done.stdout.split())
