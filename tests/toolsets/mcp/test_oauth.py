"""OAuth against a certified authorization server: the client's own credentials, and tokens that are in use."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mcp.client.auth import OAuthTokenError
from mcp.shared.auth import OAuthToken

from holmes.toolsets.mcp.flows import words_of
from holmes.toolsets.mcp.login import log_in
from holmes.toolsets.mcp.session import McpSession
from holmes.values.errors import ToolError
from tests.support.deadlines import ends_before
from tests.toolsets.mcp.oauth_person import log_in_at
from tests.toolsets.mcp.oauth_running import (
    PERSON,
    ROBOT,
    ROBOT_SECRET,
    TOKEN_SECONDS,
    Protected,
    Provider,
    revoke,
    running_protected,
    running_provider,
)
from tests.toolsets.mcp.running import ENVIRONMENT, call, server_of, toolset_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture(scope="module", params=["sse", "streamable-http"])
def protected(request: pytest.FixtureRequest, provider: Provider) -> Iterator[Protected]:
    with running_protected(request.param, provider) as server:
        yield server


async def test_own_credentials_and_an_expired_token(protected: Protected) -> None:
    before = len(protected.provider.events("granted"))
    async with toolset_of(server_of(protected.endpoint(ROBOT), call_seconds=10)) as toolset:
        assert [tool.name for tool in toolset.tools] == ["search", "close", "wait"]
        assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"
        await asyncio.sleep(TOKEN_SECONDS + 1)
        assert (await call(toolset, "close", ticket=3)).data == "closed 3"
    granted = protected.provider.events("granted")[before:]
    assert granted == [f"client_credentials scope=tickets resource={protected.url}"] * 2


async def test_an_error_of_the_tool_is_not_mistaken_for_rejected_credentials(
    protected: Protected, tmp_path: Path
) -> None:
    session = McpSession(server_of(protected.endpoint(ROBOT), call_seconds=10), ENVIRONMENT, tokens=tmp_path)
    try:
        await session.listing()
        await asyncio.sleep(TOKEN_SECONDS + 1)
        with pytest.raises(ToolError, match="Unknown resource") as raised:
            await session._request(lambda client: client.read_resource("x://y"), is_repeatable=True)
    finally:
        await session.aclose()
    assert "401" not in str(raised.value)


async def test_a_wrong_secret(protected: Protected) -> None:
    login = replace(ROBOT, client_secret="wrong-secret-0123456789")
    with pytest.raises(ToolError) as raised:
        async with toolset_of(server_of(protected.endpoint(login))):
            pass
    assert str(raised.value) == (
        f"MCP server 'tickets' ({protected.origin}): no token was issued (Token exchange failed (401): invalid_client: "
        "client authentication failed); check oauth"
    )


async def test_configured_scopes_are_requested(protected: Protected) -> None:
    async with toolset_of(server_of(protected.endpoint(replace(ROBOT, scopes=("archive", "tickets"))))):
        pass
    assert protected.provider.events("granted")[-1].startswith("client_credentials scope=archive tickets ")


async def test_credentials_are_sent_only_to_their_issuer(protected: Protected) -> None:
    before = len(protected.provider.events("grant-error")) + len(protected.provider.events("granted"))
    login = replace(ROBOT, issuer="https://login.example.com")
    with pytest.raises(ToolError, match=r"issuer mismatch: http://127\.0\.0\.1:.* != https://login\.example\.com"):
        async with toolset_of(server_of(protected.endpoint(login))):
            pass
    assert len(protected.provider.events("grant-error")) + len(protected.provider.events("granted")) == before


async def test_without_oauth_the_server_rejects_the_client(protected: Protected) -> None:
    with pytest.raises(ToolError, match=r"the credentials are rejected \(HTTP 401\); check headers or oauth$"):
        async with toolset_of(server_of(protected.endpoint(None))):
            pass


async def test_an_outage_of_the_authorization_server(protected: Protected) -> None:
    async with toolset_of(server_of(protected.endpoint(ROBOT), call_seconds=10)) as toolset:
        await asyncio.sleep(TOKEN_SECONDS + 1)
        with protected.provider.out(), pytest.raises(ToolError) as raised:
            await call(toolset, "search", text="x")
        assert str(raised.value).startswith(f"MCP server 'tickets' ({protected.origin}): ")
        assert ROBOT_SECRET not in str(raised.value)
        assert (await call(toolset, "search", text="x", limit=1)).data == "ticket 0 about x"


async def test_a_check_never_registers_a_client(protected: Protected, tmp_path: Path) -> None:
    before = protected.provider.events("registered")
    with pytest.raises(ToolError) as raised:
        async with toolset_of(server_of(protected.endpoint(PERSON)), tmp_path):
            pass
    assert str(raised.value) == (
        f"MCP server 'tickets' ({protected.origin}): it requires a login; run `holmes toolset login tickets`"
    )
    assert protected.provider.events("registered") == before
    assert file_names(tmp_path) == []


async def test_sse_that_requires_a_token_only_for_messages(tmp_path: Path) -> None:
    with running_provider(60) as provider, running_protected("open-stream", provider) as server:
        with ends_before(15), pytest.raises(ToolError, match="it requires a login; run `holmes toolset login tickets`"):
            async with toolset_of(server_of(server.endpoint(PERSON)), tmp_path):
                pass
        async with toolset_of(server_of(server.endpoint(ROBOT))) as toolset:
            assert (await call(toolset, "close", ticket=3)).data == "closed 3"


async def test_an_authorization_server_that_is_gone() -> None:
    with running_provider() as gone, running_protected("streamable-http", gone) as server:
        gone.close()
        with pytest.raises(ToolError) as raised:
            async with toolset_of(server_of(server.endpoint(ROBOT))):
                pass
    assert str(raised.value) == (
        f"MCP server 'tickets' ({server.origin}): no response from 127.0.0.1; check the authorization server"
    )


async def test_an_open_session_survives_a_revoked_login(protected: Protected, tmp_path: Path) -> None:
    server = server_of(protected.endpoint(PERSON), call_seconds=20)
    await log_in_at(server, tmp_path)
    async with toolset_of(server, tmp_path) as toolset:
        await asyncio.sleep(TOKEN_SECONDS + 1)
        assert (await call(toolset, "close", ticket=1)).data == "closed 1"
        revoke(protected.provider, only_file(tmp_path))
        await asyncio.sleep(TOKEN_SECONDS + 1)
        for _ in range(2):
            with ends_before(10), pytest.raises(ToolError, match="it requires a login; run `holmes toolset login"):
                await call(toolset, "close", ticket=2)
        await log_in_at(server, tmp_path)
        assert (await call(toolset, "close", ticket=3)).data == "closed 3"


async def test_a_login_that_nobody_finishes(
    protected: Protected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holmes.toolsets.mcp.login._WAIT_SECONDS", 1.0)
    with pytest.raises(ToolError) as raised:
        await log_in(
            server_of(protected.endpoint(PERSON)), ENVIRONMENT, folder=tmp_path, say=lambda _: None, opens_browser=False
        )
    assert str(raised.value) == f"MCP server 'tickets' ({protected.origin}): no login within 1 s; run the command again"


async def test_calls_run_at_once_where_a_result_is_not_a_stream(provider: Provider) -> None:
    with running_protected("json", provider) as server:
        async with toolset_of(server_of(server.endpoint(ROBOT))) as toolset:
            await asyncio.sleep(TOKEN_SECONDS + 1)
            results = await asyncio.gather(*(call(toolset, "wait", seconds=0.4) for _ in range(4)))
    spans = [tuple(map(float, result.data.split())) for result in results]
    assert max(began for began, _ in spans) < min(ended for _, ended in spans)


def test_a_quoted_response_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="hidden") as raised:
        OAuthToken.model_validate({"refresh_token": "hidden"})
    assert words_of(OAuthTokenError(f"Invalid token response: {raised.value}")) == (
        "Invalid token response: not a valid OAuthToken"
    )
    assert words_of(OAuthTokenError("Token exchange failed (500): hidden")) == "Token exchange failed (500)"


def only_file(folder: Path) -> Path:
    (found,) = folder.glob("*.json")
    return found


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
