"""Runs each chat as a task that writes its events to a log, and lets clients resume the event stream.

If the client of a streamed chat disconnects, it can resume the stream within `resume_seconds`. After that, the chat is
cancelled: its tools stop, and the connection to the provider is closed. New chats are rejected if a limit is exceeded.

A client can read the log from any event until `resume_seconds` after the end of the chat. The size of the log is
limited. If the log is full, events that all readers have received are dropped. A slow reader slows down the chat. If no
client is reading, the oldest events are dropped. Event numbers start at 1.
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
from holmes.values.request_headers import answering

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.app.serving import Service
    from holmes.investigations.records.wire_events import WireEvent
    from holmes.server.chat.chat_jobs import ChatJob
    from holmes.server.limits import Caller, Draining
    from holmes.values.request_headers import RequestHeaders

MAX_BYTES: Final = 4_000_000


class EventLog:
    """Keeps the events of the run with the id `identity` as encoded frames of its event stream."""

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
        """Add an event. Waits for slow readers if the log is full."""
        async with self._changed:
            content = frame(f"{self._identity}:{self._last + 1}", event.name, event.data)
            await self._changed.wait_for(lambda: self._make_room(len(content)))
            self._last += 1
            self._frames.append((self._last, content))
            self._bytes += len(content)
            self._changed.notify_all()

    async def close(self, last: WireEvent | None = None) -> None:
        """Close the log. `last` is added even if the log is full."""
        async with self._changed:
            if last is not None and not self._closed:
                self._last += 1
                self._frames.append((self._last, frame(f"{self._identity}:{self._last}", last.name, last.data)))
            self._closed = True
            self._changed.notify_all()

    async def read(self, after: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the frames with numbers above `after`, until the log is closed."""
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
        """Drop events until `size` bytes fit, if possible. Returns whether they fit."""
        seen = min(self._positions.values(), default=self._last)
        while self._frames and self._bytes + size > self._max_bytes and self._frames[0][0] <= seen:
            self._bytes -= len(self._frames.popleft()[1])
        return not self._frames or self._bytes + size <= self._max_bytes


_CANCELLED_CODE = 130
_SIGNING = b"holmes conversations "
_log = logging.getLogger(__name__)


class ChatRun:
    """The task and the event log of one chat. `last` is set when the chat has ended."""

    def __init__(
        self, production: ChatProduction, headers: RequestHeaders, identity: str, *, resume_seconds: float
    ) -> None:
        self.identity = identity
        self.production = production
        self.log = EventLog(identity)
        self.last: WireEvent | None = None
        self._headers = headers
        self._resume_seconds = resume_seconds
        self._readers = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._reason = "the chat was cancelled"

    def start(self) -> asyncio.Task[None]:
        """Start the chat. Its investigator must be open."""
        self._task = asyncio.create_task(self._run(), name=f"chat {self.identity}")
        return self._task

    def cancel(self, reason: str) -> None:
        """Cancel the chat. Its last event contains `reason`."""
        self._reason = reason
        if self._task is not None:
            # The cancellation is deferred, because a task that is cancelled before it starts would send no last event.
            asyncio.get_running_loop().call_soon(self._task.cancel)

    async def frames(self, after: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the events with numbers above `after`.

        If no client reads for `resume_seconds`, the chat is cancelled.
        """
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
        """Start or stop the timer that cancels a chat without a reader."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if begin and self._task is not None and not self._task.done():
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(self._resume_seconds, self.cancel, "the client disconnected")

    async def _run(self) -> None:
        try:
            async with answering(self._headers), aclosing(self.production.events()) as events:
                async for event in events:
                    if event.name in {"ai_answer_end", "approval_required", "error"}:
                        self.last = event
                    else:
                        await self.log.append(event)
        except asyncio.CancelledError:
            self.last = failure(self._reason, code=_CANCELLED_CODE)
        except HolmesError as error:
            self.last = failure(str(api_error(error).detail), code=error.exit_code)
        except Exception:  # noqa: BLE001  no code awaits this task
            _log.exception("internal error %s in a chat", self.identity)
            self.last = failure(f"internal error; see the server log for id {self.identity}")
        finally:
            self.wait_for_reader(begin=False)
            await self.log.close(self.last)


class ChatRuns:
    """Starts, finds and drains the chats of this replica."""

    def __init__(self, service: Service, draining: Draining) -> None:
        self._service = service
        self._draining = draining
        self._slots = ChatSlots(service)
        self._runs: dict[str, ChatRun] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._keeping: set[asyncio.Task[None]] = set()
        self._key: bytes | None = None

    async def codec(self, cluster: str | None) -> ConversationCodec:
        """Return the codec that signs conversations about a cluster, by default the default cluster.

        The key is the configured one or, by default, one in the database. Raises `ConfigError` for an unknown cluster,
        and `DatabaseUnavailable`.
        """
        name = self._service.investigators.clusters.name_of(cluster)
        if self._key is None:
            own = self._service.settings.server.approval_signing_key
            if own is not None:
                self._key = hashlib.sha256(_SIGNING + own.get_secret_value().encode()).digest()
            else:
                self._key = await shared_key(self._service.database, "conversations")
        return ConversationCodec(self._key, name)

    async def start(self, job: ChatJob, caller: Caller) -> ChatRun:
        """Start a chat for a caller.

        Raises `ApiError` 429 if a limit is exceeded, `ApiError` 503 while the server stops, and any exception from
        `ChatProduction.open`.
        """
        self._draining.refuse_when_begun()
        await self._slots.refuse_beyond_budget()
        release = self._slots.take(caller.client)
        identity = uuid.uuid4().hex
        run = ChatRun(
            ChatProduction(self._service, await self.codec(job.cluster), job, identity),
            caller.headers,
            identity,
            resume_seconds=self._service.settings.server.resume_seconds,
        )
        try:
            await self._open(run)
        except BaseException:  # also a cancelled request, because nothing else releases the place
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
        """Find a chat that is running or has recently ended. Raises `ApiError` 404."""
        run = self._runs.get(identity)
        if run is None:
            raise ApiError(404, f"chat {one_line(identity)[:80]!r} does not exist or has ended")
        return run

    async def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for running chats, then cancel the remaining chats."""
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
        """Open the chat in a task that `drain` waits for. Raises `ApiError` 503 if `drain` cancels the task."""
        task = asyncio.create_task(run.production.open(), name=f"chat {run.identity} opens")
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        try:
            await task
        except asyncio.CancelledError:
            self._draining.refuse_when_begun()
            raise

    async def _keep(self, run: ChatRun, task: asyncio.Task[None]) -> None:
        """Store pending costs, and keep the ended chat for `resume_seconds`, so that clients can resume its stream."""
        await asyncio.wait({task})
        await run.production.costs.flush()
        await asyncio.sleep(self._service.settings.server.resume_seconds)
        self._runs.pop(run.identity, None)
