"""Probes, and the order in which the server ends."""

from __future__ import annotations

from pathlib import Path

import httpx

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
