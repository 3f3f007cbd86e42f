"""Sends server-sent events with heartbeats until the stream ends or the client disconnects."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.types import Receive, Scope, Send

    from holmes.values.json_types import JsonObject

MEDIA_TYPE: Final = "text/event-stream"
STREAM_DOCUMENTATION: Final = {
    "description": "Server-sent events",
    "content": {MEDIA_TYPE: {}},
}
# A client that does not read for this time is treated as disconnected.
_STALLED_SECONDS: Final = 60.0
_HEARTBEAT: Final = b": heartbeat\n\n"


def frame(identity: str, name: str, data: JsonObject | str) -> bytes:
    """Encode one event. If `data` is a string, it must contain JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # JSON contains no raw line breaks, and Holmes creates the ids and names.
    return f"id: {identity}\nevent: {name}\ndata: {text}\n\n".encode("utf-8", "replace")


class EventStreamResponse(Response):
    """Sends frames until they end or the client disconnects, then closes the generator."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        *,
        heartbeat_seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no", **(headers or {})})
        del self.headers["content-length"]
        self._frames = frames
        self._heartbeat_seconds = heartbeat_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Send the stream until it ends or the client stops reading."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(until_disconnected(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            results = await asyncio.gather(sending, leaving, return_exceptions=True)
        error = results[0]
        if isinstance(error, Exception) and not isinstance(error, (TimeoutError, OSError)):
            raise error

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._with_heartbeats()) as frames:
            async for each in frames:
                async with asyncio.timeout(_STALLED_SECONDS):
                    await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_heartbeats(self) -> AsyncGenerator[bytes, None]:
        yield b": holmes\n\n"  # sent first, because some proxies hold back headers until the body starts
        async with aclosing(self._frames) as frames:
            upcoming = asyncio.ensure_future(anext(frames, None))
            try:
                while True:
                    done, _ = await asyncio.wait({upcoming}, timeout=self._heartbeat_seconds)
                    if not done:
                        yield _HEARTBEAT
                        continue
                    each = upcoming.result()
                    if each is None:
                        return
                    yield each
                    upcoming = asyncio.ensure_future(anext(frames, None))
            finally:
                upcoming.cancel()
                await asyncio.gather(upcoming, return_exceptions=True)


async def until_disconnected(receive: Receive) -> None:
    """Wait until the client disconnects. The request body must already have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
