"""Logs a person in to an MCP server: shows the login page, and waits until the browser comes back.

The browser returns to an address of this machine. If it runs on another machine, that page cannot be opened there, and
the person pastes its address into the terminal.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import webbrowser
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult

from holmes.toolsets.mcp.faults import AuthorizationError, fault
from holmes.toolsets.mcp.oauth import Browser
from holmes.toolsets.mcp.servers import HttpEndpoint
from holmes.toolsets.mcp.session import McpSession
from holmes.toolsets.mcp.tokens import check_folder, read_stored, token_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from holmes.toolsets.mcp.servers import Login, McpServer
    from holmes.toolsets.mcp.session import Listing
    from holmes.values.environment import Environment

_PATH: Final = "/callback"
_PAGE: Final = "<!doctype html><title>Holmes</title><p>{} You can close this page and return to the terminal."
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
_WAIT_SECONDS: Final = 300.0
_LISTING_SECONDS: Final = 60.0
_AGAIN: Final = "run the command again"


async def log_in(
    server: McpServer,
    environment: Environment,
    *,
    folder: Path,
    say: Callable[[str], None],
    opens_browser: bool,
    scopes: tuple[str, ...] = (),
) -> Listing:
    """Log in, store the tokens in `folder`, and return what the server offers.

    `say` prints lines for the person. With `scopes`, the login also gives these, and keeps those of the login before.
    Raises `ToolError` after five minutes, or if the server refuses.
    """
    endpoint, login = _login_of(server)
    if scopes:
        stored = read_stored(token_path(folder, server, endpoint))
        before = stored.tokens.scope if stored is not None and stored.tokens is not None else None
        login = replace(login, added_scopes=(*(before or "").split(), *scopes))
        server = replace(server, endpoint=replace(endpoint, login=login))
    try:
        check_folder(folder)
    except AuthorizationError as error:
        raise fault(server, error.why, error.advice) from error
    visit = _Visit(server, say, opens_browser)
    waiting = replace(server, call_seconds=_WAIT_SECONDS + _LISTING_SECONDS)
    async with _listening(server, login, visit) as url:
        browser = Browser(redirect_url=url, show=visit.show, returned=visit.returned)
        session = McpSession(waiting, environment, tokens=folder, browser=browser)
        try:
            listing = await session.listing()
        finally:
            await session.aclose()
    if not visit.is_shown:
        raise fault(server, "it does not ask for a login", "remove oauth")
    return listing


def _login_of(server: McpServer) -> tuple[HttpEndpoint, Login]:
    endpoint = server.endpoint
    login = endpoint.login if isinstance(endpoint, HttpEndpoint) else None
    if not isinstance(endpoint, HttpEndpoint) or login is None:
        raise fault(server, "oauth is not configured", "configure oauth if the server requires it")
    if not login.is_person:
        raise fault(server, "it is used with client_credentials, without a login", "run `holmes toolset list`")
    return endpoint, login


@dataclass(slots=True)
class _Visit:
    """One visit of the login page, from its address to the address of this machine on which the browser ends."""

    server: McpServer
    say: Callable[[str], None]
    opens_browser: bool
    _state: str | None = None
    _answer: asyncio.Future[AuthorizationCodeResult | AuthorizationError] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def is_shown(self) -> bool:
        return self._state is not None

    async def show(self, address: str) -> None:
        if self.is_shown:
            raise AuthorizationError("it asks for a second login at once", "check the server and its log")
        self._state = _parameters(address).get("state", "")
        self.say(f"Open this page to log in to {self.server.name!r}:\n\n  {address}\n")
        if _has_terminal():
            self.say("If the browser runs on another machine, paste the address on which it ends here:")
        if self.opens_browser:
            # Some browsers keep this call until they are closed.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    async def returned(self) -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                answer = await asyncio.shield(self._answer)
        except TimeoutError:
            answer = AuthorizationError(f"no login within {_WAIT_SECONDS:g} s", _AGAIN)
        if isinstance(answer, AuthorizationError):
            raise answer
        return answer

    def settle(self, target: str) -> str:
        """Take the address on which the browser ended, and return what to tell the person."""
        given = _parameters(target)
        if self._answer.done() or not self.is_shown or not {"code", "error"} & given.keys():
            return "This is not the address on which a login ends."
        if given.get("state") != self._state:
            # Any page in the browser can open this address, so the login must not end.
            return "This is the address of another login (wrong state)."
        if "code" in given:
            answer = AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given.get("iss"))
            self._answer.set_result(answer)
            return "Holmes received the login."
        why = ": ".join(given[name] for name in ("error", "error_description") if name in given)
        self._answer.set_result(AuthorizationError(f"the login was refused ({why})", _AGAIN))
        return "The login was refused."

    def refuse(self, target: str) -> str:
        """Settle, and also say at the terminal if the address is not accepted."""
        told = self.settle(target)
        if told.startswith("This is"):
            self.say(told)
        return told


def _parameters(address: str) -> dict[str, str]:
    try:
        return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    except ValueError:
        return {}


@asynccontextmanager
async def _listening(server: McpServer, login: Login, visit: _Visit) -> AsyncIterator[str]:
    """Serve the redirect address on loopback, and read a pasted address from the terminal. Raises `ToolError`."""
    responding: set[asyncio.Task[None] | None] = set()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        responding.add(asyncio.current_task())
        try:
            # Cancelling ends it silently, as older versions of Python print an exception of such a task.
            with suppress(OSError, ValueError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
                words = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")[0].split()
                is_ours = len(words) == 3 and urlsplit(words[1]).path == _PATH
                writer.write(_HEAD + _PAGE.format(visit.refuse(words[1]) if is_ours else "Nothing is here.").encode())
                await writer.drain()
        finally:
            responding.discard(asyncio.current_task())
            writer.close()

    try:
        listener = await asyncio.start_server(respond, "127.0.0.1", login.redirect_port or 0)
    except OSError as error:
        why = f"the redirect address cannot be used ({error.strerror})"
        raise fault(server, why, "change redirect_port, or end the other process") from error
    try:
        with _pasted(visit):
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{_PATH}"
    finally:
        listener.close()
        # Browsers open connections that they do not use.
        for task in filter(None, tuple(responding)):
            task.cancel()


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def _pasted(visit: _Visit) -> Iterator[None]:
    """Read lines from the terminal, if there is one."""
    if not _has_terminal():
        yield
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = sys.stdin.readline()
        if not line:
            loop.remove_reader(sys.stdin)
        elif line.strip():
            visit.refuse(line.strip())

    loop.add_reader(sys.stdin, read)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)
