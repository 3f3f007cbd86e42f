"""Logs a person in to an MCP server: shows the login page, and waits until the browser comes back.

The browser returns to an address of this machine. If it runs on another machine, that page cannot be opened there, and
the person pastes its address into the terminal.
"""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult

from holmes.toolsets.mcp.faults import fault
from holmes.toolsets.mcp.oauth import Browser
from holmes.toolsets.mcp.servers import HttpEndpoint
from holmes.toolsets.mcp.session import McpSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from holmes.toolsets.mcp.servers import McpServer
    from holmes.toolsets.mcp.session import Listing
    from holmes.values.environment import Environment

_PATH: Final = "/callback"
_PAGE: Final = "<!doctype html><title>Holmes</title><p>{} You can close this page and return to the terminal.</p>"
_WAIT_SECONDS: Final = 300.0


async def log_in(
    server: McpServer, environment: Environment, *, folder: Path, say: Callable[[str], None], opens_browser: bool
) -> Listing:
    """Log in, store the tokens in `folder`, and return what the server offers.

    `say` prints lines for the person. Raises `ToolError` after five minutes, or if the server refuses.
    """
    waiting = replace(server, call_seconds=_WAIT_SECONDS)
    async with _listening(server) as (url, answer):

        async def show(address: str) -> None:
            say(f"Open this page to log in to {server.name!r}:\n\n  {address}\n")
            say(f"If the browser runs on another machine, paste the address on which it ends here ({url}?code=...).")
            if opens_browser:
                await asyncio.to_thread(webbrowser.open, address)

        async def returned() -> AuthorizationCodeResult:
            return await asyncio.shield(answer)

        browser = Browser(redirect_url=url, show=show, returned=returned)
        session = McpSession(waiting, environment, tokens=folder, browser=browser)
        try:
            return await session.listing()
        finally:
            await session.aclose()


@asynccontextmanager
async def _listening(server: McpServer) -> AsyncIterator[tuple[str, asyncio.Future[AuthorizationCodeResult]]]:
    """Serve the redirect address on loopback, and read a pasted address from the terminal. Raises `ToolError`."""
    login = server.endpoint.login if isinstance(server.endpoint, HttpEndpoint) else None
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    def settle(target: str) -> str:
        """Take the address on which the browser ended, and return what to tell the person."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if answer.done() or not {"code", "error"} & given.keys():
            return "This is not the page of a login."
        if "code" in given:
            answer.set_result(
                AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
            )
            return "Holmes is logged in."
        why = given.get("error_description") or given["error"]
        answer.set_exception(fault(server, f"the login was refused ({why})", "run the command again"))
        return "The login was refused."

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            words = (await reader.readuntil(b"\r\n")).decode("latin-1").split()
            told = settle(words[1]) if len(words) == 3 and words[1].startswith(_PATH) else "Nothing is here."
            page = _PAGE.format(told).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + page)
            await writer.drain()
        writer.close()

    try:
        listener = await asyncio.start_server(respond, "127.0.0.1", (login.redirect_port if login else None) or 0)
    except OSError as error:
        raise fault(
            server, f"the redirect address cannot be used ({error.strerror})", "change redirect_port"
        ) from error
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        with _pasted(settle):
            yield f"http://127.0.0.1:{port}{_PATH}", answer


@contextmanager
def _pasted(settle: Callable[[str], str]) -> Iterator[None]:
    """Read lines from the terminal, if there is one."""
    loop = asyncio.get_running_loop()
    if not sys.stdin.isatty():
        yield
        return
    loop.add_reader(sys.stdin, lambda: settle(sys.stdin.readline().strip()))
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)
