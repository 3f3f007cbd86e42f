"""`holmes snapshot` from the outside: what it prints, how it ends, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.snapshot.recordings import thing
from tests.snapshot.test_sources import MANIFEST, SHOP, write_recording
from tests.support.command_line import Home
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    document,
    kubernetes_api,
    listing,
    status,
    write_kubeconfig,
)

PODS = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"]}
SECRETS = {"name": "secrets", "kind": "Secret", "namespaced": True, "verbs": ["list"]}
RESOURCES = {"kind": "APIResourceList", "groupVersion": "v1", "resources": [PODS, SECRETS]}


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        server.on("/version", document({"gitVersion": "v1.34.0"}))
        server.on("/apis", document({"kind": "APIGroupList", "groups": []}))
        server.on("/api/v1", document(RESOURCES))
        server.on("/api/v1/pods", listing([thing("Pod", "web"), thing("Pod", "cart")]))
        server.on("/api/v1/secrets", status(403, "Forbidden", 'secrets is forbidden: User "viewer" cannot list it'))
        yield server


def home_for(api: KubernetesApi, folder: Path) -> Home:
    return Home.make(folder / "home", KUBECONFIG=str(write_kubeconfig(folder, api.url)), TMPDIR=str(folder))


def test_create_says_what_was_recorded_and_what_was_not(api: KubernetesApi, tmp_path: Path) -> None:
    done = home_for(api, tmp_path).run("snapshot", "create", str(tmp_path / "shop"))
    assert done.exit_code == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first.startswith("recorded at 20")
    assert lines == [
        "2 objects of 1 kind: 2 pods",
        "0 logs",
        "not recorded:",
        '  secrets: forbidden: secrets is forbidden: User "viewer" cannot list it',
        f"serve it with: holmes snapshot serve {tmp_path / 'shop'}",
    ]
    assert "reading 2 kinds of objects" in done.stderr


def test_create_without_a_cluster_ends_with_3_and_one_line(tmp_path: Path) -> None:
    done = Home.make(tmp_path / "home").run("snapshot", "create", str(tmp_path / "shop"))
    assert (done.exit_code, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "shop").exists()


def test_create_that_is_interrupted_leaves_nothing_and_ends_with_130(api: KubernetesApi, tmp_path: Path) -> None:
    reached = threading.Event()

    def slow(_: object) -> Answer:
        reached.set()
        return Answer(delay_seconds=30)

    api.on("/api/v1/pods", slow)
    process = home_for(api, tmp_path).start("snapshot", "create", str(tmp_path / "shop"))
    assert reached.wait(20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("holmes: interrupted; nothing was written\n")
    assert sorted(os.listdir(tmp_path)) == ["home", "kubeconfig"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "-A", "-n", "shop", "x"], "-A and -n are mutually exclusive"),
        (["create"], "Missing argument 'FOLDER'"),
        (
            ["serve", "nothing"],
            "'nothing' does not exist; expected a recording of `holmes snapshot create`, a support bundle",
        ),
        (["serve", "--port", "70000", "."], "Invalid value for '--port'"),
        (["show", "."], "'.' is not in a known format: it has no files; expected a recording"),
    ],
)
def test_wrong_usage_is_one_line_and_ends_with_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    folder = tmp_path / "home"
    done = subprocess.run(
        ["holmes", "snapshot", *arguments],
        cwd=Path(Home.make(folder).path, ".holmes"),
        env=Home(path=folder, variables={}).environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_show_lists_what_is_in_a_source(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home")
    done = home.run("snapshot", "show", str(SHOP))
    assert done.exit_code == 0, done.stderr
    assert "1 configmaps, 1 cronjobs.batch, 1 daemonsets.apps, 3 deployments.apps" in done.stdout
    unread = [{"resource": "secrets", "namespace": "", "forbidden": True, "reason": "cannot list"}]
    folder = write_recording(tmp_path / "recording", recording={**MANIFEST, "unread": unread})
    assert "secrets: forbidden: cannot list" in home.run("snapshot", "show", str(folder)).stdout


def test_show_lets_no_terminal_sequence_and_no_forged_line_through(tmp_path: Path) -> None:
    unread = [{"resource": "\x1b[2Jpods", "namespace": "shop\neverything was recorded", "reason": "\x1b]0;title\x07no"}]
    forged = {**MANIFEST, "context": "prod\x1b[31m", "unread": unread}
    folder = write_recording(tmp_path / "recording", recording=forged)
    shown = Home.make(tmp_path / "home").run("snapshot", "show", str(folder)).stdout
    assert "\x1b" not in shown
    assert shown.splitlines()[-2:] == ["not recorded:", "  pods in shop everything was recorded: no"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_stays_until_a_signal_and_then_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    home = Home.make(tmp_path / "home", TMPDIR=str(tmp_path))
    process = home.start("snapshot", "serve", str(SHOP))
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("export KUBECONFIG=")
    kubeconfig = Path(line.strip().removeprefix("export KUBECONFIG="))
    assert '"server": "http://127.0.0.1:' in kubeconfig.read_text()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_serve_takes_the_port_that_it_is_given(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", TMPDIR=str(tmp_path))
    first = home.start("snapshot", "serve", str(SHOP))
    assert first.stderr is not None
    address = first.stderr.readline().split(" at ")[1].split("/recording")[0]
    try:
        assert httpx.get(f"{address}/readyz", trust_env=False, timeout=5).text == "ok"
        taken = home.run("snapshot", "serve", str(SHOP), "--port", address.rpartition(":")[2])
        assert taken.exit_code == 2
        assert "cannot be used: Address already in use" in taken.stderr
    finally:
        first.terminate()
        first.communicate(timeout=20)
