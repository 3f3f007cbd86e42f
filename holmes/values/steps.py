"""How the loop runs a step, reads the clock and makes ids, so that a durable runner can replay it.

In the command line `DirectStepRunner` just does it. In the server every step is a recorded workflow step: one
`complete()`, one summary request, or one tool call with its spill, so that no large output enters the journal.
`concurrently` waits for several things at once.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

T = TypeVar("T")


class StepRunner(Protocol):
    """Runs named steps in a deterministic order and returns their recorded results."""

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        """Run `step`, or return what it returned when this run already did it. `name` is unique within the run."""
        ...

    def now_seconds(self) -> float:
        """Seconds since the epoch."""
        ...

    def new_id(self) -> str:
        """A fresh unique id of 32 hexadecimal digits."""
        ...


class DirectStepRunner:
    """Runs each step once, records nothing."""

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002  the protocol's parameter
        """Run `step`."""
        return await step()

    def now_seconds(self) -> float:
        """Seconds since the epoch, by the machine's clock."""
        return time.time()

    def new_id(self) -> str:
        """A random id."""
        return uuid.uuid4().hex


async def concurrently(works: Iterable[Coroutine[None, None, T]]) -> tuple[T, ...]:
    """The results in the order of `works`. The first error cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)
