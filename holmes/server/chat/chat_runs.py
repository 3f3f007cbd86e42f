"""Running chats: each is a task with a log of its events.

A streamed chat continues for `resume_seconds` without a reader, who can resume in that time. Then it is cancelled:
tools stop, and the connection to the provider is closed. Limits apply to new chats.

Streams read the log from any event, for a while after the end too. Its size is bounded: events that all readers have
seen are dropped first, a slow reader slows the chat down, and without a reader the oldest events are dropped. Numbers
start at 1.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from holmes.investigations.records.replicas import shared_key
from holmes.server.chat.chat_production import ChatProduction, failure
from holmes.server.chat.conversations import ConversationCodec
from holmes.server.errors import ApiError, api_error, one_line
from holmes.server.limits import ChatSlots
from holmes.server.sse import frame
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.app.serving import Service
    from holmes.investigations.records.wire_events import WireEvent
    from holmes.server.chat.chat_jobs import ChatJob
    from holmes.server.limits import Draining

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
        """Add an event; waits for slow readers."""
        async with self._changed:
            content = frame(f"{self._identity}:{self._last + 1}", event.name, event.data)
            await self._changed.wait_for(lambda: self._make_room(len(content)))
            self._last += 1
            self._frames.append((self._last, content))
            self._bytes += len(content)
            self._changed.notify_all()

    async def close(self, last: WireEvent | None = None) -> None:
        """Add `last` as the last event, even if the log is full."""
        async with self._changed:
            if last is not None and not self._closed:
                self._last += 1
                self._frames.append((self._last, frame(f"{self._identity}:{self._last}", last.name, last.data)))
            self._closed = True
            self._changed.notify_all()

    async def read(self, after: int = 0) -> AsyncGenerator[bytes, None]:
        """The frames with numbers above `after`, until the log is closed."""
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
        """True if `size` bytes fit; drops events if necessary."""
        seen = min(self._positions.values(), default=self._last)
        while self._frames and self._bytes + size > self._max_bytes and self._frames[0][0] <= seen:
            self._bytes -= len(self._frames.popleft()[1])
        return not self._frames or self._bytes + size <= self._max_bytes


_CANCELLED_CODE = 130
_SIGNING = b"holmes conversations "
_log = logging.getLogger(__name__)


class ChatRun:
    """One chat. `last` is its last event, set when `finished` is done."""

    def __init__(self, production: ChatProduction, identity: str, *, resume_seconds: float) -> None:
        self.identity = identity
        self.production = production
        self.log = EventLog(identity)
        self.last: WireEvent | None = None
        self._resume_seconds = resume_seconds
        self._readers = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._reason = "the chat was cancelled"

    def start(self) -> asyncio.Task[None]:
        """Start. The investigator must be open."""
        self._task = asyncio.create_task(self._run(), name=f"chat {self.identity}")
        return self._task

    def cancel(self, reason: str) -> None:
        """Cancel the chat; readers get the reason."""
        self._reason = reason
        if self._task is not None:
            # Not at once: a task that has not started would end without an event.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def frames(self, after: int = 0) -> AsyncGenerator[bytes, None]:
        """The events with numbers above `after`. Without a reader, the chat is cancelled after a while."""
        self.wait_for_reader(begin=False)
        self._readers += 1
        try:
            async with aclosing(self.log.read(after)) as frames:
                async for each in frames:
                    yield each
        finally:
            self._readers -= 1
            if not self._readers:
                self.wait_for_reader(begin=True)

    def wait_for_reader(self, *, begin: bool) -> None:
        """Start or stop the wait for a reader."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if begin and self._task is not None and not self._task.done():
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(self._resume_seconds, self.cancel, "the client disconnected")

    async def _run(self) -> None:
        try:
            async with aclosing(self.production.events()) as events:
                async for event in events:
                    if event.name in {"ai_answer_end", "approval_required", "error"}:
                        self.last = event
                    else:
                        await self.log.append(event)
        except asyncio.CancelledError:
            self.last = failure(self._reason, code=_CANCELLED_CODE)
        except HolmesError as error:
            self.last = failure(str(api_error(error).detail), code=error.exit_code)
        except Exception:  # noqa: BLE001  the edge of a task that is never awaited
            _log.exception("internal error %s in a chat", self.identity)
            self.last = failure(f"this is a bug in Holmes; the server's log tells more under {self.identity}")
        finally:
            self.wait_for_reader(begin=False)
            await self.log.close(self.last)


class ChatRuns:
    """All chats of this replica."""

    def __init__(self, service: Service, draining: Draining) -> None:
        self._service = service
        self._draining = draining
        self._slots = ChatSlots(service)
        self._runs: dict[str, ChatRun] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._keeping: set[asyncio.Task[None]] = set()
        self._codec: ConversationCodec | None = None

    async def codec(self) -> ConversationCodec:
        """The codec that signs conversations, with the configured key or the key in the database.

        Raises `DatabaseUnavailable`.
        """
        if self._codec is None:
            own = self._service.settings.server.approval_signing_key
            if own is not None:
                key = hashlib.sha256(_SIGNING + own.get_secret_value().encode()).digest()
            else:
                key = await shared_key(self._service.database, "conversations")
            self._codec = ConversationCodec(key)
        return self._codec

    async def start(self, job: ChatJob, client: str) -> ChatRun:
        """Start a chat of a client.

        Raises `ApiError` 429 above the limits, 503 while the server stops, and the errors of opening an investigator.
        """
        self._draining.refuse_when_begun()
        await self._slots.refuse_beyond_budget()
        release = self._slots.take(client)
        identity = uuid.uuid4().hex
        run = ChatRun(
            ChatProduction(self._service, await self.codec(), job, identity),
            identity,
            resume_seconds=self._service.settings.server.resume_seconds,
        )
        try:
            await self._open(run)
        except BaseException:
            release()
            raise
        self._runs[identity] = run
        task = run.start()
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: release())
        keeping = asyncio.create_task(self._keep(run, task), name=f"chat {identity} is kept")
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        return run

    def get(self, identity: str) -> ChatRun:
        """A chat that is running or has just ended. Raises `ApiError` 404."""
        run = self._runs.get(identity)
        if run is None:
            raise ApiError(404, f"chat {one_line(identity)[:80]!r} does not exist or has ended")
        return run

    async def drain(self, seconds: float) -> None:
        """Wait for the running chats, then cancel the rest."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while (begun := self._opening | self._running) and loop.time() < deadline:
            await asyncio.wait(begun, timeout=deadline - loop.time())
        for opening in self._opening:
            opening.cancel()
        for run in self._runs.values():
            run.cancel("the server is stopping")
        if self._running:
            await asyncio.wait(self._running)
        await asyncio.gather(*(run.production.costs.flush() for run in self._runs.values()))

    async def _open(self, run: ChatRun) -> None:
        """Open the chat in a task that `drain` waits for. Raises `ApiError` 503 if `drain` cancelled it."""
        task = asyncio.create_task(run.production.open(), name=f"chat {run.identity} opens")
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        try:
            await task
        except asyncio.CancelledError:
            self._draining.refuse_when_begun()
            raise

    async def _keep(self, run: ChatRun, task: asyncio.Task[None]) -> None:
        """Store pending costs, and keep the chat for a client that lost its connection."""
        await asyncio.wait({task})
        await run.production.costs.flush()
        await asyncio.sleep(self._service.settings.server.resume_seconds)
        self._runs.pop(run.identity, None)
