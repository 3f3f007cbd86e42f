"""The OAuth flows of MCP servers: how tokens are obtained, refreshed and widened while calls run."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import issuers_match

from holmes.toolsets.mcp.faults import (
    RENEWED,
    WHY_NOT_WIDER,
    AuthorizationError,
    LoginRequiredError,
    missing_scopes,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import TypeAlias

    from mcp.shared.auth import OAuthToken

    from holmes.toolsets.mcp.tokens import TokenFile

    Flow: TypeAlias = AsyncGenerator[httpx2.Request, httpx2.Response]
CHECK: Final = "check the authorization server"
_INVALID: Final = re.compile(r"\d+ validation errors? for (\w+).*")
_QUOTED: Final = re.compile(r"(?P<what>Token exchange failed \(\d+\)|Registration failed: \d+)(?P<body>.*)")


class LoginRequired(httpx2.Auth):
    """Asks for nothing, and explains the refusal."""

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        response = yield request
        if response.status_code == 401:
            raise LoginRequiredError


class Renewing(OAuthClientProvider):
    """Obtains tokens as the SDK does, but sends the requests themselves in parallel.

    The SDK holds its lock until the response, so that one call would wait for another.
    """

    _other_form = False

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        used = self.context.current_tokens
        if self.context.is_token_valid():
            self._add_auth_header(request)
            request.extensions[RENEWED] = partial(self._renews, used)
            response = yield request
            if response.status_code != 401:
                return
        async with self._obtaining:
            if used is not None and self.context.current_tokens is used:
                self.context.clear_tokens()
            while not self.context.is_token_valid():
                flow = super()._auth_flow(request)
                request.extensions[RENEWED] = partial(self._renews, used)
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
        request.extensions[RENEWED] = partial(self._widens, self.context.current_tokens)
        self._add_auth_header(request)
        yield request

    def _renews(self, used: OAuthToken | None, response: httpx2.Response) -> bool:
        return response.status_code == 401 or self._widens(used, response)

    def _widens(self, used: OAuthToken | None, response: httpx2.Response) -> bool:  # noqa: ARG002  some flows do
        """Return whether the request is sent again with a token that has more scopes than `used`."""
        return False

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


class ClientCredentials(Renewing, ClientCredentialsOAuthProvider):
    """Tokens of the client's own credentials. If a response demands more scopes, they are requested once.

    Configured scopes are the operator's choice, and are never widened.
    """

    is_fixed = False
    _asked: frozenset[str] = frozenset()
    """Scopes that were requested beside the usual ones for the present token, whether they were granted or not."""

    _why_not_wider = ""

    def _widens(self, used: OAuthToken | None, response: httpx2.Response) -> bool:
        missing = missing_scopes(response)
        has_other = self.context.current_tokens is not used
        return missing is not None and not self.is_fixed and (has_other or not self._asked.issuperset(missing or ("",)))

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        request.extensions[WHY_NOT_WIDER] = self._why_not_wider
        flow = super()._auth_flow(request)
        for is_last in (False, True):
            used, response = self.context.current_tokens, None
            try:
                outgoing = await anext(flow)
                while True:
                    used = self.context.current_tokens
                    response = yield outgoing
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                if is_last or response is None or not self._widens(used, response):
                    return
            finally:
                await flow.aclose()
            flow = self._widened(request, response, used)

    async def _widened(self, request: httpx2.Request, refused: httpx2.Response, used: OAuthToken | None) -> Flow:
        """Request a token with more scopes, unless another call has done so, and send `request` again.

        If no such token is issued, the present one stays, because other calls need it.
        """
        request.extensions.pop(RENEWED, None)
        async with self._obtaining:
            if self.context.current_tokens is used and self._widens(used, refused):
                chosen, asked = self.context.client_metadata.scope, self._asked.union(missing_scopes(refused) or ("",))
                flow = super(Renewing, self)._auth_flow(request)
                try:
                    await anext(flow)  # `request`, which is already answered
                    outgoing = await flow.asend(refused)
                    while outgoing is not request:
                        outgoing = await flow.asend((yield outgoing))
                except OAuthFlowError as error:
                    self.context.client_metadata.scope = chosen
                    self._why_not_wider = words_of(error)
                finally:
                    await flow.aclose()
                    self._asked = asked
        request.extensions[WHY_NOT_WIDER] = self._why_not_wider
        self._add_auth_header(request)
        yield request

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        self._asked, self._why_not_wider = frozenset(), ""


class NewLogin(Renewing):
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


class StoredLogin(OAuthClientProvider):
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
            tokens = self.context.current_tokens
            renews = request.extensions[RENEWED] = partial(self._renews, tokens, is_last)
            response = yield request
            if not renews(response):
                return
            used = tokens.access_token if tokens is not None else None
            if is_last:
                break
        raise LoginRequiredError

    def _renews(self, used: OAuthToken | None, is_last: bool, response: httpx2.Response) -> bool:  # noqa: FBT001
        """Return whether a response makes the request be sent again, for example after a person has logged in again."""
        if response.status_code == 401:
            return True
        has_other = self.context.current_tokens is not used or self.file.has_newer()
        return has_other and not is_last and missing_scopes(response) is not None

    def _is_stale(self, used: str | None) -> bool:
        """Return whether the token has expired, or is the one that the server has just rejected."""
        tokens = self.context.current_tokens
        return not self.context.is_token_valid() or (tokens is not None and tokens.access_token == used)

    async def _refreshed(self, response: httpx2.Response) -> None:
        if response.status_code == 429 or response.status_code >= 500:
            why = f"the token is not refreshed by {response.request.url.host} (HTTP {response.status_code})"
            raise AuthorizationError(why, CHECK)
        if not await self._handle_refresh_response(response):
            raise LoginRequiredError


def words_of(error: Exception) -> str:
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
