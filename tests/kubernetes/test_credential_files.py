"""The files that a kubeconfig names are read only if they are files that end; nothing waits or fills the memory."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.kubeconfig import load_access
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ConfigError
from tests.support.certificates import Certificates, make_certificates
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import KubernetesApi, document, kubernetes_api, write_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return make_certificates()


@pytest.fixture
def api(certificates: Certificates, tmp_path: Path) -> Iterator[KubernetesApi]:
    with kubernetes_api(tls=certificates.server_context(tmp_path)) as server:
        server.on("/version", document({"gitVersion": "v1.34.0"}))
        yield server


def _file_of(kind: str, folder: Path) -> Path:
    path = folder / "secret"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            return folder / "../../../../../../../dev/zero"
        case "folder":
            path.mkdir()
        case "endless":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case _:
            return folder / "missing"
    return path


FILES = {
    "pipe": "it is not a regular file",
    "device": "it is not a regular file",
    "folder": "it is not a regular file",
    "endless": "it is larger than 1 MB",
    "missing": "No such file or directory",
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("key", ["tokenFile", "client-certificate", "client-key", "certificate-authority"])
async def test_a_file_that_cannot_be_read_to_its_end_is_one_line(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path, key: str, kind: str
) -> None:
    named = {key: str(_file_of(kind, tmp_path))}
    trust = {"certificate-authority-data": base64.b64encode(certificates.authority).decode()}
    parts: dict[str, Any] = {"cluster": named} if key == "certificate-authority" else {"cluster": trust, "user": named}
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url, **parts))})
    with ends_before(5), pytest.raises(ClusterUnreachable, match=FILES[kind]) as raised:
        async with await ClusterClient.connect(environment) as client:
            await client.probe()
    assert repr(named[key]) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_kubeconfig_that_is_no_file_is_one_line(tmp_path: Path, kind: str) -> None:
    path = _file_of(kind, tmp_path)
    with ends_before(5), pytest.raises(ConfigError, match="is not a regular file; set KUBECONFIG to a file"):
        load_access(Environment.of({"KUBECONFIG": str(path)}))


def test_an_endless_kubeconfig_is_one_line(tmp_path: Path) -> None:
    with ends_before(10), pytest.raises(ConfigError, match="larger than 10 MB"):
        load_access(Environment.of({"KUBECONFIG": str(_file_of("endless", tmp_path))}))


def test_dev_null_is_an_empty_kubeconfig_as_in_kubectl() -> None:
    with pytest.raises(ClusterUnreachable, match="No cluster is configured"):
        load_access(Environment.of({"KUBECONFIG": os.devnull}))


def test_a_namespace_file_of_a_pod_that_never_ends_is_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "namespace")
    (tmp_path / "token").write_text("t0ken")
    environment = Environment.of({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)})
    with ends_before(5):
        assert load_access(environment, service_account=tmp_path).namespace == "default"
