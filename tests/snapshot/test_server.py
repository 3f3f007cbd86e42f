"""The server answers like an API server, changes nothing, and says when the recording was made."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from holmes.kubernetes.client import RECORDED_NAMESPACES, ClusterClient
from holmes.snapshot.server.serving import serve_snapshot
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError
from tests.snapshot.recordings import RECORDED_AT, TABLE, api_of, ask, recording, thing

PODS = "/api/v1/namespaces/shop/pods"
RECORDED_DATE = "Sat, 31 Jan 2026 12:00:00 GMT"
WEB = thing("Pod", "web", labels={"app": "web"}, spec={"containers": [{"name": "web"}]}, status={"phase": "Running"})


SHOP = recording(WEB, thing("Deployment", "web", version="apps/v1"))


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with api_of(SHOP) as api:
        yield api


WRITES = [
    ("POST", PODS),
    ("PUT", f"{PODS}/web"),
    ("PATCH", f"{PODS}/web"),
    ("PATCH", f"{PODS}/web/status"),
    ("DELETE", f"{PODS}/web"),
    ("DELETE", PODS),
    ("POST", f"{PODS}/web/eviction"),
    ("POST", f"{PODS}/web/exec"),
    ("GET", f"{PODS}/web/exec"),
    ("GET", f"{PODS}/web/attach"),
    ("POST", f"{PODS}/web/portforward"),
    ("GET", f"{PODS}/web/proxy"),
    ("POST", f"{PODS}/nothing/binding"),
    ("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale"),
    ("POST", "/apis/apps/v1/namespaces/shop/deployments"),
    ("POST", "/api/v1/namespaces"),
    ("PATCH", "/api/v1/nodes/n1"),
    ("POST", "/api/v1/namespaces/shop/serviceaccounts/default/token"),
    ("POST", "/version"),
    ("DELETE", "/apis"),
]


async def test_whatever_would_change_something_is_refused(client: httpx.AsyncClient) -> None:
    for method, path in WRITES:
        answer = await client.request(method, path, content=b"{}" if method != "GET" else None)
        body = answer.json()
        assert answer.status_code == body["code"] == 405, (method, path)
        assert (body["kind"], body["reason"]) == ("Status", "MethodNotAllowed")
        assert body["message"] == "this recording is read-only"
        assert answer.headers["Allow"] == "GET, HEAD"


async def test_every_answer_is_dated_with_the_time_of_the_recording(client: httpx.AsyncClient) -> None:
    for path in ("/version", PODS, f"{PODS}/nothing", "/nothing", "/healthz", "/api", "/apis"):
        assert (await client.get(path)).headers.get_list("Date") == [RECORDED_DATE], path


async def test_the_client_of_holmes_learns_which_namespaces_were_recorded() -> None:
    async with api_of(recording(WEB, namespaces=["cart", "shop"])) as client:
        assert (await client.get("/version")).headers[RECORDED_NAMESPACES] == "cart,shop"


async def test_ages_in_tables_are_those_at_the_time_of_the_recording(client: httpx.AsyncClient) -> None:
    table = (await client.get(PODS, headers={"Accept": TABLE})).json()
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:5] == ["web", "0/1", "Running", "0", "60m"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("include", "expected"), [("None", None), ("Object", "Pod"), ("Metadata", "PartialObjectMetadata")]
)
async def test_a_table_carries_as_much_of_the_objects_as_is_asked_for(
    client: httpx.AsyncClient, include: str, expected: str | None
) -> None:
    answer = await client.get(f"{PODS}/web", params={"includeObject": include}, headers={"Accept": TABLE})
    assert answer.json()["rows"][0].get("object", {}).get("kind") == expected


async def test_metadata_alone_when_only_that_is_wanted(client: httpx.AsyncClient) -> None:
    form = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
    one = (await client.get(f"{PODS}/web", headers={"Accept": form.format("")})).json()
    many = (await client.get(PODS, headers={"Accept": form.format("List")})).json()
    assert (one["kind"], sorted(one)) == ("PartialObjectMetadata", ["apiVersion", "kind", "metadata"])
    assert (many["kind"], many["items"]) == ("PartialObjectMetadataList", [one])


async def test_a_client_that_takes_no_json_is_told_so(client: httpx.AsyncClient) -> None:
    answer = await client.get(PODS, headers={"Accept": "application/yaml"})
    assert (answer.status_code, answer.json()["reason"]) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{PODS}/nothing", 'pods "nothing" not found'),
        ("/apis/apps/v1/namespaces/shop/deployments/nothing", 'deployments.apps "nothing" not found'),
        ("/apis/nothing/v1/things", "the server could not find the requested resource"),
        ("/api/v1/namespaces/shop/nodes", "the server could not find the requested resource"),
        ("/api/v1/pods/web", "the server could not find the requested resource"),
        ("/openapi/v3", "this recording has no schemas; `holmes snapshot create --openapi` records them"),
    ],
)
def test_what_is_not_there_is_not_found_in_the_words_of_kubernetes(path: str, message: str) -> None:
    answer = ask(SHOP, path)
    assert (answer.status_code, answer.body["message"]) == (404, message)


def test_what_was_not_recorded_is_refused_and_never_empty() -> None:
    answer = ask(SHOP, "/api/v1/namespaces/shop/configmaps")
    assert answer.status_code == 403
    assert answer.body["message"] == "configmaps is forbidden: it is not part of this recording"


def test_a_namespace_outside_of_the_recording_is_refused() -> None:
    shop = recording(WEB, namespaces=["shop"])
    answer = ask(shop, "/api/v1/namespaces/other/pods")
    assert answer.status_code == 403
    assert '"other" is not part of this recording (recorded: shop)' in answer.body["message"]
    assert ask(shop, "/api/v1/pods").status_code == 200


async def test_only_requests_to_this_machine_are_answered(client: httpx.AsyncClient) -> None:
    for host, code in (("evil.example", 400), ("evil.example:80", 400), ("10.0.0.1:8001", 400), ("localhost:1", 200)):
        assert (await client.get(PODS, headers={"Host": host})).status_code == code


async def test_a_watch_shows_what_is_there_and_ends_when_its_time_is_over(client: httpx.AsyncClient) -> None:
    query = {"watch": "true", "timeoutSeconds": "1", "sendInitialEvents": "true", "labelSelector": "app=web"}
    async with client.stream("GET", PODS, params=query) as answer:
        events = [json.loads(line) async for line in answer.aiter_lines()]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[0]["object"]["metadata"]["name"] == "web"
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_open_watch_does_not_hold_up_the_end_of_the_server() -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        async with serve_snapshot(recording(WEB)) as server:
            query = {"watch": "true", "resourceVersion": "1"}
            pending = asyncio.ensure_future(client.get(f"{server.url}{PODS}", params=query))
            await asyncio.sleep(0.2)
            started = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - started < 1.5
        assert (await pending).text == ""


async def test_the_kubeconfig_is_private_and_goes_away_with_the_server() -> None:
    async with serve_snapshot(recording(WEB)) as server:
        assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
        assert stat.S_IMODE(server.kubeconfig.parent.stat().st_mode) == 0o700
        assert (server.recorded_at, server.namespace) == (RECORDED_AT, "shop")
    assert not server.kubeconfig.parent.exists()


async def test_the_client_of_holmes_reads_a_recording_and_takes_its_time_for_now() -> None:
    async with serve_snapshot(recording(WEB)) as server:
        environment = Environment.of({"KUBECONFIG": str(server.kubeconfig), "HOME": "/"})
        async with await ClusterClient.connect(environment) as client:
            assert (await client.probe()).namespace == "shop"
            assert [item["metadata"] for item in (await client.list(PODS, limit=1)).items]
            assert client.server_seconds == RECORDED_AT.timestamp()


async def test_a_port_that_is_taken_is_a_clear_error() -> None:
    async with serve_snapshot(recording(WEB)) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 cannot be used"):
            async with serve_snapshot(recording(WEB), port=port):
                pass


def test_a_failure_while_serving_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    async def fail_while_serving() -> None:
        async with serve_snapshot(recording(WEB)) as server:
            assert server.kubeconfig.parent.parent == tmp_path
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(fail_while_serving())
    assert list(tmp_path.iterdir()) == []
