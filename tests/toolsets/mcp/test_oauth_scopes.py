"""Tools that require more scopes than the server itself (MCP specification, step-up authorization)."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from holmes.toolsets.mcp.faults import Trail, fault_of
from holmes.toolsets.mcp.servers import HttpEndpoint
from holmes.values.errors import ToolError
from tests.support.deadlines import ends_before
from tests.toolsets.mcp.oauth_person import Person, Shown, log_in_at
from tests.toolsets.mcp.oauth_running import (
    PERSON,
    ROBOT,
    Protected,
    Provider,
    running_protected,
    running_provider,
)
from tests.toolsets.mcp.running import call, server_of, toolset_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
_LACKS: Final = "the token lacks a scope that it requires: "


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider(60) as provider:
        yield provider


@pytest.fixture(scope="module", params=["sse", "streamable-http"])
def narrow(request: pytest.FixtureRequest, provider: Provider) -> Iterator[Protected]:
    with running_protected(request.param, provider, "narrow") as server:
        yield server


def granted(server: Protected, since: int) -> list[str]:
    return [each.partition(" resource=")[0] for each in server.provider.events("granted")[since:]]


async def test_a_wider_token_is_requested_once(narrow: Protected) -> None:
    since = len(narrow.provider.events("granted"))
    async with toolset_of(server_of(narrow.endpoint(ROBOT), call_seconds=10)) as toolset:
        assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"
        closed = await asyncio.gather(*(call(toolset, "close", ticket=number) for number in range(4)))
        assert [each.data for each in closed] == [f"closed {number}" for number in range(4)]
        assert (await call(toolset, "search", text="y", limit=1)).data == "ticket 0 about y"
    assert granted(narrow, since) == ["client_credentials scope=tickets", "client_credentials scope=tickets archive"]


async def test_a_scope_that_is_not_granted(narrow: Protected) -> None:
    since = len(narrow.provider.events("grant-error"))
    async with toolset_of(server_of(narrow.endpoint(ROBOT), call_seconds=10)) as toolset:
        for _ in range(2):
            with ends_before(8), pytest.raises(ToolError) as raised:
                await call(toolset, "wait", seconds=0)
            assert str(raised.value).startswith(f"MCP server 'tickets' ({narrow.origin}): {_LACKS}admin (")
            assert "invalid_scope" in str(raised.value)
            assert str(raised.value).endswith("; grant it to the client 'robot'")
        # The other tools still run, and a scope that is granted is still obtained.
        assert (await call(toolset, "close", ticket=1)).data == "closed 1"
        assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"
    asked = len(narrow.provider.events("grant-error")) - since
    # With SSE, a refused message ends the connection, and a new one begins with a new token.
    assert asked == (2 if narrow.mode == "sse" else 1)


async def test_configured_scopes_are_not_widened(narrow: Protected) -> None:
    since = len(narrow.provider.events("granted"))
    login = replace(ROBOT, scopes=("tickets",))
    async with toolset_of(server_of(narrow.endpoint(login), call_seconds=10)) as toolset:
        with ends_before(8), pytest.raises(ToolError) as raised:
            await call(toolset, "close", ticket=1)
    place = f"MCP server 'tickets' ({narrow.origin})"
    assert str(raised.value) == f"{place}: {_LACKS}archive; add it to oauth.scopes"
    assert granted(narrow, since) == ["client_credentials scope=tickets"]


async def test_a_person_logs_in_again_while_calls_run(narrow: Protected, tmp_path: Path) -> None:
    server = server_of(narrow.endpoint(PERSON), call_seconds=10, trusts_annotations=True)
    await log_in_at(server, tmp_path)
    async with toolset_of(server, tmp_path) as toolset:
        found = [asyncio.create_task(call(toolset, "search", text="x", limit=1)) for _ in range(8)]
        with ends_before(8), pytest.raises(ToolError) as raised:
            await call(toolset, "close", ticket=1)
        advice = "run `holmes toolset login tickets --scope=archive`"
        assert str(raised.value) == f"MCP server 'tickets' ({narrow.origin}): {_LACKS}archive; {advice}"
        assert {each.data for each in await asyncio.gather(*found)} == {"ticket 0 about x"}
        page = await log_in_at(server, tmp_path, "archive")
        assert set(parse_qs(urlsplit(page).query)["scope"][0].split()) == {"tickets", "archive", "offline_access"}
        assert (await call(toolset, "close", ticket=2)).data == "closed 2"


@pytest.mark.parametrize("narrow", ["streamable-http"], indirect=True)
def test_the_command_requests_scopes(narrow: Protected, tmp_path: Path) -> None:
    person = Person.at(tmp_path, narrow)
    with Shown.by(person, "--scope=archive", "--scope", "admin") as shown:
        assert set(shown.parameter("scope").split()) == {"tickets", "archive", "admin", "offline_access"}


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        ("archive admin", "archive admin"),
        ("$(id) `id` a'b", "'--scope=$(id)'"),
        ("caf\xe9 \x07", "a scope, which it does not name"),
    ],
)
def test_words_of_the_server_are_quoted(scope: str, shown: str) -> None:
    challenge = f'Bearer error="insufficient_scope", scope="{scope}"'.encode("latin-1")
    request = httpx2.Request("POST", "http://127.0.0.1:1/mcp")
    response = httpx2.Response(403, headers=[(b"www-authenticate", challenge)], request=request)
    server = server_of(HttpEndpoint(mode="streamable-http", url="http://127.0.0.1:1/mcp", login=PERSON))
    with tempfile.TemporaryFile("w+") as errors:
        trail = Trail(errors, lambda: None)
        trail.refuse(response)
        line = str(fault_of(server, ConnectionError("refused"), trail))
    assert shown in line
    assert line.isprintable()
