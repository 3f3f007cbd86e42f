"""Chooses the OAuth flow of an MCP server.

A person logs in with `holmes toolset login`. After that, tokens are refreshed without a person. Nothing else starts a
login, because a check or an investigation has no browser, and would register a new client each time.
"""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl

from holmes.toolsets.mcp.faults import RENEWED, AuthorizationError, LoginRequiredError
from holmes.toolsets.mcp.tokens import Stored, TokenFile, TokenMemory, read_stored, token_path

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    from mcp.client.auth import AuthorizationCodeResult
    from mcp.client.auth.oauth2 import OAuthContext

    from holmes.toolsets.mcp.servers import HttpEndpoint, Login, McpServer

    Flow: TypeAlias = AsyncGenerator[httpx2.Request, httpx2.Response]
_CHECK: Final = "check the authorization server"
_INVALID: Final = re.compile(r"\d+ validation errors? for (\w+).*")
_QUOTED: Final = re.compile(r"(?P<what>Token exchange failed \(\d+\)|Registration failed: \d+)(?P<body>.*)")


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
    return _stored_login(endpoint, login, path, stored) if stored is not None else _LoginRequired()


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
            explained = AuthorizationError(f"no token was issued ({_words(error)})", "check oauth")
            self._failed(explained)
            raise explained from None
        except GeneratorExit:
            # No response came, because the connection failed or the call was cancelled.
            task = asyncio.current_task()
            if outgoing is not request and (task is None or not task.cancelling()):
                self._failed(AuthorizationError(f"no response from {outgoing.url.host}", _CHECK))
            raise
        finally:
            await flow.aclose()


class _LoginRequired(httpx2.Auth):
    """Asks for nothing, and explains the refusal."""

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        response = yield request
        if response.status_code == 401:
            raise LoginRequiredError


class _Renewing(OAuthClientProvider):
    """Obtains tokens as the SDK does, but sends the requests themselves in parallel.

    The SDK holds its lock until the response, so that one call would wait for another.
    """

    _other_form = False

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        used = self.context.current_tokens
        if self.context.is_token_valid():
            self._add_auth_header(request)
            request.extensions[RENEWED] = True
            response = yield request
            if response.status_code != 401:
                return
        async with self._obtaining:
            if used is not None and self.context.current_tokens is used:
                self.context.clear_tokens()
            while not self.context.is_token_valid():
                flow = super()._auth_flow(request)
                request.extensions[RENEWED] = True
                try:
                    outgoing = await anext(flow)
                    while outgoing is not request or not self.context.is_token_valid():
                        response = yield outgoing
                        outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return
                except OAuthFlowError as error:
                    if not self._tries_other_form(error):
                        raise
                finally:
                    await flow.aclose()
        request.extensions.pop(RENEWED, None)
        self._add_auth_header(request)
        yield request

    def _tries_other_form(self, error: OAuthFlowError) -> bool:
        """Return whether another form of the issuer may be right.

        Many servers publish an issuer without a path with a final slash that it does not have.
        """
        issuer = self.context.auth_server_url or ""
        if self._other_form or "metadata issuer mismatch" not in str(error) or urlsplit(issuer).path not in {"", "/"}:
            return False
        self._other_form = True
        return True

    def _select_authorization_server(self, advertised: list[str]) -> str:
        chosen = super()._select_authorization_server(advertised)
        if not self._other_form:
            return chosen
        return chosen.removesuffix("/") if chosen.endswith("/") else f"{chosen}/"

    @cached_property
    def _obtaining(self) -> asyncio.Lock:
        return asyncio.Lock()


class _ClientCredentials(_Renewing, ClientCredentialsOAuthProvider):
    """Tokens of the client's own credentials."""


class _NewLogin(_Renewing):
    """A person logs in. Nothing is sent to another authorization server than `issuer`, if it is configured."""

    issuer: str | None = None

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self.issuer
        matching = [each for each in advertised if wanted is not None and issuers_match(each, wanted)]
        if wanted is not None and not matching:
            raise _other_issuer(advertised[0], wanted)
        return super()._select_authorization_server(matching or advertised)

    async def _perform_authorization(self) -> httpx2.Request:
        found = self.context.oauth_metadata
        if self.issuer is not None and (found is None or not issuers_match(str(found.issuer), self.issuer)):
            raise _other_issuer(str(found.issuer) if found is not None else "none", self.issuer)
        return await super()._perform_authorization()


def _other_issuer(named: str, configured: str) -> AuthorizationError:
    return AuthorizationError(f"it names the issuer {named}, and {configured} is configured", "correct oauth.issuer")


class _StoredLogin(OAuthClientProvider):
    """Uses the stored tokens of a person, and refreshes them. It never logs in, and never registers a client."""

    file: TokenFile

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        if not self._initialized:
            await self._initialize()
        used: str | None = None
        for is_last in (False, True):
            if self._is_stale(used):
                async with self.file.locked():
                    self.file.adopt_newer()
                    if self._is_stale(used):
                        if not self.context.can_refresh_token():
                            break
                        response = yield await self._refresh_token()
                        await self._refreshed(response)
            self._add_auth_header(request)
            request.extensions[RENEWED] = True
            tokens = self.context.current_tokens
            response = yield request
            if response.status_code != 401:
                return
            used = tokens.access_token if tokens is not None else None
            if is_last:
                break
        raise LoginRequiredError

    def _is_stale(self, used: str | None) -> bool:
        """Return whether the token has expired, or is the one that the server has just rejected."""
        tokens = self.context.current_tokens
        return not self.context.is_token_valid() or (tokens is not None and tokens.access_token == used)

    async def _refreshed(self, response: httpx2.Response) -> None:
        if response.status_code == 429 or response.status_code >= 500:
            why = f"the token is not refreshed by {response.request.url.host} (HTTP {response.status_code})"
            raise AuthorizationError(why, _CHECK)
        if not await self._handle_refresh_response(response):
            raise LoginRequiredError


def _client_credentials(endpoint: HttpEndpoint, login: Login) -> httpx2.Auth:
    with warnings.catch_warnings():
        # HolmesGPT's configuration has no key for the issuer, which the SDK wants.
        warnings.simplefilter("ignore")
        provider = _ClientCredentials(
            endpoint.url,
            TokenMemory(),
            client_id=login.client_id or "",
            client_secret=login.client_secret or "",
            issuer=login.issuer,
        )
    _prefer(provider.context, login)
    return provider


def _new_login(endpoint: HttpEndpoint, login: Login, path: Path, browser: Browser) -> httpx2.Auth:
    stored = Stored(redirect_url=browser.redirect_url)
    file = TokenFile(path, login, stored, is_login=True)
    provider = _NewLogin(
        endpoint.url, _metadata(stored), file, redirect_handler=browser.show, callback_handler=browser.returned
    )
    provider.issuer = login.issuer
    _prefer(provider.context, login)
    file.attach(provider.context)
    return provider


def _stored_login(endpoint: HttpEndpoint, login: Login, path: Path, stored: Stored) -> httpx2.Auth:
    file = TokenFile(path, login, stored, is_login=False)
    provider = _StoredLogin(endpoint.url, _metadata(stored), file)
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
    """Keeps the configured scopes. The SDK would replace them with those that the server names.

    `offline_access` is added as the SDK does it, because it gives the token that refreshes others.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name == "scope":
            chosen = (self.scope or "").split()
            offline = {"offline_access"} & set(str(value or "").split()) - set(chosen)
            value = " ".join((*chosen, *offline))
        super().__setattr__(name, value)


def _prefer(context: OAuthContext, login: Login) -> None:
    """Use the configured scopes, and the configured addresses where the server does not publish its own."""
    if login.scopes:
        known = context.client_metadata.model_dump() | {"scope": " ".join(login.scopes)}
        context.client_metadata = _ChosenScopes.model_validate(known)
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


def _words(error: Exception) -> str:
    """Return the words of the SDK. Of a quoted response, only the codes of RFC 6749 remain."""
    text = " ".join(str(error).split())
    quoted = _QUOTED.match(text)
    if quoted is None:
        # A response that is not valid is quoted too.
        return _INVALID.sub(r"not a valid \1", text)
    try:
        given = json.loads(quoted["body"][quoted["body"].index("{") :])
        told = [str(given[name]) for name in ("error", "error_description") if given.get(name)]
    except ValueError:
        told = []
    return ": ".join((quoted["what"], *told))
