"""Who asks: certificates, tokens, token files and exec plugins, and what happens when they expire or are refused."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.credentials import run_exec_plugin
from holmes.kubernetes.kubeconfig import load_access
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable
from tests.support.certificates import Certificates, make_certificates
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    Request,
    document,
    kubernetes_api,
    status,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

API_VERSION = "client.authentication.k8s.io/v1"
VERSION = document({"gitVersion": "v1.34.4"})


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return make_certificates()


@pytest.fixture
def api(certificates: Certificates, tmp_path: Path) -> Iterator[KubernetesApi]:
    with kubernetes_api(tls=certificates.server_context(tmp_path)) as server:
        yield server


def _trust(certificates: Certificates) -> dict[str, str]:
    return {"certificate-authority-data": base64.b64encode(certificates.authority).decode()}


def _environment(tmp_path: Path, api: KubernetesApi, cluster: dict[str, Any], user: dict[str, Any]) -> Environment:
    path = write_kubeconfig(tmp_path, api.url, cluster=cluster, user=user)
    return Environment.of({"KUBECONFIG": str(path), "PATH": os.environ["PATH"]})


def _accept(*tokens: str) -> Any:  # noqa: ANN401  a responder
    def respond(request: Request) -> Answer:
        accepted = request.headers.get("authorization") in {f"Bearer {token}" for token in tokens}
        return VERSION if accepted else status(401, "Unauthorized", "Unauthorized")

    return respond


def _plugin(tmp_path: Path, script: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  whatever a kubeconfig holds
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{script}\n")
    path.chmod(0o755)
    return {"exec": {"apiVersion": API_VERSION, "command": "./plugin", **more}}


def _credential(**content: str) -> str:
    return "echo '" + json.dumps({"apiVersion": API_VERSION, "kind": "ExecCredential", "status": content}) + "'"


def _runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


async def test_a_server_signed_by_the_authority_is_trusted(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    api.on("/version", _accept("t0ken"))
    environment = _environment(tmp_path, api, _trust(certificates), {"token": "t0ken"})

    async with await ClusterClient.connect(environment) as client:
        assert (await client.probe()).version == "v1.34.4"


@pytest.mark.parametrize("token", ["k8s-Qm9ydXNza\nWEyMDI0-plain", "schlüssel-plain", "a\x00plain"])
async def test_a_token_that_http_does_not_allow_is_never_printed(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path, token: str
) -> None:
    environment = _environment(tmp_path, api, _trust(certificates), {"token": token})
    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(ClusterUnreachable, match="another character that HTTP does not allow") as raised:
            await client.probe()
    assert "plain" not in str(raised.value)


async def test_a_server_of_another_authority_is_refused_in_one_line(api: KubernetesApi, tmp_path: Path) -> None:
    environment = _environment(tmp_path, api, _trust(make_certificates()), {"token": "t0ken"})

    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(ClusterUnreachable, match=r"certificate is not trusted .*check certificate-authority"):
            await client.probe()
    assert api.requests == []


async def test_skipping_verification_is_done_only_when_asked(api: KubernetesApi, tmp_path: Path) -> None:
    api.on("/version", VERSION)
    environment = _environment(tmp_path, api, {"insecure-skip-tls-verify": True}, {})

    async with await ClusterClient.connect(environment) as client:
        await client.probe()


async def test_the_name_in_the_certificate_may_differ_when_the_kubeconfig_says_so(tmp_path: Path) -> None:
    other = make_certificates(server_names=("kubernetes.example",))
    with kubernetes_api(tls=other.server_context(tmp_path)) as api:
        api.on("/version", VERSION)
        named = {**_trust(other), "tls-server-name": "kubernetes.example"}
        async with await ClusterClient.connect(_environment(tmp_path, api, named, {})) as client:
            await client.probe()
        async with await ClusterClient.connect(_environment(tmp_path, api, _trust(other), {})) as client:
            with pytest.raises(ClusterUnreachable, match="tls-server-name"):
                await client.probe()


async def test_a_client_certificate_is_shown_and_leaves_no_file(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    user = {
        "client-certificate-data": base64.b64encode(certificates.client).decode(),
        "client-key-data": base64.b64encode(certificates.client_key).decode(),
    }
    with kubernetes_api(tls=certificates.server_context(tmp_path, ask_client=True)) as api:
        api.on("/version", VERSION)
        async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
            await client.probe()
        async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), {})) as client:
            refused = r"context 'test' at https://.*: (TLS failed|the connection ended .* client certificate)"
            with pytest.raises(ClusterUnreachable, match=refused):
                await client.probe()
        assert len(api.requests) == 1, "without the certificate nothing gets through"
    assert list(temporary.iterdir()) == []


async def test_a_connection_that_is_reset_after_the_handshake_hints_at_the_client_certificate(
    certificates: Certificates, tmp_path: Path
) -> None:
    context = certificates.server_context(tmp_path)
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(5)
                with context.wrap_socket(connection, server_side=True) as wrapped:
                    wrapped.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=serve)
        thread.start()
        path = write_kubeconfig(
            tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}", cluster=_trust(certificates), user={}
        )
        try:
            async with await ClusterClient.connect(Environment.of({"KUBECONFIG": str(path)})) as client:
                with pytest.raises(
                    ClusterUnreachable, match=r"ended before a response \(.*; check .* client certificate"
                ):
                    await client.probe()
        finally:
            ended.set()
            thread.join()


async def test_a_broken_authority_is_one_line(api: KubernetesApi, tmp_path: Path) -> None:
    broken = {"certificate-authority-data": base64.b64encode(b"no certificate").decode()}

    async with await ClusterClient.connect(_environment(tmp_path, api, broken, {})) as client:
        with pytest.raises(ClusterUnreachable, match="certificate-authority is not a PEM certificate"):
            await client.probe()


async def test_credentials_are_never_sent_without_tls(tmp_path: Path) -> None:
    with kubernetes_api() as api:
        api.on("/version", VERSION)
        async with await ClusterClient.connect(_environment(tmp_path, api, {}, {"token": "t0ken"})) as client:
            await client.probe()

        assert "authorization" not in api.requests[0].headers


async def test_refused_credentials_say_whose_they_are(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    api.on("/version", _accept("other"))

    async with await ClusterClient.connect(
        _environment(tmp_path, api, _trust(certificates), {"token": "t0ken"})
    ) as client:
        with pytest.raises(ClusterUnreachable, match=r"does not accept the credentials of user 'u' \(401") as caught:
            await client.probe()
    assert "t0ken" not in str(caught.value)


async def test_a_token_file_is_read_again_when_its_token_is_refused(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    api.on("/version", _accept("old"), _accept("new"))

    environment = _environment(tmp_path, api, _trust(certificates), {"tokenFile": "token"})
    async with await ClusterClient.connect(environment) as client:
        await client.probe()
        token.write_text("new\n")
        await client.probe()

    assert [request.headers["authorization"] for request in api.requests] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_an_exec_plugin_runs_once_and_sees_only_the_environment_it_is_given(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    script = f'env > {tmp_path}/seen; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {_credential(token="fresh")}'
    user = _plugin(
        tmp_path, script, env=[{"name": "AWS_PROFILE", "value": "shop"}], args=["get"], provideClusterInfo=True
    )
    api.on("/version", _accept("fresh"))

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        await asyncio.gather(*(client.probe() for _ in range(5)))

    seen = (tmp_path / "seen").read_text()
    info = json.loads((tmp_path / "info").read_text())
    assert _runs(tmp_path) == 1
    assert "AWS_PROFILE=shop" in seen
    assert "PYTEST_CURRENT_TEST" not in seen
    assert info["spec"]["cluster"]["server"] == api.url
    assert info["spec"]["interactive"] is False


async def test_an_exec_plugin_runs_again_before_its_token_expires_and_after_a_refusal(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=3)).isoformat()
    user = _plugin(tmp_path, _credential(token="fresh", expirationTimestamp=soon.replace("+00:00", "Z")))
    api.on("/version", _accept("fresh"), _accept("none"), _accept("fresh"))

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        await client.probe()
        first = _runs(tmp_path)
        await client.probe()
        after_refusal = _runs(tmp_path)
        await asyncio.sleep(3)
        await client.probe()

    assert (first, after_refusal) == (1, 2)
    assert _runs(tmp_path) >= 3


async def test_a_certificate_of_an_exec_plugin_is_shown(certificates: Certificates, tmp_path: Path) -> None:
    status_ = {
        "clientCertificateData": certificates.client.decode(),
        "clientKeyData": certificates.client_key.decode(),
    }
    (tmp_path / "credential.json").write_text(json.dumps({"apiVersion": API_VERSION, "status": status_}))
    user = _plugin(tmp_path, f"cat {tmp_path}/credential.json")
    with kubernetes_api(tls=certificates.server_context(tmp_path, ask_client=True)) as api:
        api.on("/version", VERSION)
        async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
            await client.probe()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo expired session >&2; exit 7", "'./plugin' failed with exit code 7: expired session"),
        ("echo no json", "'./plugin' did not print JSON"),
        ("echo '{}'", "uses '', but the kubeconfig requires 'client.authentication.k8s.io/v1'"),
        (_credential(), "printed neither a token nor a certificate with its key"),
    ],
)
async def test_a_failing_exec_plugin_is_one_line(
    script: str, message: str, api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    user = _plugin(tmp_path, script)

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        with pytest.raises(ClusterUnreachable) as caught:
            await client.probe()

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_missing_exec_plugin_says_how_to_install_it(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    hint = "Install it with\n  brew install it"
    user = {"exec": {"apiVersion": API_VERSION, "command": "no-such-plugin", "installHint": hint}}

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        with pytest.raises(ClusterUnreachable, match="'no-such-plugin' is not installed; Install it with brew install"):
            await client.probe()


async def test_a_hanging_exec_plugin_ends_with_all_its_children(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    user = _plugin(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; wait")
    access = load_access(_environment(tmp_path, api, _trust(certificates), user))
    assert access.user.exec_plugin is not None

    with pytest.raises(ClusterUnreachable, match=r"did not finish within 0\.5 s"):
        await run_exec_plugin(
            access.user.exec_plugin, access, Environment.of({"PATH": os.environ["PATH"]}), timeout_seconds=0.5
        )

    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 3
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the plugin's child still runs"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "script",
    ["yes", "yes >&2", "yes & wait", "setsid yes & exit 0"],
    ids=["output", "errors", "child", "child outside the group"],
)
async def test_an_exec_plugin_that_prints_without_end_is_ended_with_its_children(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path, script: str
) -> None:
    user = _plugin(tmp_path, f"exec 3>{tmp_path}/held; {script}")

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        with ends_before(10), pytest.raises(ClusterUnreachable, match=r"'\./plugin' printed more than 1 MB; run it"):
            await client.probe()

    deadline = time.monotonic() + 3
    while any(_holds(process, tmp_path / "held") for process in psutil.process_iter()):
        assert time.monotonic() < deadline, "a process of the plugin still runs"
        await asyncio.sleep(0.05)


def _holds(process: psutil.Process, path: Path) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(file.path == str(path) for file in process.open_files())
    return False


async def test_a_hanging_exec_plugin_ends_in_time_when_a_process_outside_its_group_keeps_its_output(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    access = load_access(_environment(tmp_path, api, _trust(certificates), _plugin(tmp_path, "setsid sleep 8 & wait")))
    assert access.user.exec_plugin is not None

    with ends_before(6), pytest.raises(ClusterUnreachable, match=r"did not finish within 0\.5 s"):
        await run_exec_plugin(
            access.user.exec_plugin, access, Environment.of({"PATH": os.environ["PATH"]}), timeout_seconds=0.5
        )


async def test_an_old_auth_provider_gives_its_token(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    later = base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + 3600}).encode()).decode().rstrip("=")
    token = f"e30.{later}.sig"
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    api.on("/version", _accept(token))

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        await client.probe()


async def test_an_auth_provider_without_a_token_says_to_log_in(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path
) -> None:
    user = {"auth-provider": {"name": "azure", "config": {}}}

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        with pytest.raises(ClusterUnreachable, match="auth provider 'azure' of user 'u' did not return a token"):
            await client.probe()


async def test_an_auth_provider_without_its_packages_names_the_extra(
    api: KubernetesApi, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    user = {"auth-provider": {"name": "oidc", "config": {}}}

    async with await ClusterClient.connect(_environment(tmp_path, api, _trust(certificates), user)) as client:
        with pytest.raises(ClusterUnreachable, match=r"'oidc', .*pip install 'holmes\[auth-provider\]'"):
            await client.probe()
