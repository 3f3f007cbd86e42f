"""Reads the body of each request before anything else does, within limits. An ASGI layer of the application.

Refuses what is too large (413, counted while it arrives), too slow (408) or nested too deeply (400). Who brings no key
is allowed little, since nobody should have to keep megabytes of strangers.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from holmes.server.errors import ApiError, error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holmes.server.security import Keys

MAX_JSON_DEPTH: Final = 64
_STRANGERS_BYTES: Final = 64_000
_SECONDS: Final = 60.0
_OFF_LOOP_BYTES: Final = 200_000
# The closing quote is optional, so that every match succeeds and a broken text costs no more than a good one.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class BoundedBodies:
    """Hands over whole bodies of at most `max_bytes`."""

    def __init__(self, app: ASGIApp, keys: Keys, max_bytes: int) -> None:
        self._app = app
        self._keys = keys
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = self._max_bytes if self._keys.admits(headers) else min(_STRANGERS_BYTES, self._max_bytes)
        try:
            body = await _read(receive, headers, limit)
            if body is None:
                return  # the client went away
            await _check_depth(body, headers)
        except ApiError as error:
            await error_response(error)(scope, receive, send)
            return
        first: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def replay() -> Message:
            nonlocal first
            if first is None:
                return await receive()
            message, first = first, None
            return message

        await self._app(scope, replay, send)


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def _read(receive: Receive, headers: Headers, limit: int) -> bytes | None:
    """The whole body; None when the client went away."""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _too_large(limit)
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {_SECONDS:.0f} seconds") from None


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"the body is larger than {limit:,} bytes", headers={"Connection": "close"})


async def _check_depth(body: bytes, headers: Headers) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (kind == "application/json" or kind.endswith("+json")):
        return
    depth = await asyncio.to_thread(json_depth, body) if len(body) > _OFF_LOOP_BYTES else json_depth(body)
    if depth > MAX_JSON_DEPTH:
        raise ApiError(400, f"the JSON is nested more than {MAX_JSON_DEPTH} levels deep")


def json_depth(body: bytes) -> int:
    """How deeply `body` is nested, or a bound of it; what is no JSON gets some number."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MAX_JSON_DEPTH:
        return opened
    deepest = depth = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
