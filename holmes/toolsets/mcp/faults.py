"""Explains in one line why an MCP server cannot be used, and the next step."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit

from holmes.observability.access import network_fault
from holmes.toolsets.mcp.servers import ProcessEndpoint
from holmes.values.errors import ToolError
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from holmes.toolsets.mcp.servers import HttpEndpoint, McpServer

_CHARACTERS: Final = 300
_LAST_WORDS_BYTES: Final = 4_096
RENEWED: Final = "holmes_renewed"
"""Extension of a request that is sent again with a new token if HTTP 401 comes back."""


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


class Trail:
    """Details of a failed connection that its exceptions lack.

    These are standard error, the last refused request, and why no token could be obtained.
    """

    def __init__(self, errors: IO[str]) -> None:
        self.errors = errors
        self.refused: httpx2.Response | None = None
        self.refusals = 0
        self.unauthorized: Exception | None = None

    def refuse(self, response: httpx2.Response) -> None:
        if response.status_code == 401 and RENEWED in response.request.extensions:
            return
        self.refused = response
        self.refusals += 1

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
        return _status_fault(endpoint, refused)
    network = next((found for each in known if (found := network_fault(each))), None)
    return network or (_words(known), f"check the URL, its path, and mode (now {endpoint.mode})")


def _status_fault(endpoint: HttpEndpoint, response: httpx2.Response) -> tuple[str, str]:
    status = response.status_code
    if status in {401, 403}:
        return f"the credentials are rejected (HTTP {status})", "check headers or oauth"
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
