"""Runs the authorization server and the MCP servers that it protects, and a browser that logs in there."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urljoin

import httpx
import psutil

from holmes.toolsets.mcp.servers import HttpEndpoint, Login
from tests.cluster.layout import Layout
from tests.services import mcp_servers, programs
from tests.services.fixtures import needed_programs
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

Mode: TypeAlias = Literal["sse", "streamable-http", "json", "open-stream"]
_SSE: Final = frozenset({"sse", "open-stream"})
Decision: TypeAlias = Literal["allow", "refuse"]

SCRIPT: Final = Path(__file__).with_name("oauth_server.mjs")
ROOT: Final = Path(__file__).parents[3]
ROBOT_SECRET: Final = "robot-secret-0123456789"
ROBOT: Final = Login(is_person=False, client_id="robot", client_secret=ROBOT_SECRET)
PERSON: Final = Login(is_person=True)
"""Of access tokens. Long enough for a test that does not wait, short enough for one that does."""
TOKEN_SECONDS: Final = 2


class Provider:
    """The authorization server. It can be out for a while, and be stopped, which makes it forget all tokens."""

    def __init__(self, token_seconds: float = TOKEN_SECONDS) -> None:
        with needed_programs():
            module = mcp_servers.provider(Layout.from_environment())
            node = programs.nodejs()
        self._port = free_port()
        self.issuer = f"http://127.0.0.1:{self._port}"
        self._service = Service("oauth", end_signal=signal.SIGKILL)
        self._command = [str(node), str(SCRIPT), str(module), str(self._port), str(token_seconds)]

    def start(self) -> None:
        self._service.start(self._command, lambda: _accepts(self._port))

    def close(self) -> None:
        self._service.close()

    def events(self, name: str) -> list[str]:
        """Return the details of all events of this name, oldest first."""
        lines = self._service.log.read_text().splitlines()
        return [line.removeprefix(f"event {name}").strip() for line in lines if line.startswith(f"event {name} ")]

    @contextmanager
    def out(self) -> Iterator[None]:
        """Answer everything with HTTP 503."""
        self._toggle("outage-begins")
        try:
            yield
        finally:
            self._toggle("outage-ends")

    def _toggle(self, event: str) -> None:
        before = len(self.events(event))
        for process in psutil.process_iter(["cmdline"]):
            if process.info["cmdline"] == self._command:
                process.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 20
        while len(self.events(event)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """An MCP server that accepts only tokens of `provider` for itself."""

    mode: Mode
    url: str
    provider: Provider

    @property
    def origin(self) -> str:
        """The part of the URL that errors show."""
        return self.url.rpartition("/")[0]

    def endpoint(self, login: Login | None) -> HttpEndpoint:
        return HttpEndpoint(mode="sse" if self.mode in _SSE else "streamable-http", url=self.url, login=login)


@contextmanager
def running_provider(token_seconds: float = TOKEN_SECONDS) -> Iterator[Provider]:
    provider = Provider(token_seconds)
    try:
        provider.start()
        yield provider
    finally:
        provider.close()


@contextmanager
def running_protected(mode: Mode, provider: Provider, *more: Literal["narrow"]) -> Iterator[Protected]:
    port, service = free_port(), Service("mcp", end_signal=signal.SIGKILL)
    environment = ("env", "--ignore-environment", f"PATH={os.environ['PATH']}", f"PYTHONPATH={ROOT}")
    module = (sys.executable, "-m", "tests.toolsets.mcp.protected_server")
    try:
        service.start([*environment, *module, mode, str(port), provider.issuer, *more], lambda: _accepts(port))
        path = "/sse" if mode in _SSE else "/mcp"
        yield Protected(mode=mode, url=f"http://127.0.0.1:{port}{path}", provider=provider)
    finally:
        service.close()


def browse(address: str, decision: Decision = "allow") -> str:
    """Log in on the page at `address` as a person does, and return the address of Holmes to which it leads back."""
    with httpx.Client(trust_env=False, timeout=20) as browser:
        response = browser.get(address)
        for _ in range(20):
            if response.has_redirect_location:
                target = urljoin(str(response.url), response.headers["location"])
                if "/callback?" in target:
                    return target
                response = browser.get(target)
                continue
            assert response.status_code == 200, response.text
            response = _decided(browser, response, decision)
    raise AssertionError(f"the login ends on {response.url}")


def follow(address: str) -> str:
    """Open the address of Holmes, and return the text of its page."""
    with httpx.Client(trust_env=False, timeout=20) as browser:
        return browser.get(address).raise_for_status().text


def revoke(provider: Provider, token_file: Path) -> None:
    """End the login whose tokens are in this file, as a person does in the settings of the account."""
    stored = json.loads(token_file.read_text())
    client = stored["client"]
    httpx.post(
        f"{provider.issuer}/token/revocation",
        data={"token": stored["tokens"]["refresh_token"]},
        auth=(client["client_id"], client["client_secret"]),
        trust_env=False,
    ).raise_for_status()


def _decided(browser: httpx.Client, page: httpx.Response, decision: Decision) -> httpx.Response:
    if decision == "refuse":
        abort = re.search(r'href="([^"]*/abort)"', page.text)
        assert abort is not None, page.text
        return browser.get(urljoin(str(page.url), abort[1]))
    form = re.search(r'<form[^>]* action="([^"]*)"', page.text)
    prompt = re.search(r'name="prompt" value="([^"]*)"', page.text)
    assert form is not None, page.text
    assert prompt is not None, page.text
    fields = {"prompt": prompt[1]}
    if prompt[1] == "login":
        fields |= {"login": "ada", "password": "not-checked"}
    return browser.post(urljoin(str(page.url), form[1]), data=fields)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
