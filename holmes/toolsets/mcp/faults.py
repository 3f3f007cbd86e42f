"""Explains in one line why an MCP server cannot be used, and the next step."""

from __future__ import annotations

import os
import re
import shlex
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit

from holmes.observability.access import network_fault
from holmes.toolsets.mcp.servers import ProcessEndpoint
from holmes.values.errors import ToolError
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx2

    from holmes.toolsets.mcp.servers import HttpEndpoint, Login, McpServer

_CHARACTERS: Final = 300
_LAST_WORDS_BYTES: Final = 4_096
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,80}")
"""The characters of a scope in RFC 6749."""
_MOST_SCOPES: Final = 10
RENEWED: Final = "holmes_renewed"
"""Extension of a request: the function that tells whether a response makes it be sent again with another token."""
WHY_NOT_WIDER: Final = "holmes_why_not_wider"
"""Extension of a request: why no token with the scopes that it lacks was issued."""


class LoginRequiredError(Exception):
    """The server requires tokens of a person, and no person has logged in."""


class AuthorizationError(Exception):
    """No token could be obtained, for the reason `why`. `advice` is the next step."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why = why
        self.advice = advice


def fault(server: McpServer, why: str, advice: str) -> ToolError:
    """Return the error of a server: its name and host, the reason and the next step, in one line.

    The path of a URL may be a secret.
    """
    endpoint = server.endpoint
    place = "" if isinstance(endpoint, ProcessEndpoint) else f" ({_host(endpoint.url)})"
    return ToolError(f"MCP server {server.name!r}{place}: {excerpt(' '.join(why.split()), _CHARACTERS)}; {advice}")


REFUSED: Final[ContextVar[list[httpx2.Response] | None]] = ContextVar("holmes_refused", default=None)
"""The refused messages of one call. The SDK sends each message in the context of its caller."""


class Trail:
    """Details of a failed connection that its exceptions lack.

    These are standard error, the last refused request, and why no token could be obtained. `lost` is called when the
    connection cannot be used any more, which the SDK does not notice.
    """

    def __init__(self, errors: IO[str], lost: Callable[[], None]) -> None:
        self.errors = errors
        self.lost = lost
        self.refused: httpx2.Response | None = None
        self.unauthorized: Exception | None = None

    def refuse(self, response: httpx2.Response) -> bool:
        """Remember a refused message, and return true, unless the message is sent again with another token."""
        renews = response.request.extensions.get(RENEWED)
        if renews is not None and renews(response):
            return False
        self.refused = response
        refused = REFUSED.get()
        if refused is not None:
            refused.append(response)
        return True

    def last_words(self) -> str:
        """Return the last line that a local process wrote to standard error."""
        size = os.fstat(self.errors.fileno()).st_size
        self.errors.seek(max(0, size - _LAST_WORDS_BYTES))
        lines = [line for line in self.errors.read().splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def _host(url: str) -> str:
    """Return the scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def fault_of(server: McpServer, error: BaseException, trail: Trail) -> ToolError:
    """Explain an exception of the connection."""
    endpoint = server.endpoint
    known = list(_causes(trail.unauthorized or error))
    if isinstance(endpoint, ProcessEndpoint):
        return fault(server, *_process_fault(endpoint, known, trail.last_words()))
    return fault(server, *_http_fault(server, endpoint, known, trail.refused))


def _process_fault(endpoint: ProcessEndpoint, known: list[BaseException], last_words: str) -> tuple[str, str]:
    for each in known:
        if isinstance(each, FileNotFoundError):
            return f"the program {endpoint.command!r} is not found", "install it, or correct command"
        if isinstance(each, PermissionError):
            return f"the program {endpoint.command!r} is not executable", "correct its permissions"
    words = f" and wrote: {last_words}" if last_words else f" ({_words(known)})"
    return f"the process {endpoint.command!r} ended or does not speak MCP{words}", "check command and args"


def _http_fault(
    server: McpServer, endpoint: HttpEndpoint, known: list[BaseException], refused: httpx2.Response | None
) -> tuple[str, str]:
    import httpx2

    explained: tuple[tuple[type[BaseException], str, str], ...] = (
        (LoginRequiredError, "it requires a login", f"run `holmes toolset login {server.name}`"),
        (httpx2.TimeoutException, "no response", "check the address, the network and firewalls"),
        (httpx2.ProxyError, "the proxy failed ({})", "check the proxy"),
    )
    for each in known:
        if isinstance(each, AuthorizationError):
            return each.why, each.advice
    for kind, why, advice in explained:
        for each in known:
            if isinstance(each, kind):
                return why.format(each), advice
    if refused is not None:
        return _status_fault(server, endpoint, refused)
    network = next((found for each in known if (found := network_fault(each))), None)
    return network or (_words(known), f"check the URL, its path, and mode (now {endpoint.mode})")


def missing_scopes(response: httpx2.Response) -> tuple[str, ...] | None:
    """Return the scopes that a response demands of the token, which can be empty, or None if it demands none."""
    from mcp.client.auth.utils import extract_field_from_www_auth

    if response.status_code != 403 or extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    words = (extract_field_from_www_auth(response, "scope") or "").split()
    return tuple(word for word in words if _SCOPE.fullmatch(word))[:_MOST_SCOPES]


def _scope_fault(server: McpServer, login: Login | None, response: httpx2.Response) -> tuple[str, str]:
    missing = missing_scopes(response) or ()
    named = (
        f"lacks a scope that it requires: {' '.join(missing)}" if missing else "lacks a scope, which it does not name"
    )
    if login is None:
        return f"the token in headers {named}", "use a token with this scope"
    if login.scopes:
        return f"the token {named}", "add it to oauth.scopes" + (f", and run `{_login(server)}`" * login.is_person)
    if not login.is_person:
        why = response.request.extensions.get(WHY_NOT_WIDER) or "the authorization server does not grant it"
        return f"the token {named} ({why})", f"grant it to the client {login.client_id!r}"
    return f"the token {named}", f"run `{_login(server, missing)}`"


def _login(server: McpServer, scopes: tuple[str, ...] = ()) -> str:
    # The server chose the words, and a person will paste the line.
    return shlex.join(("holmes", "toolset", "login", server.name, *(f"--scope={each}" for each in scopes)))


def _status_fault(server: McpServer, endpoint: HttpEndpoint, response: httpx2.Response) -> tuple[str, str]:
    status = response.status_code
    if missing_scopes(response) is not None:
        return _scope_fault(server, endpoint.login, response)
    if status in {401, 403}:
        advice = "check headers or oauth"
        if endpoint.passed:
            advice += f"; {', '.join(endpoint.passed)} is sent only for an HTTP request, which nothing has sent here"
        return f"the credentials are rejected (HTTP {status})", advice
    if response.has_redirect_location:
        return "it redirects to another address, which is not followed", "configure that address"
    if 400 <= status < 500 and status != 429:
        why = f"HTTP {status}: MCP with mode {endpoint.mode} is not served at this address"
        return why, "check the URL, its path, and mode (sse or streamable-http)"
    return f"HTTP {status}", "check the server and its log"


def _words(known: list[BaseException]) -> str:
    texts = [" ".join(str(each).split()) for each in known]
    return next((text for text in texts if text), type(known[0]).__name__ if known else "the connection failed")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions inside groups with their causes, outermost first, groups themselves left out."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
        return
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__
