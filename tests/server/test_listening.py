"""Connections that ask for nothing end, and never keep others out."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from holmes.server.listening import guarded, listen, serving, url_of
from holmes.settings.load import load_settings

HALF = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"


@contextmanager
def listening(
    folder: Path, *, head_seconds: float = 30, most: int = 100, asked: threading.Semaphore | None = None
) -> Iterator[tuple[str, int]]:
    """Host and port of a server with these limits. Each request for `/slow` releases `asked` when it is at work."""
    application = FastAPI()
    working, leave = threading.Event(), threading.Event()
    address: list[tuple[str, int]] = []

    @application.get("/healthz")
    async def healthz() -> str:
        return "ok"

    @application.get("/slow")
    async def slow() -> str:
        if asked is not None:
            asked.release()
        await asyncio.to_thread(leave.wait)
        return "done"

    async def serve() -> None:
        listener = listen(load_settings({"HOME": str(folder), "HOLMES_PORT": "0"}).server)
        url = httpx.URL(url_of(listener))
        async with serving(application, listener, guarded(head_seconds=head_seconds, most=most)):
            address.append((url.host, url.port or 0))
            working.set()
            await asyncio.to_thread(leave.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert working.wait(10)
        yield address[0]
    finally:
        leave.set()
        thread.join(10)


@pytest.mark.parametrize(("before", "sent"), [(b"", b""), (b"", HALF), (HALF + b"\r\n", HALF)])
def test_a_head_that_does_not_arrive_in_time_ends_the_connection(tmp_path: Path, before: bytes, sent: bytes) -> None:
    with listening(tmp_path, head_seconds=0.3) as address, socket.create_connection(address, timeout=6) as connection:
        if before:
            connection.sendall(before)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(sent)
        while connection.recv(4096):
            pass


def test_a_head_that_drips_in_has_no_longer_than_one_that_does_not(tmp_path: Path) -> None:
    with listening(tmp_path, head_seconds=0.4) as address, socket.create_connection(address) as connection:
        connection.settimeout(0.05)
        connection.sendall(HALF)
        ended = False
        for _ in range(60):
            try:
                connection.sendall(b"X: y\r\n")
                ended = connection.recv(100) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
            if ended:
                break

    assert ended


def test_those_that_ask_nothing_make_room_for_those_that_ask(tmp_path: Path) -> None:
    with listening(tmp_path, most=20) as (host, port), ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection((host, port), timeout=3)).sendall(HALF)

        assert httpx.get(f"http://{host}:{port}/healthz", timeout=3).status_code == 200


def test_nobody_loses_an_answer_to_one_who_comes_later(tmp_path: Path) -> None:
    asked = threading.Semaphore(0)
    with listening(tmp_path, most=2, asked=asked) as (host, port), ExitStack() as stack:
        for _ in range(2):
            asking = stack.enter_context(socket.create_connection((host, port), timeout=3))
            asking.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            assert asked.acquire(timeout=10)
        refused = httpx.get(f"http://{host}:{port}/healthz", timeout=10)

        assert refused.status_code == 503
        assert refused.headers["retry-after"]


def test_a_request_that_takes_long_is_not_ended(tmp_path: Path) -> None:
    with listening(tmp_path, head_seconds=0.1) as address, socket.create_connection(address, timeout=3) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(100)
