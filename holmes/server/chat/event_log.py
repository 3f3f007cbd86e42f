"""The events of one chat while it runs, and for a while after: read by streams, also from the middle. Bounded.

What every reader has seen makes room first. A reader that is far behind slows the writer down; without a reader the
oldest go. Numbers count from 1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from holmes.server.sse import frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.investigations.records.wire_events import WireEvent

MAX_BYTES: Final = 4_000_000


class EventLog:
    """Frames of the events of the run `identity`."""

    def __init__(self, identity: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._identity = identity
        self._max_bytes = max_bytes
        self._frames: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._closed = False
        self._positions: dict[object, int] = {}
        self._changed = asyncio.Condition()

    async def append(self, event: WireEvent) -> None:
        """Add an event; waits while a reader has to catch up."""
        async with self._changed:
            content = frame(f"{self._identity}:{self._last + 1}", event.name, event.data)
            await self._changed.wait_for(lambda: self._make_room(len(content)))
            self._last += 1
            self._frames.append((self._last, content))
            self._bytes += len(content)
            self._changed.notify_all()

    async def close(self, last: WireEvent | None = None) -> None:
        """No more events come after `last`, for which there is always room."""
        async with self._changed:
            if last is not None and not self._closed:
                self._last += 1
                self._frames.append((self._last, frame(f"{self._identity}:{self._last}", last.name, last.data)))
            self._closed = True
            self._changed.notify_all()

    async def read(self, after: int = 0) -> AsyncGenerator[bytes, None]:
        """The frames after the number `after`, until the log is closed."""
        reader = object()
        self._positions[reader] = after
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._closed or self._last > self._positions[reader])
                    batch = [(number, each) for number, each in self._frames if number > self._positions[reader]]
                for number, each in batch:
                    yield each
                    self._positions[reader] = number
                async with self._changed:
                    self._changed.notify_all()
                    if self._closed and self._positions[reader] >= self._last:
                        return
        finally:
            del self._positions[reader]
            await self._wake()

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _make_room(self, size: int) -> bool:
        """Whether `size` bytes have room now; lets go of what may go."""
        seen = min(self._positions.values(), default=self._last)
        while self._frames and self._bytes + size > self._max_bytes and self._frames[0][0] <= seen:
            self._bytes -= len(self._frames.popleft()[1])
        return not self._frames or self._bytes + size <= self._max_bytes
