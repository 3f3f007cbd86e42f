"""Checks keys and login sessions, and protects the server against requests from other sites.

Without a key, every client may use the server. The server therefore listens on loopback only, and rejects requests for
other host names, even if they resolve to 127.0.0.1 (DNS rebinding). A session cookie is accepted only from pages of
this server, because browsers send cookies with requests from any site (CSRF).
"""

import hashlib
import hmac
import ipaddress
import os
import time
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.security import APIKeyCookie, APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers, MutableHeaders

from holmes.server.errors import ApiError, error_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holmes.settings.server import ServerSettings

SESSION_COOKIE: Final = "holmes_session"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SECONDS_PER_HOUR: Final = 3_600
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_UNAUTHORIZED: Final = "API key required: send it as X-API-Key or as Authorization: Bearer, or log in on the page"


class Keys:
    """The keys of the server.

    Session tokens are signed with a key derived from the API key, so that every replica accepts them.
    """

    def __init__(self, settings: "ServerSettings") -> None:
        self._api_key = settings.api_key.get_secret_value().encode() if settings.api_key else None
        self._webhook_key = settings.webhook_key.get_secret_value().encode() if settings.webhook_key else self._api_key
        self._session_seconds = settings.session_hours * _SECONDS_PER_HOUR
        # If no API key is configured, no login is required, and a random key makes sessions invalid.
        self._session_key = _digest(self._api_key or os.urandom(32), b"holmes session")

    @property
    def required(self) -> bool:
        """Whether requests require the API key."""
        return self._api_key is not None

    @property
    def configured(self) -> bool:
        """Whether any key is configured."""
        return self._webhook_key is not None  # defaults to the API key

    def guesses(self, candidates: "Sequence[str]") -> bool:
        """Return whether `candidates` contains a wrong key but not the API key.

        A wrong key counts even if the webhook key was sent too.
        """
        known = [key for key in (self._api_key, self._webhook_key) if key is not None]
        return not any(_matches(known[0], each) for each in candidates) and not all(
            any(_matches(key, each) for key in known) for each in candidates
        )

    def matches(self, candidate: str | bytes | None) -> bool:
        """Return whether `candidate` is the API key. Returns true if no API key is configured."""
        return _matches(self._api_key, candidate)

    def matches_webhook(self, candidate: str | bytes | None) -> bool:
        """Return whether `candidate` is the webhook key. Returns true if no key is configured."""
        return _matches(self._webhook_key, candidate)

    def new_session(self) -> str:
        """Create a token that `valid_session` accepts for the configured hours in every replica."""
        content = f"{int(time.time() + self._session_seconds)}.{os.urandom(12).hex()}"
        return f"{content}.{_digest(self._session_key, content.encode()).hex()}"

    def valid_session(self, token: str | None) -> bool:
        """Return whether `token` was created with the current API key and has not expired."""
        content, _, signature = (token or "").rpartition(".")
        expected = _digest(self._session_key, content.encode("utf-8", "surrogatepass")).hex()
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass")):
            return False
        return int(content.partition(".")[0]) > time.time()

    def admits(self, headers: Headers) -> bool:
        """Return whether `headers` contains a valid key or session. Returns true if no key is required."""
        cookies = headers.get("cookie", "")
        session = next(
            (part.split("=", 1)[1] for part in cookies.split("; ") if part.startswith(f"{SESSION_COOKIE}=")), None
        )
        # `None` stands for a request without a key, which is allowed if no key is configured.
        return any(
            self.matches(each) or self.matches_webhook(each) for each in (None, *keys_in(headers))
        ) or self.valid_session(session)


def keys_of(request: Request) -> Keys:
    keys: Keys = request.app.state.keys
    return keys


def keys_in(headers: Headers) -> list[str]:
    """Return all keys in a request, valid or not."""
    return [key for key in (headers.get("x-api-key"), bearer_of(headers)) if key]


def bearer_of(headers: Headers) -> str | None:
    """Return the token in the header `Authorization: Bearer`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


_key_header = APIKeyHeader(name="X-API-Key", scheme_name="key", auto_error=False)
_bearer = HTTPBearer(scheme_name="bearer", auto_error=False)
_cookie = APIKeyCookie(name=SESSION_COOKIE, scheme_name="session", auto_error=False)


async def require_key(
    request: Request,
    key: Annotated[str | None, Security(_key_header)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    session: Annotated[str | None, Security(_cookie)],
) -> None:
    """Require the key, or a session on a page of this server. Protected routes depend on this function.

    Raises `ApiError` 401, or `ApiError` 403 if a page of another site uses the session.
    """
    keys = keys_of(request)
    if keys.matches(key) or keys.matches(bearer.credentials if bearer else None):
        return
    if not keys.valid_session(session):
        raise ApiError(401, _UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
    if request.method not in _SAFE_METHODS and not is_same_origin(request.headers):
        raise ApiError(403, "a session is valid only for requests from the page; send the key instead")


async def require_webhook_key(
    request: Request,
    key: Annotated[str | None, Security(_key_header)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> None:
    """Require the webhook key. Webhook routes depend on this function. Raises `ApiError` 401."""
    keys = keys_of(request)
    if not (keys.matches_webhook(key) or keys.matches_webhook(bearer.credentials if bearer else None)):
        message = "webhook key required: send it as Authorization: Bearer or as X-API-Key"
        raise ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})


def is_same_origin(headers: Headers) -> bool:
    """Return whether a page of this server sent the request, according to the browser's headers.

    `Sec-Fetch-Site` takes precedence, because a proxy may change the host that `Origin` is compared with.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site == "same-origin"
    if origin is None:
        return False
    try:
        netloc = urlsplit(origin).netloc.lower()
    except ValueError:
        return False
    return bool(netloc) and netloc == headers.get("host", "").lower()


class SecurityMiddleware:
    """ASGI layer that adds security headers. Without a key, it also rejects requests for or from other sites."""

    def __init__(self, app: "ASGIApp", keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = None if self._keys.required else _foreign(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await error_response(refusal)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


def _foreign(method: str, headers: Headers) -> ApiError | None:
    """Return the error for a request that a server without a key must reject, or None for an allowed request."""
    if not _is_loopback(headers.get("host", "")):
        return ApiError(421, "without a key, only requests to loopback addresses are allowed; set HOLMES_API_KEY")
    said = headers.get("origin") is not None or headers.get("sec-fetch-site") not in {None, "none"}
    if method not in _SAFE_METHODS and said and not is_same_origin(headers):
        return ApiError(403, "requests from other sites are rejected")
    return None


def _is_loopback(host: str) -> bool:
    if any(sign in host for sign in "@/?#\\"):  # for such hosts, `urlsplit` would return another host name
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _matches(key: bytes | None, candidate: str | bytes | None) -> bool:
    if key is None:
        return True
    if candidate is None:
        return False
    if isinstance(candidate, bytes):
        return _equal(key, candidate)
    # Header values are decoded as Latin-1, and form values as Unicode.
    as_sent = candidate.encode("latin-1", "replace")
    return _equal(key, as_sent) | _equal(key, candidate.encode("utf-8", "surrogatepass"))


def _equal(key: bytes, candidate: bytes) -> bool:
    """Compare the keys in a time that does not depend on the content or length of `key`."""
    blind = os.urandom(16)
    return hmac.compare_digest(_digest(blind, key), _digest(blind, candidate))


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, hashlib.sha256)
