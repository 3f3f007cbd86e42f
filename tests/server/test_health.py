"""Probes, and the order in which the server ends."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from holmes.investigations.records.database import Database
from holmes.server.api.health import WriteProbe
from holmes.server.chat.chat_production import ChatProduction
from holmes.server.errors import BugReporter
from tests.server.event_stream import events_of, named
from tests.server.http_server import HttpServer, http_server


def test_probes_need_no_key(server: HttpServer) -> None:
    assert httpx.get(f"{server.url}/healthz").json() == {"status": "healthy"}
    assert httpx.get(f"{server.url}/readyz").json() == {"status": "ready", "models": ["scripted", "builtin/triage"]}


def test_a_server_that_ends_is_alive_and_not_ready_and_begins_nothing(tmp_path: Path) -> None:
    with http_server(tmp_path) as ending:
        begun = httpx.post(f"{ending.url}/api/investigations", json={"question": "why?"}).json()  # nobody runs it
        ending.loop.call_soon_threadsafe(ending.application.state.draining.begin)
        with httpx.stream("GET", f"{ending.url}/api/investigations/{begun['id']}/events") as watching:
            assert [event.name for event in named(events_of(watching))] == []
        alive, ready = httpx.get(f"{ending.url}/healthz"), httpx.get(f"{ending.url}/readyz")
        chat = httpx.post(f"{ending.url}/api/chat", json={"ask": "why?"})

    assert alive.status_code == 200
    assert ready.status_code == 503
    assert ready.json()["error"]["code"] == "draining"
    assert chat.status_code == 503
    assert "retry-after" in chat.headers


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/login"])
def test_monitors_may_ask_for_heads(server: HttpServer, path: str) -> None:
    got, asked = (httpx.request(method, f"{server.url}{path}") for method in ("GET", "HEAD"))

    assert asked.status_code == got.status_code < 400
    assert asked.headers.get("content-type") == got.headers.get("content-type")
    assert not asked.content
    assert httpx.head(f"{server.url}/api/model").status_code == 405


@pytest.mark.parametrize("host", ["evil@127.0.0.1", "127.0.0.1#evil", "127.0.0.1?evil", "127.0.0.1/evil"])
def test_without_a_key_a_host_that_only_looks_like_loopback_is_refused(keyless: HttpServer, host: str) -> None:
    assert httpx.get(f"{keyless.url}/healthz", headers={"Host": host}).status_code == 421


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(tmp_path_factory.mktemp("keyless")) as running:
        yield running


async def test_what_cannot_be_written_is_not_ready_until_it_can(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path}/holmes.db")
    probe = WriteProbe(database, seconds_between=0)
    try:
        assert await probe.problem() is None
        database.write_problem = "the database 'sqlite:///x' failed: database or disk is full"
        other = sqlite3.connect(tmp_path / "holmes.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert "more than" in (await probe.problem() or "")
        other.execute("ROLLBACK")
        other.close()
        async with asyncio.timeout(10):
            while await probe.problem():
                pass
    finally:
        await database.close()


def test_a_failed_write_is_told_without_the_address_of_the_database(tmp_path: Path) -> None:
    with http_server(tmp_path) as running:
        assert httpx.get(f"{running.url}/readyz").status_code == 200
        running.service.database.write_problem = "the database 'sqlite:///secret' failed: database or disk is full"
        answer = httpx.get(f"{running.url}/readyz")

    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "cannot write to the database: database or disk is full"


@pytest.mark.parametrize("in_time", [True, False])
def test_a_chat_that_opens_counts_while_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_time: bool
) -> None:
    opens, may_open = threading.Event(), asyncio.Event()
    answers, real = list[httpx.Response](), ChatProduction.open

    async def slowly(production: ChatProduction) -> None:
        opens.set()
        await may_open.wait()
        await real(production)

    monkeypatch.setattr(ChatProduction, "open", slowly)
    with http_server(tmp_path) as ending:

        def ask() -> None:
            answers.append(httpx.post(f"{ending.url}/api/chat", json={"ask": "why?"}, timeout=30))

        async def drain() -> None:
            ending.application.state.draining.begin()
            if in_time:
                asyncio.get_running_loop().call_later(0.2, may_open.set)
            await ending.application.state.chats.drain(20 if in_time else 0.3)

        asking = threading.Thread(target=ask)
        asking.start()
        assert opens.wait(10)
        ending.run(drain)
        asking.join(10)

    assert answers[0].status_code == (200 if in_time else 503)
    assert in_time or answers[0].headers["retry-after"]


async def test_a_request_that_the_end_of_the_server_cancels_is_told_so() -> None:
    sent: list[Message] = []

    async def hangs(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    request = asyncio.create_task(BugReporter(hangs)({"type": "http"}, receive, send))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request

    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert b'"code":"draining"' in sent[1]["body"]
