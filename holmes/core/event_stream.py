"""Turns a coroutine that emits events into an async generator.

Never yield inside a TaskGroup: the generator may be closed anywhere. So the work runs in a task of its own that puts
into a bounded queue, and closing the generator cancels that task and waits for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from holmes.values.events import AgentEvent
    from holmes.values.model import EmitEvent

_QUEUE_SIZE = 256


async def stream_events(produce: Callable[[EmitEvent], Awaitable[None]]) -> AsyncGenerator[AgentEvent, None]:
    """Yield what `produce` emits, in order; then raise what it raised. A slow reader slows the producer down."""
    queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue(maxsize=_QUEUE_SIZE)
    closed = False

    async def run() -> None:
        try:
            await produce(queue.put)
        finally:
            # Without a reader a full queue would keep the producer waiting for ever.
            if not closed:
                await queue.put(None)

    task = asyncio.create_task(run(), name="investigation")
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        closed = True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
