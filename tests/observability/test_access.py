"""A source that hangs, lies, floods, redirects or changes its certificate costs one clear line, and little memory."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holmes.observability.access import Answered, SourceAccess, TlsFiles, open_source
from holmes.observability.metrics.prometheus import PrometheusSource
from holmes.values.errors import ToolError
from tests.support.certificates import make_certificates

MEBIBYTE = 1_048_576


class Handler(BaseHTTPRequestHandler):
    """Answers as the path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = self.path.strip("/").split("/")[0].split("?")[0]
        {"hang": self.hang, "flood": self.flood, "redirect": self.redirect, "cut": self.cut}.get(kind, self.plain)()

    do_POST = do_GET  # noqa: N815  the parent's name

    def plain(self) -> None:
        status, body = self.server.answers.get(self.path.split("?")[0], (200, b"{}"))  # type: ignore[attr-defined]
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        time.sleep(2)

    def flood(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(100 * MEBIBYTE))
        self.end_headers()
        try:
            for _ in range(100):
                self.wfile.write(b"x" * MEBIBYTE)
                self.server.seen.append({})  # type: ignore[attr-defined]
        except OSError:
            self.close_connection = True

    def redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://169.254.169.254/latest/meta-data?token=1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"{")
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(
    answers: Mapping[str, tuple[int, bytes]] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield the URL of a server, and the headers of the requests that it has seen."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen: list[dict[str, str]] = []
    server.answers, server.seen = dict(answers or {}), seen  # type: ignore[attr-defined]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def read(access: SourceAccess, path: str) -> Answered:
    async def run() -> Answered:
        async with open_source(access) as client:
            return await client.read(path)

    return asyncio.run(run())


def refusal(access: SourceAccess, path: str) -> str:
    with pytest.raises(ToolError) as raised:
        read(access, path)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def url() -> Iterator[str]:
    answers = {"/401": (401, b""), "/404": (404, b"no"), "/429": (429, b""), "/500": (500, b"<h1>it\nbroke</h1>")}
    with serving(answers) as (address, _):
        yield address


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/redirect", "redirects to 'http://169.254.169.254/latest/meta-data', which is not followed; configure"),
        ("/401", "the credentials are rejected (HTTP 401); check the token, user name or tenant header"),
        ("/404", "HTTP 404: the API is not found at this address; check the path of the configured URL"),
        ("/429", "too many requests (HTTP 429); try again later"),
        ("/500", "HTTP 500: <h1>it broke</h1>; check the source and its log"),
        ("/cut", "the connection failed (RemoteProtocolError); check the network and the source"),
        ("/hang", "no complete response within 0.3 s; request less data, or try again"),
    ],
)
def test_each_failure_is_one_line_with_the_source_and_the_next_step(url: str, path: str, message: str) -> None:
    access = SourceAccess(name="prod", url=url, timeout_seconds=0.3)
    assert refusal(access, path).startswith(f"prod ({url}): {message}")


def test_a_flood_is_refused_at_the_limit_and_its_rest_is_never_read() -> None:
    with serving() as (address, sent):
        message = refusal(SourceAccess(name="prod", url=address, response_bytes=4 * MEBIBYTE), "/flood")
    assert "the response is larger than 4 MiB; request less, for example a shorter range" in message
    assert len(sent) < 30


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://127.0.0.1:9", "the connection is refused; check the address, and start the source"),
        ("http://prometheus.invalid", "the host name cannot be resolved; check the address and DNS"),
        ("http://user:hunter2@127.0.0.1:9", "http://127.0.0.1:9"),
    ],
)
def test_an_address_that_does_not_answer_is_named_without_its_password(address: str, message: str) -> None:
    text = refusal(SourceAccess(name="prod", url=address), "/")
    assert message in text
    assert "hunter2" not in text


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"[]", b'{"status": "odd"}', b"\xff\xfe"])
def test_a_source_that_is_no_prometheus_is_said_to_be_none(body: bytes) -> None:
    with serving({"/api/v1/query": (200, body)}) as (address, _):

        async def run() -> None:
            async with open_source(SourceAccess(name="prod", url=address)) as client:
                await PrometheusSource(client).instant("up", at=0)

        with pytest.raises(ToolError, match="did not return JSON of the Prometheus API"):
            asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        b'{"resultType": "matrix", "result": [{"metric": null, "values": [[1], ["a", "b"], 7, [1, "2"]]}, 3]}',
        b'{"resultType": "vector", "result": [{"metric": {"a": 1}, "value": "12"}]}',
        b'{"resultType": "vector", "result": {"a": 1}}',
        b'{"resultType": "scalar", "result": [1, "NaN"]}',
        b"null",
    ],
)
def test_results_of_odd_shapes_have_only_the_samples_that_can_be_read(data: bytes) -> None:
    with serving({"/api/v1/query": (200, b'{"status": "success", "data": ' + data + b"}")}) as (address, _):

        async def run() -> tuple[int, ...]:
            async with open_source(SourceAccess(name="prod", url=address)) as client:
                result = await PrometheusSource(client).instant("up", at=0)
                return tuple(len(each.values) for each in result.series)

        assert all(count <= 1 for count in asyncio.run(run()))


def test_logins_and_headers_are_sent_and_the_proxy_variables_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving() as (address, seen):
        read(SourceAccess(name="a", url=address, username="u", password="p", headers={"X-Scope-OrgID": "shop"}), "/")
        read(SourceAccess(name="a", url=address, bearer_token="t"), "/")
        assert "the connection is refused" in refusal(
            SourceAccess(name="a", url=address, proxy="http://127.0.0.1:9"), "/"
        )
    basic = base64.b64encode(b"u:p").decode()
    assert [each["Authorization"] for each in seen] == [f"Basic {basic}", "Bearer t"]
    assert seen[0]["X-Scope-OrgID"] == "shop"


def pem(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Callable[..., SourceAccess]]:
    made = make_certificates()
    authority = pem(tmp_path, "ca.pem", made.authority)
    certificate, key = pem(tmp_path, "client.pem", made.client), pem(tmp_path, "client.key", made.client_key)
    with serving(tls=made.server_context(tmp_path, ask_client=True)) as (address, _):

        def access(*, trusts: bool = True, shows: bool = True, verify: bool = True) -> SourceAccess:
            files = TlsFiles(
                verify=verify,
                authority=authority if trusts else None,
                certificate=certificate if shows else None,
                key=key if shows else None,
            )
            return SourceAccess(name="a", url=address, tls=files)

        yield access


def test_a_source_with_mutual_tls_needs_the_authority_and_the_certificate(secure: Callable[..., SourceAccess]) -> None:
    assert read(secure(), "/").status == 200
    assert read(secure(trusts=False, verify=False), "/").status == 200
    assert "TLS certificate is not trusted" in refusal(secure(trusts=False), "/")
    without = refusal(secure(shows=False), "/")
    assert "TLS failed" in without or "the connection failed" in without


def test_a_certificate_file_that_is_missing_is_one_line(tmp_path: Path) -> None:
    access = SourceAccess(name="a", url="https://127.0.0.1:9", tls=TlsFiles(authority=tmp_path / "none.pem"))
    assert "a certificate file cannot be read" in refusal(access, "/")
