"""ASGI layer that reads the body of each request, within limits, before the application runs.

Rejects bodies that are too large (413), arrive too slowly (408), are nested too deeply or are not UTF-8 (400). Bytes
are counted while they arrive. Requests without a valid key have lower limits, so that unknown clients cannot exhaust
the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
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
_STRANGERS_SECONDS: Final = 20.0
_DROPPED_BYTES: Final = 64_000_000
"""Maximum number of bytes that are read from a rejected body and dropped.

Some clients read the error only after they have sent the whole body.
"""
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_OFF_LOOP_BYTES: Final = 200_000
# The closing quote is optional, so that malformed text causes no backtracking.
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


class BoundedBodies:
    """Passes only complete bodies of at most `max_bytes` to the application."""

    def __init__(self, app: ASGIApp, keys: Keys, max_bytes: int, strangers_seconds: float = _STRANGERS_SECONDS) -> None:
        self._app = app
        self._keys = keys
        self._max_bytes = max_bytes
        self._strangers_seconds = strangers_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        known = self._keys.admits(headers)
        limit = self._max_bytes if known else min(_STRANGERS_BYTES, self._max_bytes)
        arriving = Arriving(receive, _SECONDS if known else self._strangers_seconds)
        try:
            body = await _read(arriving, headers, limit)
            if body is None:
                return  # the client disconnected
            await _check_json(body, headers)
        except ApiError as error:
            await arriving.refuse(error, scope, send)
            return
        first: Message | None = {"type": "http.request", "body": body, "more_body": False}

        async def replay() -> Message:
            nonlocal first
            if first is None:
                return await receive()
            message, first = first, None
            return message

        await self._app(scope, replay, send)


class Arriving:
    """The body of a request, which must arrive within `seconds`."""

    def __init__(self, receive: Receive, seconds: float = _STRANGERS_SECONDS) -> None:
        self._receive = receive
        self._has_ended = False
        self._deadline = asyncio.get_running_loop().time() + seconds
        self.seconds = seconds

    def in_time(self) -> asyncio.Timeout:
        """Create a timeout that expires when the body must be complete."""
        return asyncio.timeout_at(self._deadline)

    async def next(self) -> Message:
        message = await self._receive()
        self._has_ended = message["type"] == "http.disconnect" or not message.get("more_body")
        return message

    async def refuse(self, error: ApiError, scope: Scope, send: Send) -> None:
        """Send the error at once, then read and drop the rest of the body, up to a limit.

        Closing the connection early could reset it before the client reads the error.
        """

        async def send_all_but_the_end(message: Message) -> None:
            is_end = message["type"] == "http.response.body"
            await send({**message, "more_body": True} if is_end else message)

        await error_response(error)(scope, self._receive, send_all_but_the_end)
        dropped = 0
        with contextlib.suppress(TimeoutError):
            async with self.in_time():
                while not self._has_ended and dropped < _DROPPED_BYTES:
                    dropped += len((await self.next()).get("body", b""))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def _read(arriving: Arriving, headers: Headers, limit: int) -> bytes | None:
    """Return the complete body, or None if the client disconnected."""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with arriving.in_time():
            while True:
                message = await arriving.next()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > limit:
                    raise _too_large(limit)
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        late = f"the request body did not arrive within {arriving.seconds:.0f} seconds"
        raise ApiError(408, late, headers={"Connection": "close"}) from None


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"the request body is larger than {limit:,} bytes", headers={"Connection": "close"})


async def _check_json(body: bytes, headers: Headers) -> None:
    """Check the encoding and nesting of every body except forms, because webhooks accept any content type."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS:
        return
    if problem := await asyncio.to_thread(_problem, body) if len(body) > _OFF_LOOP_BYTES else _problem(body):
        raise ApiError(400, problem)


def _problem(body: bytes) -> str:
    if not _is_utf8(body):
        return "the request body is not encoded as UTF-8"
    return f"the request body has more than {MAX_JSON_DEPTH} nested levels" if json_depth(body) > MAX_JSON_DEPTH else ""


def _is_utf8(body: bytes) -> bool:
    """Return whether the body is UTF-8. `json` would also accept UTF-16 and UTF-32, which `json_depth` cannot check."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return json.detect_encoding(body).startswith("utf-8")


def json_depth(body: bytes) -> int:
    """Return the nesting depth of a JSON body, or an upper bound. The value is arbitrary if the body is not JSON."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MAX_JSON_DEPTH:
        return opened
    deepest = depth = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
