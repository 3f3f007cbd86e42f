"""Chooses the OAuth flow of an MCP server.

A person logs in with `holmes toolset login`. After that, tokens are refreshed without a person. Nothing else starts a
login, because a check or an investigation has no browser, and would register a new client each time.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl

from holmes.toolsets.mcp.faults import LoginRequiredError
from holmes.toolsets.mcp.tokens import Stored, TokenFile, TokenMemory, read_stored, token_path

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from mcp.client.auth import AuthorizationCodeResult
    from mcp.client.auth.oauth2 import OAuthContext

    from holmes.toolsets.mcp.servers import HttpEndpoint, Login, McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """A person's browser. `show` gets the address of the login page, and `returned` waits for what comes back.

    `redirect_url` is the address to which the login page sends the browser.
    """

    redirect_url: str
    show: Callable[[str], Awaitable[None]]
    returned: Callable[[], Awaitable[AuthorizationCodeResult]]


def auth_of(
    server: McpServer, endpoint: HttpEndpoint, folder: Path, browser: Browser | None = None
) -> httpx2.Auth | None:
    """Return the authentication of `endpoint`, or None if no OAuth is configured.

    `folder` contains the tokens of persons. Without `browser`, a server that requires a person's login raises
    `LoginRequiredError`.
    """
    login = endpoint.login
    if login is None:
        return None
    if not login.is_person:
        return _client_credentials(endpoint, login)
    path = token_path(folder, server, endpoint)
    stored = read_stored(path) if browser is None else Stored(redirect_url=browser.redirect_url)
    if stored is None:
        return _LoginRequired()
    return _person(endpoint, login, TokenFile(path, login, stored, is_login=browser is not None), stored, browser)


class _LoginRequired(httpx2.Auth):
    """Asks for nothing, and explains the refusal."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code == 401:
            raise LoginRequiredError


def _client_credentials(endpoint: HttpEndpoint, login: Login) -> httpx2.Auth:
    with warnings.catch_warnings():
        # HolmesGPT's configuration has no key for the issuer, which the SDK wants.
        warnings.simplefilter("ignore")
        provider = ClientCredentialsOAuthProvider(
            endpoint.url,
            TokenMemory(),
            client_id=login.client_id or "",
            client_secret=login.client_secret or "",
            scope=" ".join(login.scopes) or None,
            issuer=login.issuer,
        )
    _prefer(provider.context, login)
    return provider


def _person(
    endpoint: HttpEndpoint, login: Login, tokens: TokenFile, stored: Stored, browser: Browser | None
) -> httpx2.Auth:
    async def no_person(_: str) -> None:
        raise LoginRequiredError

    provider = OAuthClientProvider(
        endpoint.url,
        OAuthClientMetadata(
            client_name="Holmes",
            redirect_uris=[AnyUrl(stored.redirect_url)],
            grant_types=["authorization_code", "refresh_token"],
            scope=" ".join(login.scopes) or None,
        ),
        tokens,
        redirect_handler=browser.show if browser is not None else no_person,
        callback_handler=browser.returned if browser is not None else None,
    )
    _prefer(provider.context, login)
    tokens.attach(provider.context)
    return provider


def _prefer(context: OAuthContext, login: Login) -> None:
    """Use the configured addresses where the server does not publish its own."""
    if login.token_url is None:
        return
    parts = urlsplit(login.token_url)
    context.oauth_metadata = OAuthMetadata.model_validate(
        {
            "issuer": login.issuer or f"{parts.scheme}://{parts.netloc}",
            "authorization_endpoint": login.authorization_url or login.token_url,
            "token_endpoint": login.token_url,
            "registration_endpoint": login.registration_url,
        }
    )
