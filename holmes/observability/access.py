"""Sends read requests to monitoring systems, within limits of time and size.

A response with a redirect is an error, so that credentials reach only the configured address. Proxies come from the
configuration, never from the environment of this process.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import httpx

    from holmes.values.json_types import JsonObject

Method: TypeAlias = Literal["GET", "POST"]
_ERROR_CHARACTERS: Final = 300
_CONNECT_SECONDS: Final = 5.0


class QueryRejectedError(ToolError):
    """The source cannot run a query. The message is the source's own, with the place of an error in its syntax."""


class LoginFailedError(Exception):
    """Credentials cannot be obtained. Shown with the name of the source, so it has the reason and the next step."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why, self.advice = why, advice


class Login(Protocol):
    """Adds credentials to each request to a source. They are obtained when the first request needs them."""

    async def sign(self, request: httpx.Request) -> None:
        """Add the credentials. Raises `LoginFailedError`."""
        ...

    def renews(self, request: httpx.Request) -> bool:
        """Return whether `request`, which the source rejected with 401, can be sent again with other credentials."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The files for TLS. `verify` is false if any certificate of the server is accepted."""

    verify: bool = True
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAccess:
    """The address of a source, and how to log in. `name` identifies the source in messages.

    `present_seconds` is what a source with samples of the past takes for now, in seconds since 1970.
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    login: Login | None = field(default=None, repr=False)
    tls: TlsFiles = TlsFiles()
    proxy: str | None = field(default=None, repr=False)
    timeout_seconds: float = 30.0
    response_bytes: int = 16 * 1024 * 1024
    present_seconds: float | None = None

    @property
    def now(self) -> float:
        return time.time() if self.present_seconds is None else self.present_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The body of a response, with a status that `accepts` allowed."""

    status: int
    body: bytes


class ResponseLines:
    """The lines of a response, read as far as the reader wants them. `is_cut` is true after the limit of its size."""

    def __init__(self, pieces: AsyncIterator[bytes], status: int, limit_bytes: int) -> None:
        self.status = status
        self.is_cut = False
        self._pieces = pieces
        self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, read_bytes = bytearray(), 0
        async for piece in self._pieces:
            read_bytes += len(piece)
            pending += piece
            if b"\n" in piece:
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    yield bytes(line)
            if read_bytes > self._limit_bytes:
                self.is_cut = True
                return
        if pending:
            yield bytes(pending)


@asynccontextmanager
async def open_source(access: SourceAccess) -> AsyncIterator[SourceClient]:
    """Open a connection pool. Raises `ToolError` if a file, a header or the proxy is not valid."""
    async with await asyncio.to_thread(_http_client, access) as http:
        yield SourceClient(access, http)


class SourceClient:
    """Reads from one source. Every error is a `ToolError` with one line: the source, the reason, the next step."""

    def __init__(self, access: SourceAccess, http: httpx.AsyncClient) -> None:
        self.access = access
        self._http = http

    async def read(
        self,
        path: str,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        method: Method = "GET",
        json: JsonObject | None = None,
        accepts: frozenset[int] = frozenset(),
    ) -> Answered:
        """Read `path` below the URL of the source. POST sends the parameters as a form, for queries of any length.

        With `json`, which is sent by POST as well, the parameters are part of the URL. A status other than 2xx is an
        error unless `accepts` contains it. Raises `ToolError` with one line.
        """
        written = list(parameters)
        if json is not None:
            method, sent = "POST", {"params": written, "json": json}
        else:
            sent = {"params": written} if method == "GET" else {"data": _form(written)}
        async with self._response(method, path, sent) as response:
            body = await self._body(response)
        if response.is_success or response.status_code in accepts:
            return Answered(status=response.status_code, body=body)
        raise self._error(*_refusal(response, body))

    @asynccontextmanager
    async def read_lines(
        self, path: str, parameters: Sequence[tuple[str, str]], *, accepts: frozenset[int] = frozenset()
    ) -> AsyncIterator[ResponseLines]:
        """Open a response with one record in each line. The parameters are sent as a form. Errors are those of `read`.

        A reader that has enough leaves the context, which closes the connection.
        """
        async with self._response("POST", path, {"data": _form(parameters)}) as response:
            if not (response.is_success or response.status_code in accepts):
                raise self._error(*_refusal(response, await self._body(response)))
            yield ResponseLines(response.aiter_bytes(65_536), response.status_code, self.access.response_bytes)

    @asynccontextmanager
    async def _response(self, method: Method, path: str, sent: Mapping[str, Any]) -> AsyncIterator[httpx.Response]:
        """Open a response. Errors become `ToolError`, also those that occur while it is read."""
        import httpx

        seconds = self.access.timeout_seconds
        try:
            async with asyncio.timeout(seconds), self._answer(method, path, sent) as response:
                yield response
        except LoginFailedError as error:
            raise self._error(error.why, error.advice) from error
        except TimeoutError as error:
            raise self._error(
                f"no complete response within {seconds:g} s", "request less data, or try again"
            ) from error
        except httpx.InvalidURL as error:
            raise self._error(f"the URL is not valid ({error})", "correct it") from error
        except (httpx.TransportError, ssl.SSLError) as error:
            raise self._error(*_why(error)) from error
        except httpx.DecodingError as error:
            raise self._error("the response is damaged", "check the address and proxies") from error

    @asynccontextmanager
    async def _answer(self, method: Method, path: str, sent: Mapping[str, Any]) -> AsyncIterator[httpx.Response]:
        """Send a request, and send it again if the source rejects credentials that can be replaced."""
        login = self.access.login
        for is_last in (login is None, True):
            request = self._http.build_request(method, f"{self.access.url.rstrip('/')}{path}", **sent)
            if login is not None:
                await login.sign(request)
            response = await self._http.send(request, stream=True)
            try:
                if is_last or response.status_code != 401 or login is None or not login.renews(request):
                    yield response
                    return
            finally:
                await response.aclose()

    async def _body(self, response: httpx.Response) -> bytes:
        body, limit = bytearray(), self.access.response_bytes
        async for piece in response.aiter_bytes(65_536):
            body += piece
            if len(body) > limit:
                raise self._error(
                    f"the response is larger than {limit // 1_048_576} MiB",
                    "request less, for example a shorter range",
                )
        return bytes(body)

    def _error(self, why: str, advice: str) -> ToolError:
        return _error(self.access, why, advice)


def _http_client(access: SourceAccess) -> httpx.AsyncClient:
    # This entry refuses the import of httpx's own command line, which is slow.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    import httpx

    headers = {"User-Agent": "holmes", "Accept": "application/json", **access.headers}
    if access.bearer_token is not None:
        headers["Authorization"] = f"Bearer {access.bearer_token}"
    login = None if access.username is None else httpx.BasicAuth(access.username, access.password or "")
    try:
        return httpx.AsyncClient(
            auth=login,
            headers=headers,
            verify=_verification(access),
            proxy=access.proxy,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(access.timeout_seconds, connect=min(_CONNECT_SECONDS, access.timeout_seconds)),
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        raise _error(access, f"a header or the proxy is not valid ({type(error).__name__})", "correct it") from error


def _verification(access: SourceAccess) -> ssl.SSLContext | bool:
    if not access.url.startswith("https"):
        return False
    try:
        return tls_context(access.tls)
    except OSError as error:
        raise _error(access, f"a certificate file cannot be read ({error})", "correct the path or the file") from error


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a client. Raises `OSError` (also `ssl.SSLError`) if a file cannot be used."""
    context = ssl.create_default_context(cafile=files.authority)
    if files.certificate is not None:
        # An encrypted key must fail, not prompt.
        context.load_cert_chain(files.certificate, files.key, password="")
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _error(access: SourceAccess, why: str, advice: str) -> ToolError:
    return ToolError(f"{access.name} ({_address(access.url)}): {why}; {advice}")


def _form(parameters: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    form: dict[str, list[str]] = {}
    for name, value in parameters:
        form.setdefault(name, []).append(value)
    return form


def _address(url: str) -> str:
    """Return the URL without a password, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def _refusal(response: httpx.Response, body: bytes) -> tuple[str, str]:
    """Return why the source rejected the request, and the next step."""
    status = response.status_code
    if response.is_redirect:
        target = _address(response.headers.get("location", ""))
        return f"redirects to {target!r}, which is not followed", "configure the final address"
    if status in {401, 403}:
        return f"the credentials are rejected (HTTP {status})", "check the token, user name or tenant header"
    if status == 404:
        return "HTTP 404: the API is not found at this address", "check the path of the configured URL"
    if status == 429:
        return "too many requests (HTTP 429)", "try again later"
    text = " ".join(body[: 4 * _ERROR_CHARACTERS].decode("utf-8", "replace").split())[:_ERROR_CHARACTERS]
    return f"HTTP {status}{f': {text}' if text else ''}", "check the source and its log"


def network_fault(error: BaseException) -> tuple[str, str] | None:
    """Return why a connection failed, and the next step, or None if neither DNS, TCP nor TLS is the cause.

    The causes of `error` are searched for exceptions of the standard library, so that any HTTP library will do.
    """
    cause = _root_cause(error)
    match cause:
        case ssl.SSLCertVerificationError():
            return f"the TLS certificate is not trusted ({cause})", "check the CA file"
        case ssl.SSLError():
            return f"TLS failed ({cause})", "check the address, the protocol and the certificates"
        case socket.gaierror():
            return "the host name cannot be resolved", "check the address and DNS"
        case ConnectionRefusedError():
            return "the connection is refused", "check the address, and start the source"
        case _:
            return None


def _root_cause(error: BaseException) -> BaseException:
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return error


def _why(error: Exception) -> tuple[str, str]:
    """Return why a request failed, and the next step."""
    import httpx

    known: tuple[tuple[type[BaseException], str, str], ...] = (
        (httpx.TimeoutException, "no response", "check the address, the network and firewalls"),
        (httpx.ProxyError, f"the proxy failed ({error})", "check the proxy"),
        (httpx.UnsupportedProtocol, "the URL must begin with http:// or https://", "correct it"),
    )
    for kind, why, advice in known:
        if isinstance(error, kind):
            return why, advice
    other = f"the connection failed ({type(_root_cause(error)).__name__})", "check the network and the source"
    return network_fault(error) or other
