"""Work that is done again and again as long as the server runs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

_log = logging.getLogger(__name__)


@asynccontextmanager
async def running(work: Coroutine[None, None, None], name: str) -> AsyncIterator[None]:
    """`work` runs until the context is left."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def repeat(work: Callable[[], Awaitable[None]], pause_seconds: float, woken: asyncio.Event | None = None) -> None:
    """`work` now, and again after each pause or as soon as `woken` is set. Never returns, whatever `work` raises."""
    event = woken or asyncio.Event()
    while True:
        event.clear()
        try:
            await work()
        except HolmesError as error:
            _log.warning("%s; it is tried again", error)
        except Exception:  # noqa: BLE001  the outermost edge of a loop: a bug must not end it silently
            _log.exception("a bug in Holmes; it is tried again")
        try:
            async with asyncio.timeout(pause_seconds):
                await event.wait()
        except TimeoutError:
            pass
