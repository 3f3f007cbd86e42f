"""`holmes toolset login` as a process, with a certified authorization server and a browser that fills in its forms."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from holmes.toolsets.mcp.servers import McpServer
from holmes.toolsets.mcp.tokens import token_path
from tests.services.service import free_port
from tests.support.deadlines import ends_before
from tests.toolsets.mcp.oauth_person import END_SECONDS, Person, Shown, assert_no_secrets, error_lines
from tests.toolsets.mcp.oauth_running import (
    TOKEN_SECONDS,
    Protected,
    Provider,
    browse,
    follow,
    revoke,
    running_protected,
    running_provider,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def protected(provider: Provider) -> Iterator[Protected]:
    with running_protected("streamable-http", provider) as server:
        yield server


def test_a_login_lasts_until_it_is_revoked(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    provider = protected.provider
    registered = len(provider.events("registered"))
    assert person.state() == person.login_line
    assert len(provider.events("registered")) == registered

    with Shown.by(person) as shown:
        assert shown.parameter("resource") == protected.url
        target = browse(shown.address)
        assert "received the login" in follow(target)
        done = shown.end()
    assert done.exit_code == 0, done
    assert done.stdout == "logged in to 'tickets' (tickets 4.5.6): 3 tools\n"
    assert error_lines(done) == []
    assert_no_secrets(person, done, parse_qs(urlsplit(target).query)["code"][0])
    assert len(provider.events("registered")) == registered + 1
    assert stat.S_IMODE(person.token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(person.folder.stat().st_mode) == 0o700

    first = person.stored()
    assert first["tokens"]["refresh_token"]
    time.sleep(TOKEN_SECONDS + 1)
    assert person.state().startswith("enabled 3 tools, tickets 4.5.6, ")
    second = person.stored()
    assert second["tokens"]["access_token"] != first["tokens"]["access_token"]
    assert second["tokens"]["refresh_token"] != first["tokens"]["refresh_token"]
    assert second["client"] == first["client"]
    assert provider.events("granted")[-1] == f"refresh_token scope= resource={protected.url}"

    revoke(provider, person.token_file)
    time.sleep(TOKEN_SECONDS + 1)
    with ends_before(END_SECONDS):
        assert person.state() == person.login_line
    assert len(provider.events("registered")) == registered + 1


def test_the_list_knows_of_the_login(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    assert "requires a login" in person.home.run("toolset", "list").stdout
    person.log_in()
    assert re.search(r"^tickets +enabled +3 tools, ", person.home.run("toolset", "list").stdout, re.MULTILINE)


def test_two_processes_refresh_the_same_token_once(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    person.log_in()
    before = len(protected.provider.events("grant-revoked"))
    for _ in range(2):
        time.sleep(TOKEN_SECONDS + 1)
        with ThreadPoolExecutor() as pool:
            states = list(pool.map(lambda _: person.state(), range(2)))
        assert [state.partition(" ")[0] for state in states] == ["enabled", "enabled"]
    assert len(protected.provider.events("grant-revoked")) == before


def test_a_token_that_is_rejected_before_its_time_is_refreshed(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    person.log_in()
    # As from a server that does not tell when its tokens expire.
    stored = person.stored()
    del stored["expires_at"], stored["tokens"]["expires_in"]
    person.token_file.write_text(json.dumps(stored))
    time.sleep(TOKEN_SECONDS + 1)
    assert person.state().startswith("enabled 3 tools, ")


def test_an_outage_does_not_ask_for_a_login(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    person.log_in()
    time.sleep(TOKEN_SECONDS + 1)
    with protected.provider.out():
        assert person.state() == (
            f"failed MCP server 'tickets' ({protected.origin}): the token is not refreshed by 127.0.0.1 (HTTP 503); "
            "check the authorization server"
        )
    assert person.state().startswith("enabled 3 tools, ")


@pytest.mark.parametrize("text", ["", "{", '{"tokens": 5}', "{}", "\x00\xff"])
def test_a_damaged_token_file(tmp_path: Path, protected: Protected, text: str) -> None:
    person = Person.at(tmp_path, protected)
    person.folder.mkdir()
    server = McpServer(name="tickets", source="", endpoint=protected.endpoint(None))
    token_path(person.folder, server, protected.endpoint(None)).write_bytes(text.encode("latin-1"))
    assert person.state() == person.login_line


def test_the_person_refuses(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    person.log_in()
    old = person.token_file.read_bytes()
    registered = len(protected.provider.events("registered"))
    with Shown.by(person) as shown:
        assert "The login was refused" in follow(browse(shown.address, "refuse"))
        done = shown.end()
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = error_lines(done)
    assert line.endswith(
        f"MCP server 'tickets' ({protected.origin}): the login was refused "
        "(access_denied: End-User aborted interaction); run the command again"
    )
    assert_no_secrets(person, done)
    assert person.token_file.read_bytes() == old
    assert len(protected.provider.events("registered")) == registered + 1


def test_ctrl_c_keeps_the_old_tokens(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    person.log_in()
    old = person.token_file.read_bytes()
    # The connection is one that a browser opens in advance.
    with Shown.by(person) as shown, socket.create_connection(address_of(shown.redirect)), ends_before(10):
        shown.process.send_signal(signal.SIGINT)
        done = shown.end()
    assert (done.exit_code, done.stdout) == (130, "")
    assert error_lines(done) == ["holmes: interrupted"]
    assert person.token_file.read_bytes() == old


def address_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_an_unused_connection_of_the_browser_does_not_keep_the_command(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    with Shown.by(person) as shown, socket.create_connection(address_of(shown.redirect)):
        follow(browse(shown.address))
        assert shown.end().exit_code == 0


@pytest.mark.parametrize(
    "wrong", ["code=stolen-code&state=wrong", "error=access_denied&state=wrong", "code=stolen-code"]
)
def test_the_address_of_another_login_is_refused(tmp_path: Path, protected: Protected, wrong: str) -> None:
    person = Person.at(tmp_path, protected)
    with Shown.by(person) as shown:
        assert "the address of another login" in follow(f"{shown.redirect}?{wrong}")
        assert "Nothing is here" in follow(shown.redirect.replace("/callback", "/favicon.ico"))
        follow(browse(shown.address))
        done = shown.end()
    assert done.exit_code == 0
    assert error_lines(done) == ["This is the address of another login (wrong state)."]
    assert_no_secrets(person, done, "stolen-code", shown.parameter("state") + "x")


def test_tokens_of_one_url_are_not_sent_to_another(tmp_path: Path, protected: Protected, provider: Provider) -> None:
    person = Person.at(tmp_path / "first", protected)
    person.log_in()
    with running_protected("streamable-http", provider) as other:
        moved = Person.at(tmp_path / "second", other)
        moved.folder.symlink_to(person.folder)
        assert moved.state() == moved.login_line
    assert person.state().startswith("enabled")


def test_a_registered_public_client_with_a_fixed_port(tmp_path: Path, protected: Protected) -> None:
    port = free_port()
    registered = len(protected.provider.events("registered"))
    oauth = f"{{client_id: desktop, grant_type: authorization_code, redirect_port: {port}, scopes: [tickets]}}"
    person = Person.at(tmp_path, protected, oauth)
    with Shown.by(person) as shown:
        assert shown.redirect == f"http://127.0.0.1:{port}/callback"
        assert shown.parameter("client_id") == "desktop"
        assert shown.parameter("scope") == "tickets offline_access"
        follow(browse(shown.address))
        assert shown.end().exit_code == 0
    time.sleep(TOKEN_SECONDS + 1)
    assert person.state().startswith("enabled 3 tools, ")
    assert len(protected.provider.events("registered")) == registered


def test_the_redirect_port_is_used(tmp_path: Path, protected: Protected) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        person = Person.at(tmp_path, protected, f"{{redirect_port: {taken.getsockname()[1]}}}")
        done = person.home.run("toolset", "login", "tickets", "--no-browser")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the redirect address cannot be used" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_tokens_that_cannot_be_stored_are_not_asked_for(tmp_path: Path, protected: Protected) -> None:
    (tmp_path / "file").touch()
    person = Person.at(tmp_path / "home", protected, HOLMES_MCP_TOKENS_PATH=str(tmp_path / "file" / "tokens"))
    done = person.home.run("toolset", "login", "tickets", "--no-browser")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "tokens cannot be stored in" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("oauth", "reason"),
    [
        ("{enabled: false}", "oauth is not configured"),
        ("{client_id: robot, client_secret: x}", "client_credentials, without a login"),
        ("{issuer: 'https://login.example.com'}", "and https://login.example.com is configured"),
    ],
)
def test_a_server_for_which_nobody_can_log_in(tmp_path: Path, protected: Protected, oauth: str, reason: str) -> None:
    registered = len(protected.provider.events("registered"))
    person = Person.at(tmp_path, protected, oauth)
    done = person.home.run("toolset", "login", "tickets", "--no-browser")
    assert (done.exit_code, done.stdout) == (1, "")
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(protected.provider.events("registered")) == registered


def test_a_login_over_sse(tmp_path: Path, provider: Provider) -> None:
    with running_protected("sse", provider) as server:
        person = Person.at(tmp_path, server)
        assert person.state() == person.login_line
        person.log_in()
        time.sleep(TOKEN_SECONDS + 1)
        assert person.state().startswith("enabled 3 tools, ")


def test_the_address_is_pasted_into_the_terminal(tmp_path: Path, protected: Protected) -> None:
    person = Person.at(tmp_path, protected)
    own, theirs = pty.openpty()
    command = [sys.executable, "-m", "holmes", "toolset", "login", "tickets", "--no-browser"]
    process = subprocess.Popen(
        command,
        env=person.home.environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(theirs)
    assert process.stderr is not None
    try:
        read = []
        for line in process.stderr:
            read.append(line)
            if "paste the address" in line:
                break
        (address,) = [line.strip() for line in read if line.startswith("  http")]
        os.write(own, b"nonsense\n")
        os.write(own, browse(address).encode() + b"\n")
        stdout, stderr = process.communicate(timeout=END_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
        os.close(own)
    assert (process.returncode, stdout) == (0, "logged in to 'tickets' (tickets 4.5.6): 3 tools\n")
    assert stderr == "This is not the address on which a login ends.\n"
    assert person.state().startswith("enabled 3 tools, ")


def test_a_browser_that_stays_open_does_not_keep_the_command(tmp_path: Path, protected: Protected) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new; mv {opened}.new {opened}; exec sleep 20 >&- 2>&-\n')
    browser.chmod(0o700)
    person = Person.at(tmp_path / "home", protected, BROWSER=str(browser))
    process = person.home.start("toolset", "login", "tickets")
    deadline = time.monotonic() + END_SECONDS
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with ends_before(15):
        follow(browse(opened.read_text()))
        stdout, _ = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, stdout) == (0, "logged in to 'tickets' (tickets 4.5.6): 3 tools\n")
