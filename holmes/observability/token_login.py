"""Logs in to a source with OAuth 2 client credentials (RFC 6749, section 4.4).

A token is fetched when the first request needs it, and stays in memory until shortly before it expires. The client's
secret is sent to the token server only, and redirects are not followed.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlsplit
from weakref import WeakKeyDictionary

from holmes.observability.access import LoginFailedError, network_fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

    from holmes.values.json_types import JsonObject

_LONGEST_SECONDS: Final = 10.0
_EARLY_SECONDS: Final = 30.0
_LONGEST_LIFE_SECONDS: Final = 10**9
_RESPONSE_BYTES: Final = 65_536
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """A client of a token server, and how the server is reached."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    audience: str | None = None
    authority: Path | None = None
    """Further CA certificates. Certificates of the token server are always checked."""
    proxy: str | None = field(default=None, repr=False)
    timeout_seconds: float = _LONGEST_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    text: str = field(repr=False)
    renewed_at: float | None
    """When the next token is fetched, on the monotonic clock, or None without a valid lifetime."""


@lru_cache(maxsize=64)
def token_login(credentials: ClientCredentials) -> TokenLogin:
    """Return the login that all toolsets with the same credentials share, so that they share its token."""
    return TokenLogin(credentials)


class TokenLogin:
    """Adds a bearer token, and replaces it once if the source rejects it."""

    def __init__(self, credentials: ClientCredentials, clock: Callable[[], float] = time.monotonic) -> None:
        self._credentials = credentials
        self._clock = clock
        self._token: _Token | None = None
        self._is_form = False
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def sign(self, request: httpx.Request) -> None:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            token = self._token
            if token is None or (token.renewed_at is not None and self._clock() >= token.renewed_at):
                token = self._token = await self._fetched()
        request.headers["Authorization"] = f"Bearer {token.text}"

    def renews(self, request: httpx.Request) -> bool:
        if self._token is not None and request.headers.get("Authorization") == f"Bearer {self._token.text}":
            self._token = None
        return True

    async def _fetched(self) -> _Token:
        import httpx

        try:
            async with asyncio.timeout(min(_LONGEST_SECONDS, self._credentials.timeout_seconds / 2)):
                verification = await asyncio.to_thread(_verification, self._credentials)
                async with httpx.AsyncClient(
                    verify=verification, proxy=self._credentials.proxy, trust_env=False, follow_redirects=False
                ) as http:
                    return await self._token_from(http)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._error("no response in time", "check oauth.token_url and the network") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            other = f"the connection failed ({type(error).__name__})", "check oauth.token_url and the proxy"
            raise self._error(*(network_fault(error) or other)) from error

    async def _token_from(self, http: httpx.AsyncClient) -> _Token:
        """Authenticate the client by a header, which all servers must support, then as part of the form."""
        status, answer = await self._asked(http)
        if status in {400, 401} and not self._is_form:
            self._is_form = True
            second = await self._asked(http)
            if second[0] == 200:
                status, answer = second
            else:
                self._is_form = False
        if status != 200:
            raise self._error(self._refusal(status, answer), "check oauth")
        return self._read(answer)

    async def _asked(self, http: httpx.AsyncClient) -> tuple[int, JsonObject]:
        known = self._credentials
        form = {"grant_type": "client_credentials"}
        form |= {name: value for name in ("scope", "audience") if (value := getattr(known, name))}
        login = None
        if self._is_form:
            form |= {"client_id": known.client_id, "client_secret": known.client_secret}
        else:
            login = (quote_plus(known.client_id), quote_plus(known.client_secret))
        headers = {"User-Agent": "holmes", "Accept": "application/json"}
        async with http.stream("POST", known.token_url, data=form, auth=login, headers=headers) as response:
            body = bytearray()
            async for piece in response.aiter_bytes(8_192):
                body += piece
                if len(body) > _RESPONSE_BYTES:
                    break
            return response.status_code, _object(body)

    def _read(self, answer: JsonObject) -> _Token:
        text, lasts = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(text, str) or not text or not (text.isascii() and text.isprintable()) or " " in text:
            raise self._error("no valid access_token is returned", "check oauth.token_url")
        if str(answer.get("token_type", "bearer")).lower() != "bearer":
            raise self._error("the token is not a bearer token", "configure another login")
        if isinstance(lasts, str) and lasts.isdecimal() and len(lasts) < 10:
            lasts = int(lasts)
        if not isinstance(lasts, int | float) or isinstance(lasts, bool) or not 0 < lasts < _LONGEST_LIFE_SECONDS:
            return _Token(text=text, renewed_at=None)
        return _Token(text=text, renewed_at=self._clock() + max(lasts - _EARLY_SECONDS, lasts / 2))

    def _refusal(self, status: int, answer: JsonObject) -> str:
        """Return why the server refused. Its descriptions are left out, because they can repeat the secret."""
        if 300 <= status < 400:
            return f"the redirect (HTTP {status}) is not followed"
        code = answer.get("error")
        is_shown = isinstance(code, str) and _ERROR_CODE.fullmatch(code) and self._credentials.client_secret not in code
        return f"the client is rejected ({code if is_shown else f'HTTP {status}'})"

    def _error(self, why: str, advice: str) -> LoginFailedError:
        parts = urlsplit(self._credentials.token_url)
        host = parts.netloc.rpartition("@")[2]
        return LoginFailedError(f"the token server {parts.scheme}://{host}: {why}", advice)


def _verification(credentials: ClientCredentials) -> ssl.SSLContext | bool:
    if not credentials.token_url.startswith("https"):
        return False
    context = ssl.create_default_context()
    if credentials.authority is not None:
        context.load_verify_locations(credentials.authority)
    return context


def _object(body: bytes | bytearray) -> JsonObject:
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
