"""The command with which the chart makes the keys; what it does on a real cluster is in `tests/helm/test_install`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import Home
from tests.support.kubernetes_api import KubernetesApi, kubernetes_api, status, write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRETS = "/api/v1/namespaces/ops/secrets"


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


def make_keys(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = Home.make(folder / "home", KUBECONFIG=str(write_kubeconfig(folder, url))).environment()
    command = [sys.executable, "-m", "holmes.server.release_keys", "holmes", "ops"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (201, "Secret 'holmes' created\n"),
        (409, "Secret 'holmes' already exists and is unchanged\n"),
    ],
)
def test_a_secret_is_there_afterwards_and_is_only_ever_created(
    code: int, said: str, api: KubernetesApi, tmp_path: Path
) -> None:
    api.on(SECRETS, status(code, "", ""))
    done = make_keys(api.url, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert [(request.method, request.path) for request in api.requests] == [("POST", SECRETS)]


@pytest.mark.parametrize("code", [403, 422, 500])
def test_a_refusal_is_one_line_that_says_what_to_do(code: int, api: KubernetesApi, tmp_path: Path) -> None:
    api.on(SECRETS, status(code, "Forbidden", "secrets is forbidden"))
    done = make_keys(api.url, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "holmes: Secret 'holmes' cannot be created: secrets is forbidden; "
        "create it yourself and set auth.existingSecret\n"
    )


def test_an_api_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    done = make_keys("http://127.0.0.1:1", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "connection refused" in done.stderr
    assert done.stderr.count("\n") == 1
