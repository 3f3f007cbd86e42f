"""`holmes serve` over TLS, as HOLMES_SSL_* say."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from tests.support.certificates import Certificates, make_certificates
from tests.support.command_line import Home

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return make_certificates()


@pytest.fixture
def files(certificates: Certificates, tmp_path: Path) -> dict[str, Path]:
    """The certificates as files; `locked` is the server's key with a password."""
    key = serialization.load_pem_private_key(certificates.server_key, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    contents = {
        "certificate": certificates.server,
        "key": certificates.server_key,
        "locked": locked,
        "client": certificates.client,
        "client_key": certificates.client_key,
        "authority": certificates.authority,
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.pem").write_bytes(content)
    return {name: tmp_path / f"{name}.pem" for name in contents}


def serve(tmp_path: Path, **variables: str) -> subprocess.Popen[str]:
    home = Home.make(tmp_path / "home", **variables)
    return home.start("serve", "--demo", "--port", "0", "--model", "builtin/triage")


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("holmes: listening on https://127.0.0.1:"), (line, process.stderr and process.stderr.read())
    return line.split()[-1]


def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificates.authority.decode())


def test_it_speaks_https_with_an_encrypted_key_and_looks_at_client_certificates(
    tmp_path: Path, files: dict[str, Path], certificates: Certificates
) -> None:
    strangers = make_certificates()
    (tmp_path / "stranger.pem").write_bytes(strangers.client + strangers.client_key)
    variables = {
        "HOLMES_SSL_CERTFILE": str(files["certificate"]),
        "HOLMES_SSL_KEYFILE": str(files["locked"]),
        "HOLMES_SSL_KEYFILE_PASSWORD": PASSWORD,
        "HOLMES_SSL_CA_CERTS": str(files["authority"]),
    }
    with serve(tmp_path, **variables) as process:
        try:
            url, known, stranger = url_of(process), trusting(certificates), trusting(certificates)
            assert httpx.get(f"{url}/healthz", verify=known).status_code == 200
            known.load_cert_chain(files["client"], files["client_key"])
            assert httpx.get(f"{url}/healthz", verify=known).status_code == 200
            stranger.load_cert_chain(tmp_path / "stranger.pem")
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{url}/healthz", verify=stranger)
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{url.replace('https', 'http')}/healthz")
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CERTFILE": "certificate"}, "HOLMES_SSL_CERTFILE is set without HOLMES_SSL_KEYFILE: set both or neither"),
        ({"KEYFILE": "key"}, "HOLMES_SSL_KEYFILE is set without HOLMES_SSL_CERTFILE: set both or neither"),
        ({"CA_CERTS": "authority"}, "TLS requires a certificate: set HOLMES_SSL_CERTFILE and HOLMES_SSL_KEYFILE"),
        ({"CERTFILE": "certificate", "KEYFILE": "client_key"}, "cannot be used: key values mismatch"),
        ({"CERTFILE": "certificate", "KEYFILE": "locked"}, "an encrypted key requires HOLMES_SSL_KEYFILE_PASSWORD"),
        ({"CERTFILE": "missing", "KEYFILE": "key"}, "No such file or directory"),
        ({"CERTFILE": "certificate", "KEYFILE": "key", "CA_CERTS": "key"}, "/key.pem' cannot be used: no certificate"),
    ],
)
def test_what_does_not_fit_is_one_line(
    variables: dict[str, str], message: str, tmp_path: Path, files: dict[str, Path]
) -> None:
    named = {f"HOLMES_SSL_{key}": str(files.get(value, tmp_path / value)) for key, value in variables.items()}
    with serve(tmp_path, **named) as process:
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, "")
    assert message in stderr
    assert stderr.count("\n") == 1
