"""Recordings, cluster dumps and manifests are recognised and loaded; bad ones are one line that names the place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holmes.kubernetes.fields import timestamp
from holmes.snapshot.sources import load_snapshot
from holmes.values.errors import ConfigError
from tests.snapshot.recordings import ask, names

SHOP = Path(__file__).parent / "shop.yaml"
MANIFEST = {"format": 1, "recordedAt": "2026-01-31T12:00:00Z", "serverVersion": {}, "namespaces": []}
PODS = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list"]}
DISCOVERY = {"groups": {"groups": []}, "resources": [{"groupVersion": "v1", "resources": [PODS]}]}


def write_recording(folder: Path, **files: Any) -> Path:  # noqa: ANN401  anything, also what is wrong
    content = {"recording": MANIFEST, "discovery": DISCOVERY, "objects/pods.core": _pods()} | files
    for name, document in content.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if document is not None:
            path.write_text(document if isinstance(document, str) else json.dumps(document))
    return folder


def _pods(*items: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"apiVersion": "v1", "kind": "PodList", "items": list(items)}


def test_a_recording_is_loaded(tmp_path: Path) -> None:
    loaded = load_snapshot(write_recording(tmp_path, **{"objects/pods.core": _pods({"metadata": {"name": "web"}})}))
    assert timestamp(loaded.recorded_at) == "2026-01-31T12:00:00Z"
    assert names(loaded, "/api/v1/pods") == ["web"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"discovery": None}, "discovery.json: cannot read the file: No such file or directory"),
        ({"discovery": "{"}, "discovery.json:1:2: the file is not valid JSON"),
        ({"objects/pods.core": '{"items": [\n{"a" 1}]}'}, "pods.core.json:2:6: the file is not valid JSON"),
        ({"recording": {**MANIFEST, "format": 2}}, "format 2, but at most 1 is supported; update Holmes"),
        ({"recording": {}}, "'format' is missing"),
        ({"recording": []}, "expected a JSON object"),
        ({"recording": {**MANIFEST, "recordedAt": "yesterday"}}, "'recordedAt' is not a valid time"),
        ({"objects/carts.core": _pods()}, "discovery.json does not contain 'carts' of 'v1'"),
        ({"objects/pods.core": {"apiVersion": "v1"}}, "'items' must be a list of objects"),
        ({"objects/pods.core": _pods("web")}, "'items' must be a list of objects"),
    ],
)
def test_a_broken_recording_is_one_line_that_names_the_place(
    tmp_path: Path, files: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_snapshot(write_recording(tmp_path, **files))
    assert expected in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipe_in_a_recording_is_never_read(tmp_path: Path) -> None:
    folder = write_recording(tmp_path, discovery=None)
    os.mkfifo(folder / "discovery.json")
    with pytest.raises(ConfigError, match=r"discovery\.json: not a regular file"):
        load_snapshot(folder)


def test_manifests_get_what_a_cluster_would_have_filled_in(tmp_path: Path) -> None:
    loaded = load_snapshot(SHOP)
    web = ask(loaded, "/apis/apps/v1/namespaces/default/deployments/web").body
    assert (
        web["metadata"]["uid"]
        == ask(load_snapshot(SHOP), "/apis/apps/v1/deployments").body["items"][2]["metadata"]["uid"]
    )
    assert web["metadata"]["creationTimestamp"] == timestamp(loaded.recorded_at)
    assert names(loaded, "/api/v1/namespaces") == ["default"]
    copy = tmp_path / "deep" / "copy.yaml"
    copy.parent.mkdir()
    copy.write_text(SHOP.read_text())
    assert names(load_snapshot(tmp_path), "/api/v1/pods") == names(loaded, "/api/v1/pods")


def test_values_of_secrets_in_manifests_are_not_served() -> None:
    secret = ask(load_snapshot(SHOP), "/api/v1/namespaces/default/secrets/payments-token").body
    assert secret["data"] == {"token": "KFJFREFDVEVEKQ==", "empty": ""}
    assert "stringData" not in secret


def test_the_newest_time_that_objects_name_is_now_and_the_future_is_not(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: web, creationTimestamp: 2026-01-31T11:00:00Z},\n"
        " spec: {notAfter: 2036-01-01T00:00:00Z}, status: {startTime: 2026-01-31T11:30:00Z}}"
    )
    assert timestamp(load_snapshot(tmp_path).recorded_at) == "2026-01-31T11:30:00Z"


def test_lists_and_several_documents_are_taken_apart_and_other_files_passed_over(tmp_path: Path) -> None:
    inner = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "b"}}, {"metadata": {"name": "a"}}]}
    (tmp_path / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [inner]}))
    (tmp_path / "more.yml").write_text("---\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c, namespace: cart}\n")
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "broken.yaml").write_text("{")
    loaded = load_snapshot(tmp_path)
    assert names(loaded, "/api/v1/pods") == ["c", "a", "b"]
    assert names(loaded, "/api/v1/namespaces") == ["cart", "default"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Gateway", "namespaces/default/gateways"),
        ("Policy", "namespaces/default/policies"),
        ("Proxy", "namespaces/default/proxies"),
        ("Ingress", "namespaces/default/ingresses"),
        ("ClusterIssuer", "clusterissuers"),
    ],
)
def test_a_kind_that_nobody_describes_gets_a_plausible_path(tmp_path: Path, kind: str, path: str) -> None:
    (tmp_path / "custom.yaml").write_text(f"apiVersion: shop.example/v1\nkind: {kind}\nmetadata: {{name: x}}\n")
    assert names(load_snapshot(tmp_path), f"/apis/shop.example/v1/{path}") == ["x"]


def test_a_definition_among_the_manifests_says_how_its_resources_are_named(tmp_path: Path) -> None:
    (tmp_path / "custom.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.shop.example}\n"
        "spec: {group: shop.example, scope: Cluster, names: {kind: Mouse, plural: mice}, versions: [{name: v1}]}\n"
        "---\napiVersion: shop.example/v1\nkind: Mouse\nmetadata: {name: jerry}\n"
    )
    assert names(load_snapshot(tmp_path), "/apis/shop.example/v1/mice") == ["jerry"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", "kind: Pod\n  name: x\n", "a.yaml:2: the file is not valid YAML"),
        ("a.json", '{"kind": }', "a.json:1:10: the file is not valid JSON"),
        ("a.yaml", "replicas: 3\n", "contains neither a recording nor Kubernetes objects: 1 files were read"),
        ("a.txt", "hello", "is not in a known format: it has 1 file (1 .txt) in 'a.txt'; expected a recording"),
        ("a.yaml", "&a [*a]\n", "too many values after its aliases"),
        ("a.yaml", "[" * 50_000, "more than 1,000 nested levels"),
        ("a.yaml", "a: !!binary aGVsbG8=\n", "a value that JSON does not support (bytes)"),
        ("a.json", '{"replicas": ' + "9" * 5_000 + "}", "the file is not valid JSON: Exceeds the limit"),
        ("a.yaml", "a: !!python/object/apply:os.system [id]\n", "could not determine a constructor"),
        ("a.yaml", b"\xff\xfe\x00", "not valid YAML"),
    ],
)
def test_bad_manifests_are_one_line_that_names_the_place(
    tmp_path: Path, name: str, content: str | bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        load_snapshot(tmp_path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_links_that_lead_out_of_a_bundle_are_not_followed(tmp_path: Path) -> None:
    private = tmp_path / "private.log"
    private.write_text("2026-01-31T12:00:00Z private\n")
    (tmp_path / "private.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: private}\n")
    bundle = write_recording(tmp_path / "bundle")
    (bundle / "logs/shop/web").mkdir(parents=True)
    (bundle / "logs/shop/web/app.log").symlink_to(private)
    assert load_snapshot(bundle).logs == {}
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "link.yaml").symlink_to(tmp_path / "private.yaml")
    with pytest.raises(ConfigError, match="it has no files"):
        load_snapshot(manifests)


def test_a_path_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_snapshot(tmp_path / "nothing")


def write_dump(folder: Path, ending: str) -> Path:
    """What `kubectl cluster-info dump --output-directory` writes; JSON is YAML as well."""
    node = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": "v1.33.2"}}}
    web = {
        "metadata": {"name": "web-1", "namespace": "shop", "creationTimestamp": "2026-01-31T11:00:00Z"},
        "spec": {"nodeName": "n1", "containers": [{"name": "web"}], "initContainers": [{"name": "warm-up"}]},
        "status": {"phase": "Running", "startTime": "2026-01-31T11:00:05Z"},
    }
    for path, kind, items in ((f"nodes.{ending}", "Node", [node]), (f"shop/pods.{ending}", "Pod", [web])):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "items": items}))
    logs = folder / "shop" / "web-1" / "logs.txt"
    logs.parent.mkdir()
    logs.write_text(
        "".join(_log_part(container, text) for container, text in (("warm-up", "warm\n"), ("web", "a\nb\n")))
    )
    return folder


def _log_part(container: str, text: str) -> str:
    where = f"logs for container {container} of pod shop/web-1 ===="
    return f"==== START {where}\n{text}==== END {where}\n"


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_cluster_dump_is_recognised_with_its_logs(tmp_path: Path, ending: str) -> None:
    loaded = load_snapshot(write_dump(tmp_path, ending))
    assert timestamp(loaded.recorded_at) == "2026-01-31T11:00:05Z"
    assert loaded.version["gitVersion"] == "v1.33.2"
    assert (loaded.namespace, loaded.namespaces) == ("shop", ("shop",))
    logs = {key.container: b"".join(log.lines()) for key, log in loaded.logs.items()}
    assert logs == {"warm-up": b"warm\n", "web": b"a\nb\n"}


def test_kinds_that_a_dump_leaves_out_are_not_taken_for_empty(tmp_path: Path) -> None:
    loaded = load_snapshot(write_dump(tmp_path, "json"))
    paths = ("/api/v1/namespaces/shop/configmaps", "/api/v1/secrets", "/api/v1/namespaces/other/pods")
    assert [ask(loaded, path).status_code for path in paths] == [403, 403, 403]


def test_keys_of_yaml_become_text_as_in_json(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {8080: one, true: yes, null: none}}}"
    )
    pod = ask(load_snapshot(tmp_path), "/api/v1/namespaces/default/pods/web").body
    assert pod["metadata"]["labels"] == {"8080": "one", "true": True, "null": "none"}


def test_halves_of_characters_in_json_are_replaced(tmp_path: Path) -> None:
    annotations = {"a": "\ud800", "b": "\N{GRINNING FACE}"}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "annotations": annotations}}
    (tmp_path / "pod.json").write_text(json.dumps(document))
    pod = ask(load_snapshot(tmp_path), "/api/v1/namespaces/default/pods/web").body
    assert pod["metadata"]["annotations"] == {"a": "\N{REPLACEMENT CHARACTER}", "b": "\N{GRINNING FACE}"}
