"""CERTIFICATE: own authorities are trusted by everything that connects, besides the public ones."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from holmes.settings.process import certificate_variables
from holmes.values.errors import ConfigError
from tests.support.certificates import make_certificates
from tests.support.command_line import Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply

CERTIFICATES = make_certificates()
OWN = b64encode(CERTIFICATES.authority).decode()


def test_the_bundle_has_the_own_authority_and_the_public_ones(tmp_path: Path) -> None:
    variables = certificate_variables({"HOME": str(tmp_path), "CERTIFICATE": OWN})
    assert set(variables) == {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    (path,) = {Path(value) for value in variables.values()}
    content = path.read_bytes()
    assert CERTIFICATES.authority in content
    assert content.count(b"BEGIN CERTIFICATE") > 50
    assert certificate_variables({"HOME": str(tmp_path), "CERTIFICATE": OWN}) == variables
    assert len(list(path.parent.iterdir())) == 1


def test_a_bundle_that_a_variable_names_stays_trusted(tmp_path: Path) -> None:
    other = make_certificates().authority
    (tmp_path / "other.pem").write_bytes(other)
    environment = {"HOME": str(tmp_path), "CERTIFICATE": OWN, "SSL_CERT_FILE": str(tmp_path / "other.pem")}
    assert other in Path(certificate_variables(environment)["SSL_CERT_FILE"]).read_bytes()


def test_without_it_nothing_changes(tmp_path: Path) -> None:
    assert certificate_variables({"HOME": str(tmp_path), "CERTIFICATE": " "}) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["not base64!", b64encode(b"no certificate").decode(), "-----BEGIN CERTIFICATE-----"])
def test_what_is_no_certificate_is_one_line_of_every_command(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CERTIFICATE is not valid; expected base64-encoded PEM certificates"):
        certificate_variables({"HOME": str(tmp_path), "CERTIFICATE": wrong})
    done = Home.make(tmp_path / "home", CERTIFICATE=wrong).run("version")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("holmes: CERTIFICATE is not valid")


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [True, False])
def test_a_provider_with_a_certificate_of_the_own_authority_answers(trusted: bool, tmp_path: Path) -> None:
    with OpenAIServer([Reply(text="All is well.")], tls=CERTIFICATES.server_context(tmp_path)) as server:
        variables = {"CERTIFICATE": OWN} if trusted else {}
        home = Home.make(tmp_path / "home", config=provider_config(server.base_url), **variables)
        done = home.run("ask", "-n", "--demo", "How are you?")
        assert ("All is well." in done.stdout) == trusted, done.stderr
        assert (done.exit_code == 0) == trusted


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None:
        pass


def test_clients_and_tools_trust_it(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    server.socket = CERTIFICATES.server_context(tmp_path).wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    script = (
        "import asyncio, httpx, subprocess\n"
        "from holmes.settings.process import process_environment, trust_own_authorities\n"
        "from holmes.settings.process import tool_environment\n"
        "from holmes.sources import AlertmanagerAccess, fetch_alerts\n"
        "trust_own_authorities()\n"
        f"url = 'https://127.0.0.1:{server.server_port}'\n"
        "print(asyncio.run(fetch_alerts(AlertmanagerAccess(url=url))))\n"
        "print(httpx.get(url).text)\n"
        "print(subprocess.check_output(['curl', '-sS', url], env=tool_environment(process_environment()), text=True))\n"
    )
    home = Home.make(tmp_path / "home", CERTIFICATE=OWN)
    try:
        shown = subprocess.run(
            [sys.executable, "-c", script],
            env=home.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        server.shutdown()
        server.server_close()
    assert shown.stdout.split() == ["b'[]'", "[]", "[]"], shown.stderr
