"""Answers HEAD for the page and the probes as GET without a body, for uptime monitors. The innermost ASGI layer.

Leaves `/api` and `/metrics` alone: a stream has no end that one could wait for, and no client asks them so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OTHERS: Final = ("/api/", "/metrics", "/openapi.json")


class HeadAsGet:
    """Asks the routes for GET, and keeps the bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(_OTHERS):
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        scope["method"] = "GET"  # not in a copy: the layers outside read the route from it
        try:
            await self._app(scope, receive, send_without_body)
        finally:
            scope["method"] = "HEAD"
