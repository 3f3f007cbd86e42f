"""Chooses the OAuth flow of an MCP server.

A person logs in with `holmes toolset login`. After that, tokens are refreshed without a person. Nothing else starts a
login, because a check or an investigation has no browser, and would register a new client each time.
"""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl, Field

from holmes.toolsets.mcp.faults import AuthorizationError, LoginRequiredError
from holmes.toolsets.mcp.flows import CHECK, ClientCredentials, LoginRequired, NewLogin, StoredLogin, words_of
from holmes.toolsets.mcp.tokens import Stored, TokenFile, TokenMemory, read_stored, token_path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mcp.client.auth import AuthorizationCodeResult
    from mcp.client.auth.oauth2 import OAuthContext

    from holmes.toolsets.mcp.flows import Flow
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
    server: McpServer,
    endpoint: HttpEndpoint,
    folder: Path,
    browser: Browser | None = None,
    *,
    failed: Callable[[Exception], None] = lambda _: None,
) -> httpx2.Auth | None:
    """Return the authentication of `endpoint`, or None if no OAuth is configured.

    `folder` contains the tokens of persons. Without `browser`, a server that requires a person's login raises
    `LoginRequiredError`. Other failures raise `AuthorizationError`. `failed` is called with the exception first.
    """
    login = endpoint.login
    return _Explained(_flow(server, endpoint, login, folder, browser), failed) if login is not None else None


def _flow(
    server: McpServer, endpoint: HttpEndpoint, login: Login, folder: Path, browser: Browser | None
) -> httpx2.Auth:
    if not login.is_person:
        return _client_credentials(endpoint, login)
    path = token_path(folder, server, endpoint)
    if browser is not None:
        return _new_login(endpoint, login, path, browser)
    stored = read_stored(path)
    return _stored_login(endpoint, login, path, stored) if stored is not None else LoginRequired()


class _Explained(httpx2.Auth):
    """Turns failures of the SDK into `AuthorizationError`, without the secrets that the originals may quote.

    A transport may swallow the exception while the caller waits for a response, so `failed` gets it first.
    """

    def __init__(self, inner: httpx2.Auth, failed: Callable[[Exception], None]) -> None:
        self._inner = inner
        self._failed = failed

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        flow = self._inner.async_auth_flow(request)
        outgoing = request
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except (LoginRequiredError, AuthorizationError) as error:
            self._failed(error)
            raise
        except (OAuthFlowError, ValueError) as error:
            explained = AuthorizationError(f"no token was issued ({words_of(error)})", "check oauth")
            self._failed(explained)
            raise explained from None
        except GeneratorExit:
            # No response came, because the connection failed or the call was cancelled.
            task = asyncio.current_task()
            if outgoing is not request and (task is None or not task.cancelling()):
                self._failed(AuthorizationError(f"no response from {outgoing.url.host}", CHECK))
            raise
        finally:
            await flow.aclose()


def _client_credentials(endpoint: HttpEndpoint, login: Login) -> httpx2.Auth:
    with warnings.catch_warnings():
        # HolmesGPT's configuration has no key for the issuer, which the SDK wants.
        warnings.simplefilter("ignore")
        provider = ClientCredentials(
            endpoint.url,
            TokenMemory(),
            client_id=login.client_id or "",
            client_secret=login.client_secret or "",
            issuer=login.issuer,
        )
    provider.is_fixed = bool(login.scopes)
    _prefer(provider.context, login)
    return provider


def _new_login(endpoint: HttpEndpoint, login: Login, path: Path, browser: Browser) -> httpx2.Auth:
    stored = Stored(redirect_url=browser.redirect_url)
    file = TokenFile(path, login, stored, is_login=True)
    provider = NewLogin(
        endpoint.url, _metadata(stored), file, redirect_handler=browser.show, callback_handler=browser.returned
    )
    provider.issuer = login.issuer
    _prefer(provider.context, login)
    file.attach(provider.context)
    return provider


def _stored_login(endpoint: HttpEndpoint, login: Login, path: Path, stored: Stored) -> httpx2.Auth:
    file = TokenFile(path, login, stored, is_login=False)
    provider = StoredLogin(endpoint.url, _metadata(stored), file)
    provider.file = file
    _prefer(provider.context, login)
    file.attach(provider.context)
    return provider


def _metadata(stored: Stored) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="Holmes",
        redirect_uris=[AnyUrl(stored.redirect_url)],
        grant_types=["authorization_code", "refresh_token"],
    )


class _ChosenScopes(OAuthClientMetadata):
    """Requests the configured scopes, and those that are added at the login.

    The SDK would replace them with those that the server names. `offline_access` is added as the SDK does it, because
    it gives the token that refreshes others.
    """

    chosen: tuple[str, ...] = Field(default=(), exclude=True)
    added: tuple[str, ...] = Field(default=(), exclude=True)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "scope":
            named = str(value or "").split()
            offline = {"offline_access"} & set(named)
            value = " ".join(dict.fromkeys((*(self.chosen or named), *self.added, *offline))) or None
        super().__setattr__(name, value)


def _prefer(context: OAuthContext, login: Login) -> None:
    """Use the configured scopes, and the configured addresses where the server does not publish its own."""
    if login.scopes or login.added_scopes:
        known = context.client_metadata.model_dump()
        context.client_metadata = _ChosenScopes(**known, chosen=login.scopes, added=login.added_scopes)
        context.client_metadata.scope = known["scope"]
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
