"""Waits for several things at once. Called by the loop and by readers of the cluster.

Unlike `asyncio.gather` it leaves nothing running when one fails, and unlike a bare `TaskGroup` the error keeps its
type, so that a forbidden request is a `Forbidden` and not a group of one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

T = TypeVar("T")


async def concurrently(works: Iterable[Coroutine[None, None, T]]) -> tuple[T, ...]:
    """The results in the order of `works`. The first error cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)
