"""The headers of the HTTP request that a run answers. Toolsets may pass some of them to other servers.

They exist as long as the run. Nothing stores, logs or shows them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

_WITHHELD: Final = frozenset({"authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"})
"""They hold the key of this server, or a login to it."""


def is_withheld(name: str) -> bool:
    """Return whether the header `name` is never passed on, because it may hold the key of this server."""
    return name.lower() in _WITHHELD


class RequestHeaders:
    """The headers of one request, without those that are never passed on. Names ignore case."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {name.lower(): value for name, value in headers.items() if not is_withheld(name)}
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def get(self, name: str) -> str | None:
        return self._headers.get(name.lower())

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` when the run ends, for what was opened with these headers."""
        self._closers.append(close)

    async def aclose(self) -> None:
        """Forget the headers, and close what was opened with them."""
        self._headers.clear()
        while self._closers:
            await self._closers.pop()()


_CURRENT: ContextVar[RequestHeaders | None] = ContextVar("holmes_request_headers", default=None)


def current_headers() -> RequestHeaders | None:
    """Return the headers of the request that the current run answers, or None if no request began it."""
    return _CURRENT.get()


@asynccontextmanager
async def answering(headers: RequestHeaders) -> AsyncIterator[None]:
    """Make `headers` those of the run inside this context, which begins and ends in one task."""
    token = _CURRENT.set(headers)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        await headers.aclose()
