"""Alerts out of a real Alertmanager, and what is said when it is none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from holmes.investigations.alerts.payload import fingerprint_of, parse_alerts
from holmes.sources import AlertmanagerAccess, SourceUnreachable, fetch_alerts, matches_all, parse_matcher
from holmes.values.errors import ConfigError, HolmesError
from tests.services.fixtures import RunMonitor

ALERTS = [
    {"labels": {"alertname": "KubePodCrashLooping", "namespace": "shop", "severity": "critical", "team": 'a"b|größe'}},
    {"labels": {"alertname": "KubePodNotReady", "namespace": "legacy", "severity": "warning"}},
    {"labels": {"alertname": "Over", "namespace": "shop"}, "endsAt": "2020-01-01T00:00:00Z"},
]
CONFIG = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


async def test_the_firing_alerts_of_a_real_alertmanager_that_match(alertmanager: RunMonitor) -> None:
    with alertmanager(CONFIG) as monitor:
        async with httpx.AsyncClient() as client:
            (await client.post(f"{monitor.url}/api/v2/alerts", json=ALERTS)).raise_for_status()
        access = AlertmanagerAccess(url=f"{monitor.url}/")

        async def names(*matchers: str) -> list[str]:
            group = parse_alerts(await fetch_alerts(access, [parse_matcher(each) for each in matchers]))
            assert all(each.fingerprint == fingerprint_of(each.labels) for each in group.alerts)
            return sorted(each.name for each in group.alerts if each.status == "firing")

        assert await names() == ["KubePodCrashLooping", "KubePodNotReady"]
        assert await names("severity=critical") == ["KubePodCrashLooping"]
        assert await names('namespace=~"shop|legacy"', "severity!=critical") == ["KubePodNotReady"]
        assert await names('team="a\\"b|größe"') == ["KubePodCrashLooping"]
        assert await names("namespace!~s.*") == ["KubePodNotReady"]


class _Server(ThreadingHTTPServer):
    status = 200
    body = b"[]"
    seen: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.seen.append(f"{self.path} {self.headers.get('Authorization')}")
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def server(status: int, body: bytes = b"[]") -> Iterator[tuple[str, list[str]]]:
    """A server that always answers the same, its address and what it was asked."""
    running = _Server(("127.0.0.1", 0), _Handler)
    running.status, running.body, running.seen = status, body, []
    thread = threading.Thread(target=running.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", running.seen
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "--alertmanager-username"), (404, "0.16 or later is required"), (500, "500")],
)
async def test_a_refusal_says_what_to_do(status: int, advice: str) -> None:
    with server(status) as (url, _), pytest.raises(SourceUnreachable, match=advice):
        await fetch_alerts(AlertmanagerAccess(url=url))


async def test_user_and_password_are_sent_and_never_shown() -> None:
    with server(200) as (url, seen):
        await fetch_alerts(AlertmanagerAccess(url=f"{url}/prefix/", username="me", password="hunter2"))
        await fetch_alerts(AlertmanagerAccess(url=url.replace("//", "//me:hunter2@")))
    assert [line.split()[-2:] for line in seen] == [["Basic", "bWU6aHVudGVyMg=="]] * 2
    assert seen[0].startswith("/prefix/api/v2/alerts?")
    with pytest.raises(SourceUnreachable) as caught:
        await fetch_alerts(AlertmanagerAccess(url="http://me:hunter2@127.0.0.1:1"))
    assert "hunter2" not in str(caught.value)


async def test_more_than_is_reasonable_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holmes.sources.MAX_BYTES", 1_000_000)
    with server(200, b" " * 3_000_000) as (url, _), pytest.raises(SourceUnreachable, match="--alertmanager-label"):
        await fetch_alerts(AlertmanagerAccess(url=url))


async def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holmes.sources._WHOLE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SourceUnreachable, match="in time"):
        await fetch_alerts(AlertmanagerAccess(url=f"http://127.0.0.1:{silent.getsockname()[1]}"))


@pytest.mark.parametrize("url", ["", "alertmanager:9093", "ftp://x", "http://", "http://x:port"])
async def test_an_address_that_is_none_is_a_mistake_of_the_configuration(url: str) -> None:
    with pytest.raises(ConfigError, match="expected for example"):
        await fetch_alerts(AlertmanagerAccess(url=url))


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("severity=critical", {"severity": "critical"}, True),
        (' severity = "critical" ', {"severity": "critical"}, True),
        ("severity!=critical", {}, True),
        ('ns=~"a|b"', {"ns": "b"}, True),
        ("ns=~a|b", {"ns": "ab"}, False),
        ("ns!~a.*", {"ns": "abc"}, False),
        ("ns=", {}, True),
    ],
)
def test_matchers(text: str, labels: dict[str, str], holds: bool) -> None:
    assert matches_all([parse_matcher(text)], labels) is holds


@pytest.mark.parametrize("text", ["", "severity", "a-b=c", 'a="b', "a=~(", "=x"])
def test_what_is_no_matcher_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(ConfigError, match=r"matcher|quotation|expression"):
        parse_matcher(text)


def test_a_matcher_that_takes_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holmes.sources._SECONDS", 0.1)
    with pytest.raises(HolmesError, match="too long"):
        matches_all([parse_matcher("name=~(?:a|aa|a?a)+[bc]")], {"name": "a" * 900 + "!"})
