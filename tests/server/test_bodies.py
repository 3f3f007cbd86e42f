"""Bodies are read within limits, before anything else looks at them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from holmes.server.bodies import MAX_JSON_DEPTH, BoundedBodies, json_depth
from holmes.server.security import Keys
from holmes.settings.load import load_settings
from tests.server.http_server import JSON, KEY, WEBHOOK_KEY, HttpServer

MEGABYTE = 1_000_000


def test_a_body_that_says_that_it_is_too_large_is_refused_before_it_is_sent(server: HttpServer) -> None:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        head = f"POST /api/chat HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Length: 5000000\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("size", "headers"),
    [
        (5 * MEGABYTE, {"X-API-Key": KEY}),
        (30 * MEGABYTE, {"X-API-Key": KEY}),
        (5 * MEGABYTE, {}),
        (20 * MEGABYTE, {"X-API-Key": "wrong", "X-Forwarded-For": "198.51.100.9"}),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_who_sends_everything_first_reads_the_refusal(
    server: HttpServer, size: int, headers: dict[str, str], *, chunked: bool
) -> None:
    address = urlsplit(server.url)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    lines = ["POST /api/chat HTTP/1.1", "Host: x", length, *(f"{name}: {value}" for name, value in headers.items())]
    body = b"x" * size
    framed = b"%x\r\n%s\r\n0\r\n\r\n" % (size, body) if chunked else body
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + framed)
        time.sleep(0.2)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"


def test_a_body_without_an_end_is_not_read_for_ever(client: httpx.Client) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(300):
            sent += MEGABYTE
            yield b"x" * MEGABYTE

    try:
        answer = client.post("/api/chat", content=pieces(), headers=JSON)
    except httpx.HTTPError:
        pass  # the connection was closed while it was sent
    else:
        assert answer.status_code == 413
    assert sent < 150 * MEGABYTE


def test_strangers_may_send_little(server: HttpServer) -> None:
    body = json.dumps({"ask": "x" * 70_000})

    assert httpx.post(f"{server.url}/api/chat", content=body, headers=JSON).status_code == 413
    assert httpx.post(f"{server.url}/api/chat", content=body, headers={**JSON, "X-API-Key": "wrong"}).status_code == 413


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ("", 422, ""),
        ("{", 400, "not valid JSON"),
        ('{"ask": ""}', 422, "ask"),
        ('{"ask": "  "}', 422, "ask"),
        ('{"ask": "x", "conversation_history": [{"role": "king", "content": ""}]}', 400, "message 1"),
        ('{"ask": "x", "images": ["https://example.com/a.png"]}', 400, "not fetched"),
        ('{"ask": "x", "images": ["aGVsbG8="]}', 400, "not a PNG"),
        ('{"ask": "\\ud800"}', 422, "ask"),
        ("[" * 100 + "]" * 100, 400, "levels"),
        ('{"ask":"x","behavior_controls":' + '{"a":' * 70 + "1" + "}" * 71, 400, "levels"),
    ],
)
def test_what_is_no_request_is_told_in_one_line(client: httpx.Client, body: str, status: int, problem: str) -> None:
    answer = client.post("/api/chat", content=body, headers=JSON)

    assert answer.status_code == status
    message = answer.json()["error"]["message"]
    assert problem in message
    assert "\n" not in message


def test_a_body_without_its_content_type_is_told_so(client: httpx.Client) -> None:
    answer = client.post("/api/chat", content='{"ask": "x"}')

    assert answer.status_code == 422
    assert "application/json" in answer.json()["error"]["message"]


def test_depth_is_measured_outside_of_strings() -> None:
    assert json_depth(b"[[1, {}], [[]]]") <= MAX_JSON_DEPTH
    assert json_depth(b'{"a": "' + b"[" * 200 + b'", "b": [{}]}') == 3
    assert json_depth(b'{"a": "\\"' + b"[" * 200 + b'"}') == 1
    assert json_depth(b"[" * 200) == 200


def test_escaped_quotes_do_not_end_a_text() -> None:
    assert json_depth(b"[" * 100 + b'"' + b'\\"[' * 50_000) == 100


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_json_is_utf8_or_nothing(client: httpx.Client, encoding: str) -> None:
    answer = client.post("/api/chat", content='{"ask": "ä"}'.encode(encoding), headers=JSON)

    assert answer.status_code == 400
    assert "UTF-8" in answer.json()["error"]["message"]


async def test_strangers_have_little_time_to_send_a_body() -> None:
    sent: list[Message] = []

    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    keys = Keys(load_settings({"HOLMES_API_KEY": KEY}).server)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", b"5")]}
    await BoundedBodies(application, keys, MEGABYTE, strangers_seconds=0.05)(scope, receive, send)

    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_a_webhook_with_a_slash_too_many_is_no_redirect(server: HttpServer) -> None:
    answer = httpx.post(
        f"{server.url}/api/alerts/alertmanager/",
        json={"alerts": []},
        headers={"Authorization": f"Bearer {WEBHOOK_KEY}", "Host": "evil"},
    )

    assert answer.status_code == 202
    assert httpx.get(f"{server.url}/api/model/", headers={"X-API-Key": KEY}).status_code == 404
