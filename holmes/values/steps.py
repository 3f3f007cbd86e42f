"""Runs the steps of the loop, runs tasks concurrently, and streams events.

`StepRunner` runs the steps, reads the clock and creates the ids, so that a durable runner can replay a run. A step is
one `complete()`, one summary request or one tool call. A tool call stores its result within the step, so that large
results never enter the journal.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable

T = TypeVar("T")
_QUEUE_SIZE = 256


class StepRunner(Protocol):
    """Runs named steps in a deterministic order and returns their recorded results."""

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """Run `step`, or return its recorded result if the step already ran. `name` is unique within the run."""
        ...

    def now_seconds(self) -> float: ...

    def new_id(self) -> str:
        """Return a new unique id of 32 hexadecimal digits."""
        ...


class DirectStepRunner:
    """Runs each step once and records nothing."""

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002  the protocol's parameter
        return await step()

    def now_seconds(self) -> float:
        """Return the current time of the machine's clock, in seconds since the epoch."""
        return time.time()

    def new_id(self) -> str:
        return uuid.uuid4().hex


async def concurrently(works: Iterable[Coroutine[None, None, T]]) -> tuple[T, ...]:
    """Run all `works` concurrently and return their results in order.

    The first error cancels all other coroutines and is raised unchanged.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as errors:  # a keyboard interrupt must not arrive as a group either
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def stream_events(
    produce: Callable[[Callable[[T], Awaitable[None]]], Awaitable[None]],
) -> AsyncGenerator[T, None]:
    """Yield the events that `produce` emits, in order. Then raise the error from `produce`, if any.

    A slow reader slows the producer down. The generator may be closed at any point, so it never yields inside a
    TaskGroup. Instead, a separate task fills a bounded queue. Closing the generator cancels this task and waits until
    it ends. An event must not be None.
    """
    queue: asyncio.Queue[T | None] = asyncio.Queue(maxsize=_QUEUE_SIZE)
    closed = False

    async def run() -> None:
        try:
            await produce(queue.put)
        finally:
            # If nothing reads the queue, a full queue would block the producer forever.
            if not closed:
                await queue.put(None)

    task = asyncio.create_task(run(), name="event stream")
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        closed = True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
