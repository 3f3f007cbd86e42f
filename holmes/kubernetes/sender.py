"""Sends GET requests to the API server with credentials, limits and retries.

No other module sends requests to the API server, and no other HTTP method is possible. Responses other than 2xx become
errors.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from holmes.kubernetes.errors import ApiPath, ReadCutOff, Throttled, error_of_answer
from holmes.kubernetes.transport import connection_error, open_http_client
from holmes.values.errors import ClusterUnreachable, HolmesError, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

    import httpx

    from holmes.kubernetes.credentials import Credentials, CredentialSource
    from holmes.kubernetes.kubeconfig import ClusterAccess
    from holmes.values.environment import Environment

T = TypeVar("T")

_PAUSES_SECONDS = (0.25, 0.5, 1.0)
_LONGEST_PAUSE_SECONDS = 10.0
_RETRYABLE = frozenset({429, 500, 502, 503, 504})
_ERROR_BODY_LIMIT_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The limits of the client. `response_bytes` is the maximum size of a decompressed response."""

    concurrent_requests: int = 8
    request_timeout_seconds: float = 30.0
    response_bytes: int = 64 * 1024 * 1024
    page_size: int = 500


class _Again(Exception):
    """The attempt failed, but a retry may succeed. `pause_seconds` is the pause that the server requested."""

    def __init__(self, final: HolmesError, pause_seconds: float | None = None) -> None:
        super().__init__(str(final))
        self.final = final
        self.pause_seconds = pause_seconds


class RequestSender:
    def __init__(
        self, access: ClusterAccess, credentials: CredentialSource, environment: Environment, limits: ClientLimits
    ) -> None:
        self._access = access
        self._credentials = credentials
        self._environment = environment
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.concurrent_requests)
        self._opening = asyncio.Lock()
        self._http: httpx.AsyncClient | None = None
        self._shown: tuple[bytes | None, bytes | None] = (None, None)
        self._retired: list[httpx.AsyncClient] = []
        self.last_headers: Mapping[str, str] = {}
        """Headers of the last response."""

        self.rejections = 0
        """The number of requests that the server rejected because of too much load."""

        self.connected = False
        """True after a connection to the server, or to its proxy, was established."""

    async def close(self) -> None:
        for client in (*self._retired, self._http):
            if client is not None:
                await client.aclose()
        self._retired.clear()
        self._http = None

    async def prepare(self) -> None:
        """Load the HTTP client, the credentials and the certificates, without a request."""
        await self._client(await self._credentials.current())

    async def read(self, path: str, params: Mapping[str, str], accept: str = "") -> bytes:
        """Read the complete body of a response, optionally in the media type `accept`.

        Raises `ClusterUnreachable` if the server does not respond, `ApiError` for a status other than 2xx, and
        `ToolError` if the response is too large. An incomplete response is requested again.
        """
        timeout_seconds, failures = self._limits.request_timeout_seconds, list[_Again]()
        async with self._slots:
            try:
                async with asyncio.timeout(timeout_seconds):
                    return await self._with_patience(lambda: self._read_once(path, params, accept), failures)
            except TimeoutError as error:
                if failures:
                    raise failures[-1].final from error
                why = f"GET {path} did not complete within {timeout_seconds:g} s"
                raise self._access.unreachable(why, "request less data, or try again later") from error

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the body in chunks. Reading raises `ReadCutOff` if the body ends early or the server stops sending."""
        async with self._slots:
            response = await self._with_patience(lambda: self._open(path, params), [])
            pieces = self._pieces(path, response)
            try:
                yield pieces
            finally:
                await pieces.aclose()
                await response.aclose()

    async def _pieces(self, path: str, response: httpx.Response) -> AsyncGenerator[bytes]:
        import httpx

        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx.TimeoutException as error:
            raise ReadCutOff(f"GET {path}: the API server stopped sending before the response was complete") from error
        except (httpx.TransportError, ssl.SSLError) as error:
            raise ReadCutOff(f"GET {path}: the connection ended before the response was complete") from error
        except httpx.DecodingError as error:
            raise ReadCutOff(f"GET {path}: the response does not match its content encoding ({error})") from error

    async def _with_patience(self, attempt: Callable[[], Awaitable[T]], failures: list[_Again]) -> T:
        """Return the result of the first successful attempt. `failures` collects the failed attempts.

        A caller with a timeout can then raise the last failure.
        """
        for pause_seconds in _PAUSES_SECONDS:
            try:
                return await attempt()
            except _Again as again:
                failures.append(again)
                wished = again.pause_seconds
                jittered = pause_seconds * random.uniform(0.8, 1.2)  # noqa: S311  spreads the load, not used for security
                await asyncio.sleep(min(wished, _LONGEST_PAUSE_SECONDS) if wished is not None else jittered)
        try:
            return await attempt()
        except _Again as again:
            raise again.final from again

    async def _read_once(self, path: str, params: Mapping[str, str], accept: str) -> bytes:
        response = await self._open(path, params, accept)
        body = bytearray()
        try:
            async for piece in self._pieces(path, response):
                body += piece
                if len(body) > self._limits.response_bytes:
                    parts = ApiPath.parse(path)
                    raise ToolError(
                        f"{parts.verb} {parts.kind_of_thing or path}: the response is larger than "
                        f"{self._limits.response_bytes:,} bytes; request one namespace or use a label selector"
                    )
        except ReadCutOff as error:
            raise _Again(error) from error
        finally:
            await response.aclose()
        return bytes(body)

    async def _open(self, path: str, params: Mapping[str, str], accept: str = "") -> httpx.Response:
        """Send a request and return a successful response with an unread body.

        If the server rejects the credentials, they are renewed once and the request is repeated.
        """
        credentials = await self._credentials.current()
        response = await self._send(path, params, credentials, accept)
        if response.status_code == 401:
            await response.aclose()
            credentials = await self._credentials.renewed(credentials)
            response = await self._send(path, params, credentials, accept)
        self.last_headers = response.headers
        if response.is_success:
            return response
        try:
            raise await self._refusal(path, response)
        finally:
            await response.aclose()

    async def _send(
        self, path: str, params: Mapping[str, str], credentials: Credentials, accept: str
    ) -> httpx.Response:
        client = await self._client(credentials)  # imports httpx in a thread
        import httpx

        secret = credentials.authorization or ""
        if not (secret.isascii() and secret.isprintable()):
            why = "the token or password contains a line break or another character that HTTP does not allow"
            raise self._access.unreachable(why, "correct it in the kubeconfig, or log in again")
        headers = [(name.encode(), value.encode()) for name, value in self._access.user.impersonation]
        if secret:
            headers.append((b"Authorization", secret.encode()))
        if accept:
            headers.append((b"Accept", accept.encode()))
        request = client.build_request("GET", path, params=dict(params), headers=headers)
        if self._access.cluster.tls_server_name:
            request.extensions["sni_hostname"] = self._access.cluster.tls_server_name
        if not self.connected:
            request.extensions["trace"] = self._note_connection
        try:
            return await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.TimeoutException, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            final = connection_error(self._access, error)
            if self.connected and isinstance(error, httpx.ConnectTimeout):  # the server is there: one of them is busy
                raise _Again(final) from error
            raise final from error
        except ssl.SSLError as error:  # the server rejected the client certificate after the handshake
            raise connection_error(self._access, error) from error
        except httpx.TransportError as error:
            raise _Again(connection_error(self._access, error)) from error

    async def _note_connection(self, event: str, _: object) -> None:
        """Note that the connection exists. The HTTP client calls this method for each step of a request."""
        self.connected = self.connected or event.endswith("send_request_headers.complete")

    async def _refusal(self, path: str, response: httpx.Response) -> HolmesError | _Again:
        body = bytearray()
        async for piece in self._pieces(path, response):
            body += piece
            if len(body) > _ERROR_BODY_LIMIT_BYTES:
                break
        if response.status_code == 401:
            return self._unauthorized()
        error = error_of_answer(path, response.status_code, bytes(body[:_ERROR_BODY_LIMIT_BYTES]))
        self.rejections += isinstance(error, Throttled)
        if response.status_code in _RETRYABLE:
            return _Again(error, _retry_after_seconds(response.headers.get("Retry-After")))
        return error

    def _unauthorized(self) -> ClusterUnreachable:
        user = self._access.user.name
        who = f"the credentials of user {user!r}" if user else "requests without credentials"
        return self._access.unreachable(
            f"the server does not accept {who} (401 Unauthorized)", "log in to the cluster again"
        )

    async def _client(self, credentials: Credentials) -> httpx.AsyncClient:
        """Return an HTTP client with the certificate of `credentials`.

        Opens a new client if the certificate changed.
        """
        shown = (credentials.certificate, credentials.key)
        async with self._opening:
            if self._http is not None and shown == self._shown:
                return self._http
            fresh = await asyncio.to_thread(open_http_client, self._access, credentials, self._environment)
            if self._http is not None:
                self._retired.append(self._http)  # other requests may still use the old client
            self._http, self._shown = fresh, shown
            return fresh


def _retry_after_seconds(header: str | None) -> float | None:
    """Return the wait that a `Retry-After` header requests, in seconds.

    Returns None if the header contains neither a number of seconds nor an HTTP date.
    """
    if header is None:
        return None
    if header.isascii() and header.strip().isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
