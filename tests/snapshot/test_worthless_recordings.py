"""A recording without content never replaces a good one, and a killed run leaves nothing that stays."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.snapshot.recordings import thing
from tests.snapshot.test_snapshot_command import home_for
from tests.support.kubernetes_api import Answer, KubernetesApi, document, kubernetes_api, listing, status

VERBS = {"namespaced": True, "verbs": ["get", "list"]}
RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": "pods", "kind": "Pod", **VERBS},
        {"name": "secrets", "kind": "Secret", **VERBS},
        {"name": "services", "kind": "Service", **VERBS},
    ],
}
LISTS = ("/api/v1/pods", "/api/v1/secrets", "/api/v1/services")
REFUSED = status(403, "Forbidden", 'it is forbidden: User "viewer" cannot list it')


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        server.on("/version", document({"gitVersion": "v1.34.0"}))
        server.on("/apis", document({"kind": "APIGroupList", "groups": []}))
        server.on("/api/v1", document(RESOURCES))
        for path in LISTS:
            server.on(path, listing([]))
        server.on("/api/v1/pods", listing([thing("Pod", "web")]))
        yield server


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (dict.fromkeys(LISTS, REFUSED), 'User "viewer" cannot list it (the first of 3 errors)'),
        ({**dict.fromkeys(LISTS, REFUSED), LISTS[1]: document({"items": []})}, "(the first of 2 errors)"),
        (dict.fromkeys(LISTS, document({"kind": "Status"})), "did not return a list of objects"),
        (dict.fromkeys(LISTS, document({"kind": "PodList", "items": ["web"]})), "did not return a list of objects"),
        (dict.fromkeys(LISTS, Answer(body=b"<html>Log in</html>")), "the response is not JSON"),
        ({"/api/v1": document({**RESOURCES, "resources": []})}, "the API server has no lists of objects"),
    ],
    ids=["refused", "all but an empty one", "status", "scalars", "login page", "no kinds"],
)
def test_an_empty_recording_keeps_the_old_one_and_exits_with_3(
    api: KubernetesApi, tmp_path: Path, answers: dict[str, Answer], why: str
) -> None:
    home, folder = home_for(api, tmp_path), tmp_path / "shop"
    assert home.run("snapshot", "create", str(folder)).exit_code == 0
    before = content_of(folder)
    for path, answer in answers.items():
        api.on(path, answer)

    done = home.run("snapshot", "create", str(folder))

    assert (done.exit_code, done.stdout) == (3, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"holmes: Cannot record anything from the cluster at {api.url}: ")
    assert why in last
    assert last.endswith(
        "The recording was not changed; "
        "check the address and the permissions with `kubectl get pods`, then record again"
    )
    assert content_of(folder) == before
    assert sorted(os.listdir(tmp_path)) == ["home", "kubeconfig", "shop"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/apis", "GET /apis: the API server did not return a list of groups"),
        ("/api/v1", "GET /api/v1: the API server did not return a list of resources"),
    ],
)
def test_an_invalid_discovery_is_not_taken_for_a_cluster_without_kinds(
    api: KubernetesApi, tmp_path: Path, path: str, message: str
) -> None:
    api.on(path, document({"kind": "Status", "status": "Success"}))
    done = home_for(api, tmp_path).run("snapshot", "create", str(tmp_path / "shop"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert message in done.stderr
    assert not (tmp_path / "shop").exists()


def test_a_list_without_end_is_noted_and_the_others_are_recorded(api: KubernetesApi, tmp_path: Path) -> None:
    turns = count()
    api.on(LISTS[1], document({"metadata": {"continue": "again"}, "items": []}))
    api.on(LISTS[2], lambda _: document({"metadata": {"continue": str(next(turns))}, "items": []}))
    done = home_for(api, tmp_path).run("snapshot", "create", str(tmp_path / "shop"), timeout_seconds=60)
    assert done.exit_code == 0, done.stderr
    assert "  secrets: GET /api/v1/secrets: the API server returned the same page twice" in done.stdout
    assert "  services: GET /api/v1/services: the API server returned 101 pages with only 0 objects" in done.stdout


def test_a_cluster_whose_version_is_forbidden_is_recorded_served_and_scanned(
    api: KubernetesApi, tmp_path: Path
) -> None:
    api.on("/version", status(403, "Forbidden", 'User "viewer" cannot get path "/version"'))
    home = home_for(api, tmp_path)
    done = home.run("snapshot", "create", str(tmp_path / "shop"))
    assert done.exit_code == 0, done.stderr
    assert '  version: forbidden: User "viewer" cannot get path "/version"' in done.stdout.splitlines()
    scanned = home.run("scan", "--snapshot", str(tmp_path / "shop"))
    assert scanned.exit_code == 0, scanned.stderr
    assert "Traceback" not in scanned.stderr


def test_the_files_of_a_killed_run_are_removed_by_the_next(api: KubernetesApi, tmp_path: Path) -> None:
    reached = threading.Event()

    def slow(_: object) -> Answer:
        reached.set()
        return Answer(delay_seconds=30)

    home = home_for(api, tmp_path)
    api.on("/api/v1/pods", slow)
    process = home.start("snapshot", "create", str(tmp_path / "shop"))
    assert reached.wait(20)
    assert [path for path in tmp_path.iterdir() if path.suffix == ".partial"]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    api.on("/api/v1/pods", listing([thing("Pod", "web")]))

    assert home.run("snapshot", "create", str(tmp_path / "shop")).exit_code == 0

    assert sorted(os.listdir(tmp_path)) == ["home", "kubeconfig", "shop"]  # noqa: PTH208
