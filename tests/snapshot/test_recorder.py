"""A recording holds what may be kept, says what is missing, and appears whole or not at all."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.kubernetes.client import ClusterClient
from holmes.redaction.redactor import Redactor
from holmes.snapshot.log_recording import LogLimits
from holmes.snapshot.recorder import RecordOptions, RecordSummary, record_cluster
from holmes.snapshot.scrubbing import KnownSecrets, Scrubber
from holmes.snapshot.sources import load_snapshot
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ConfigError, HolmesError
from tests.snapshot.recordings import ask
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    Request,
    document,
    ended,
    kubernetes_api,
    listing,
    log,
    log_time,
    pod,
    running,
    status,
    waiting,
    write_kubeconfig,
)

PLANTED = "Xk7-planted-Zq93-Hd81"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CORE = ("configmaps", "events", "namespaces", "nodes", "pods", "secrets", "services")
TEXTS = st.text(max_size=40) | st.sampled_from(["password", "token: abc", 'a="b"', "x\\", "PASSWORD=s3cr3t!value"])
JSON_TEXTS = st.recursive(
    st.dictionaries(TEXTS, TEXTS, max_size=3),
    lambda inner: st.dictionaries(TEXTS, inner | TEXTS | st.lists(inner | TEXTS, max_size=3), max_size=3),
    max_leaves=6,
)
CLUSTER_WIDE = {"namespaces", "nodes"}


def _resources(group_version: str, *names: str) -> dict[str, Any]:
    kinds = {"pods": "Pod", "secrets": "Secret", "configmaps": "ConfigMap", "nodes": "Node", "events": "Event"}
    entries = [
        {
            "name": name,
            "kind": kinds.get(name, name.rstrip("s").capitalize()),
            "namespaced": name not in CLUSTER_WIDE,
            "verbs": ["get", "list"],
        }
        for name in names
    ]
    return {"kind": "APIResourceList", "groupVersion": group_version, "resources": entries}


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    """A cluster with a pod that crashed and runs again, and nothing else."""
    with kubernetes_api() as server:
        server.on("/version", document({"gitVersion": "v1.34.0", "major": "1", "minor": "34"}))
        versions = [{"groupVersion": "shop.example/v1", "version": "v1"}]
        groups = [{"name": "shop.example", "versions": versions, "preferredVersion": versions[0]}]
        server.on("/apis", document({"kind": "APIGroupList", "groups": groups}))
        server.on("/api/v1", document(_resources("v1", *CORE)))
        server.on("/apis/shop.example/v1", document(_resources("shop.example/v1", "promotions")))
        server.on("/apis/shop.example/v1/promotions", listing([]))
        for name in CORE:
            server.on(f"/api/v1/{name}", listing([]))
        web = pod("web", containers={"app": running(restarts=1, last=ended(1))})
        server.on("/api/v1/pods", listing([web]))
        server.on("/api/v1/namespaces/shop/pods/web/log", log(["starting", f"PASSWORD={PLANTED}", "listening"]))
        yield server


async def record(api: KubernetesApi, folder: Path, options: RecordOptions | None = None) -> RecordSummary:
    return await record_in(api, folder.parent, folder, options)


async def record_in(
    api: KubernetesApi, home: Path, folder: Path, options: RecordOptions | None = None
) -> RecordSummary:
    kubeconfig = write_kubeconfig(home, api.url)
    environment = Environment.of({"KUBECONFIG": str(kubeconfig), "HOME": str(home)})
    async with await ClusterClient.connect(environment) as client:
        return await record_cluster(client, folder, options or RecordOptions(), Redactor(bytes(16)), lambda _: None)


def shape_of(value: object) -> object:
    """Keys and lengths, without the texts."""
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in value.items()}
    return [shape_of(each) for each in value] if isinstance(value, list) else type(value).__name__


def content_of(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_no_secret_ever_reaches_the_disk(api: KubernetesApi, tmp_path: Path) -> None:
    encoded = base64.b64encode(PLANTED.encode()).decode()
    applied = json.dumps({"kind": "Secret", "data": {"token": encoded}, "stringData": {"plain": PLANTED}})
    metadata = {"name": "token", "namespace": "shop", "annotations": {LAST_APPLIED: applied, "note": "kept"}}
    broken = {"name": "broken", "namespace": "shop", "annotations": {LAST_APPLIED: f"no JSON {encoded}"}}
    secrets = [
        {"metadata": metadata, "data": {"token": encoded, "empty": ""}, "type": "Opaque"},
        {"metadata": broken, "data": {"tls.crt": encoded}, "type": "kubernetes.io/tls"},
    ]
    settings = {
        "metadata": {"name": "settings", "namespace": "shop"},
        "data": {"DB_PASSWORD": PLANTED, "app.yaml": f"db:\n  host: db\n  password: {PLANTED}\n", "LOG_LEVEL": "info"},
        "binaryData": {"keystore": encoded},
    }
    web = pod("web")
    web["spec"]["containers"][0]["env"] = [{"name": "API_TOKEN", "value": PLANTED}, {"name": "COLOR", "value": "blue"}]
    web["spec"]["containers"][0]["args"] = [f"--password={PLANTED}"]
    web["metadata"]["annotations"] = {LAST_APPLIED: json.dumps({"env": [{"name": "API_TOKEN", "value": PLANTED}]})}
    event = {"metadata": {"name": "e", "namespace": "shop"}, "message": f"login failed: password={PLANTED} was wrong"}
    for name, items in (("secrets", secrets), ("configmaps", [settings]), ("pods", [web]), ("events", [event])):
        api.on(f"/api/v1/{name}", listing(items))
    await record(api, tmp_path / "recording")
    written = content_of(tmp_path / "recording")
    assert PLANTED not in written
    assert encoded not in written
    assert encoded.rstrip("=")[:-2] not in written
    secret = ask(load_snapshot(tmp_path / "recording"), "/api/v1/namespaces/shop/secrets/token").body
    assert secret["data"] == {"token": base64.b64encode(b"(REDACTED)").decode(), "empty": ""}
    assert secret["metadata"]["annotations"]["note"] == "kept"
    assert '"LOG_LEVEL": "info"' in written
    assert '"value": "blue"' in written
    assert "listening" in written


async def test_a_value_of_a_secret_is_known_wherever_it_turns_up(api: KubernetesApi, tmp_path: Path) -> None:
    value = f"{PLANTED}.{PLANTED[::-1]}"
    certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUK7x9\n-----END CERTIFICATE-----\n"
    data = {"a": value, "host": "checkout-database.shop.svc", "ca.crt": certificate}
    encoded = {key: base64.b64encode(each.encode()).decode() for key, each in data.items()}
    api.on("/api/v1/secrets", listing([{"metadata": {"name": "s", "namespace": "shop"}, "data": encoded}]))
    lines = [
        f"hello {PLANTED} and {encoded['a']}",
        "connecting to checkout-database.shop.svc",
        "MIIBszCCAVmgAwIBAgIUK7x9",
    ]
    api.on("/api/v1/namespaces/shop/pods/web/log", log(lines))
    note = {"metadata": {"name": "note", "namespace": "shop"}, "data": {"motd": f"it is {value}, really"}}
    api.on("/api/v1/configmaps", listing([note]))
    await record(api, tmp_path / "recording")
    written = content_of(tmp_path / "recording")
    assert PLANTED not in written
    assert encoded["a"] not in written
    assert "hello (REDACTED) and (REDACTED)" in written
    assert "connecting to checkout-database.shop.svc" in written
    assert "MIIBszCCAVmgAwIBAgIUK7x9" in written


async def test_a_namespace_that_does_not_exist_is_no_empty_recording(api: KubernetesApi, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="namespace 'shoop' does not exist"):
        await record(api, tmp_path / "recording", RecordOptions(namespaces=("shoop",)))
    assert not (tmp_path / "recording").exists()


@settings(max_examples=40)
@given(content=JSON_TEXTS)
def test_whatever_an_object_holds_it_stays_an_object_of_the_same_shape(content: dict[str, Any]) -> None:
    env = [{"name": "API_TOKEN", "value": PLANTED}, {"name": "API_TOKEN", "value": "", "PASS=": ""}]
    item: dict[str, Any] = {"metadata": {"name": "x"}, "spec": content, "env": env}
    scrubber = Scrubber(Redactor(bytes(16)), KnownSecrets())
    scrubbed = json.loads(json.dumps(scrubber.scrubbed(item, secret=False)))
    assert shape_of(scrubbed) == shape_of(item)
    assert PLANTED not in json.dumps(scrubbed)


async def test_ages_go_by_the_clock_of_the_cluster_when_ours_is_wrong(api: KubernetesApi, tmp_path: Path) -> None:
    empty = replace(document({"items": []}), headers={"Date": "Sat, 31 Jan 2026 12:00:00 GMT"})
    for path in (*(f"/api/v1/{name}" for name in CORE), "/apis/shop.example/v1/promotions"):
        api.on(path, empty)
    summary = await record(api, tmp_path / "recording")
    assert summary.recorded_at == datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


async def test_chosen_namespaces_are_recorded_by_name_when_they_cannot_be_listed(
    api: KubernetesApi, tmp_path: Path
) -> None:
    for name in set(CORE) - CLUSTER_WIDE:
        api.on(f"/api/v1/namespaces/shop/{name}", listing([]))
    api.on("/apis/shop.example/v1/namespaces/shop/promotions", listing([]))
    api.on("/api/v1/namespaces", status(403, "Forbidden", "no"))
    api.on("/api/v1/namespaces/shop", document({"metadata": {"name": "shop"}}))
    node_event = {"metadata": {"name": "full", "namespace": "default"}, "involvedObject": {"kind": "Node"}}
    api.on("/api/v1/namespaces/default/events", listing([node_event]))
    summary = await record(api, tmp_path / "recording", RecordOptions(namespaces=("shop",)))
    assert summary.unread == ()
    assert summary.objects == (("events", 1), ("namespaces", 1))
    selected = [request.query["fieldSelector"] for request in api.asked("/api/v1/namespaces/default/events")]
    assert selected == ["involvedObject.kind=Node"]


async def test_schemas_are_recorded_and_served_when_they_are_wanted(api: KubernetesApi, tmp_path: Path) -> None:
    path = "apis/apps/v1"
    api.on("/openapi/v3", document({"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=1"}}}))
    api.on(f"/openapi/v3/{path}", document({"openapi": "3.0.0"}))
    await record(api, tmp_path / "recording", RecordOptions(openapi=True))
    recording = load_snapshot(tmp_path / "recording")
    index = ask(recording, "/openapi/v3").body
    assert index == {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"}}}
    assert ask(recording, f"/openapi/v3/{path}").body == {"openapi": "3.0.0"}
    assert ask(recording, "/openapi/v3/apis/other/v1").status_code == 404


async def test_a_folder_that_cannot_be_made_is_a_clear_error(api: KubernetesApi, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot create the folder .*: File exists"):
        await record_in(api, tmp_path, tmp_path / "file" / "recording")


async def test_of_managed_fields_who_and_when_is_kept(api: KubernetesApi, tmp_path: Path) -> None:
    change = {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-31T11:00:00Z"}
    web = pod("web")
    web["metadata"]["managedFields"] = [{**change, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]
    api.on("/api/v1/pods", listing([web]))
    await record(api, tmp_path / "recording")
    assert load_snapshot(tmp_path / "recording").items("", "pods")[0]["metadata"]["managedFields"] == [change]  # type: ignore[index, call-overload]


async def test_the_files_are_one_object_a_line_in_a_fixed_order(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/api/v1/pods", listing([pod("b"), pod("a"), pod("c", namespace="cart")]))
    await record(api, tmp_path / "one")
    await record(api, tmp_path / "two")
    path = Path("objects", "pods.core.json")
    lines = (tmp_path / "one" / path).read_text().splitlines()
    assert [json.loads(line.rstrip(","))["metadata"]["name"] for line in lines[1:-1]] == ["c", "a", "b"]
    assert json.loads("\n".join(lines))["kind"] == "PodList"
    assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o700


async def test_logs_are_those_of_containers_that_ran_with_the_newest_lines_first_to_stay(
    api: KubernetesApi, tmp_path: Path
) -> None:
    crashed = pod("crashed", containers={"app": waiting("CrashLoopBackOff", restarts=4, last=ended(1))})
    api.on("/api/v1/pods", listing([pod("web"), crashed, pod("new", containers={"app": waiting("ContainerCreating")})]))
    api.on("/api/v1/namespaces/shop/pods/crashed/log", log([f"line {number:04}" for number in range(500)]))
    await record(api, tmp_path / "recording", RecordOptions(logs=LogLimits(tail_lines=300, log_bytes=1_000)))
    logs = load_snapshot(tmp_path / "recording").logs
    found = sorted((key.pod, key.previous) for key in logs)
    assert found == [("crashed", False), ("crashed", True), ("web", False)]
    kept = (tmp_path / "recording/logs/shop/crashed/app.previous.log").read_bytes()
    assert len(kept) <= 1_000
    assert kept.startswith(log_time(0)[:14].encode())
    assert kept.endswith(b" line 0499\n")
    assert [key for request in api.asked("/api/v1/namespaces/shop/pods/new/log") for key in request.query] == []


async def test_a_line_that_the_kubelet_cut_is_left_out_because_half_of_a_token_is_recognised_by_nobody(
    api: KubernetesApi, tmp_path: Path
) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3

    def cut_by_the_kubelet(request: Request) -> Answer:
        body = "".join(f"{log_time(second)} login with {token} failed\n" for second in range(400))
        return Answer(body=body.encode()[: int(request.query["limitBytes"])])

    api.on("/api/v1/pods", listing([pod("web")]))
    api.on("/api/v1/namespaces/shop/pods/web/log", cut_by_the_kubelet)
    await record(api, tmp_path / "recording", RecordOptions(logs=LogLimits(log_bytes=1_000)))
    kept = (tmp_path / "recording/logs/shop/web/app.log").read_text()
    assert kept.endswith(" failed\n")
    assert "ghp_" not in kept


async def test_the_total_of_the_logs_is_bounded_and_what_is_left_out_is_said(
    api: KubernetesApi, tmp_path: Path
) -> None:
    api.on("/api/v1/pods", listing([pod(f"p{number:02}") for number in range(20)]))
    for number in range(20):
        api.on(f"/api/v1/namespaces/shop/pods/p{number:02}/log", log(["x" * 500]))
    summary = await record(api, tmp_path / "recording", RecordOptions(logs=LogLimits(total_bytes=1_000)))
    assert summary.logs == 8
    assert [note.reason for note in summary.unread] == ["the limit of 1,000 bytes was reached; 12 logs were not read"]


async def test_a_log_keeps_the_time_of_each_line_when_a_secret_is_masked(api: KubernetesApi, tmp_path: Path) -> None:
    await record(api, tmp_path / "recording")
    lines = (tmp_path / "recording/logs/shop/web/app.log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == [log_time(0), log_time(1), log_time(2)]
    assert lines[1].split(" ", 1)[1].startswith("PASSWORD=(REDACTED")


async def test_what_may_not_be_read_is_noted_and_refused_later(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/api/v1/secrets", status(403, "Forbidden", 'secrets is forbidden: User "viewer" cannot list'))
    api.on("/apis/shop.example/v1", status(404, "NotFound", "gone"))
    summary = await record(api, tmp_path / "recording")
    notes = {(note.resource, note.forbidden) for note in summary.unread}
    assert notes == {("secrets", True), ("shop.example/v1", False)}
    answer = ask(load_snapshot(tmp_path / "recording"), "/api/v1/secrets")
    assert answer.status_code == 403
    assert 'User "viewer" cannot list' in answer.body["message"]


async def test_a_list_that_fails_in_one_namespace_is_not_served_as_if_it_were_whole(
    api: KubernetesApi, tmp_path: Path
) -> None:
    for name in set(CORE) - CLUSTER_WIDE:
        for namespace in ("shop", "cart"):
            api.on(f"/api/v1/namespaces/{namespace}/{name}", listing([]))
    api.on("/api/v1/namespaces/default/events", listing([]))
    for namespace in ("shop", "cart"):
        api.on(f"/api/v1/namespaces/{namespace}", document({"metadata": {"name": namespace}}))
        api.on(f"/apis/shop.example/v1/namespaces/{namespace}/promotions", listing([]))
    api.on("/api/v1/namespaces/shop/configmaps", status(403, "Forbidden", "no"))
    await record(api, tmp_path / "recording", RecordOptions(namespaces=("shop", "cart")))
    recording = load_snapshot(tmp_path / "recording")
    codes = [
        ask(recording, path).status_code
        for path in (
            "/api/v1/namespaces/cart/configmaps",
            "/api/v1/namespaces/shop/configmaps",
            "/api/v1/configmaps",
            "/api/v1/namespaces/other/pods",
            "/api/v1/pods",
        )
    ]
    assert codes == [200, 403, 403, 403, 200]


async def test_too_many_objects_are_cut_and_that_is_said(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/api/v1/pods", listing([pod(f"p{number}") for number in range(5)]))
    summary = await record(api, tmp_path / "recording", RecordOptions(objects_per_kind=3, logs=None))
    assert ("pods", 3) in summary.objects
    assert [(note.resource, note.partly) for note in summary.unread] == [("pods", True)]
    assert len(ask(load_snapshot(tmp_path / "recording"), "/api/v1/pods").body["items"]) == 3


@pytest.mark.parametrize("content", ["a file", "a folder", "a link"])
async def test_what_is_no_recording_is_never_replaced(api: KubernetesApi, tmp_path: Path, content: str) -> None:
    target = tmp_path / "target"
    if content == "a file":
        target.write_text("precious")
    elif content == "a link":
        (tmp_path / "elsewhere").mkdir()
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.mkdir()
        (target / "precious.txt").write_text("precious")
    with pytest.raises(ConfigError, match="is not a recording"):
        await record(api, target)
    assert api.requests == []


async def test_an_older_recording_and_an_empty_folder_are_replaced(api: KubernetesApi, tmp_path: Path) -> None:
    (tmp_path / "recording").mkdir()
    await record(api, tmp_path / "recording")
    api.on("/api/v1/pods", listing([]))
    await record(api, tmp_path / "recording")
    assert not (tmp_path / "recording/logs").exists()
    assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "recording"]  # noqa: PTH208


async def test_an_interrupted_recording_leaves_the_older_one_as_it_was(api: KubernetesApi, tmp_path: Path) -> None:
    await record(api, tmp_path / "recording")
    before = content_of(tmp_path / "recording")
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow_log(_: object) -> Answer:
        loop.call_soon_threadsafe(reached.set)
        return Answer(body=b"late", delay_seconds=30)

    api.on("/api/v1/namespaces/shop/pods/web/log", slow_log)
    task = asyncio.ensure_future(record(api, tmp_path / "recording"))
    await asyncio.wait_for(reached.wait(), 10)
    assert [path for path in os.listdir(tmp_path) if path.endswith(".partial")]  # noqa: PTH208
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert content_of(tmp_path / "recording") == before
    assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "recording"]  # noqa: PTH208


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/api/v1/pods", listing([pod(f"p{number}") for number in range(200)]))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(HolmesError, match=r"cannot write recording .*: File too large; its files were removed"):
            asyncio.run(record(api, tmp_path / "recording", RecordOptions(logs=None)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


async def test_a_cluster_that_goes_away_in_the_middle_leaves_nothing(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/api/v1/nodes", status(401, "Unauthorized", "expired"))
    with pytest.raises(ClusterUnreachable):
        await record(api, tmp_path / "recording")
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]  # noqa: ASYNC240


async def test_names_that_no_cluster_has_lead_nowhere_and_are_noted(api: KubernetesApi, tmp_path: Path) -> None:
    names = ["../../../../out", "we\nb", "", "web"]
    pods = [pod(name) for name in names]
    pods.append(pod("cart", containers={"../../../../out": running()}))
    api.on("/api/v1/pods", listing(pods))
    for name in ("../../../../out", "cart"):
        api.on(f"/api/v1/namespaces/shop/pods/{name}/log", log(["stolen"]))
    summary = await record_in(api, tmp_path, tmp_path / "a" / "recording")
    assert summary.logs == 1
    assert len(summary.unread) == 4
    assert all(" is not a valid Kubernetes " in each.reason for each in summary.unread)
    assert "stolen" not in content_of(tmp_path)
