"""An event loop in a thread of its own: work with long steps does not hold up who answers. Used by `serving`."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")


@asynccontextmanager
async def in_background(context: AbstractAsyncContextManager[T]) -> AsyncIterator[tuple[T, OnLoop]]:
    """Enter and leave `context` on another event loop; yields its value, and what calls functions over there.

    What is opened there must be used there: only `OnLoop` and what is safe for threads may cross.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="holmes-work", daemon=True)
    thread.start()
    try:
        value = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_entered(context), loop))
        try:
            yield value, OnLoop(loop)
        finally:
            await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_left(context), loop)))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


class OnLoop:
    """Calls functions on the other loop, soon, without waiting for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, function: Callable[[], None]) -> None:
        """Does nothing when the loop has ended already."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)


async def _entered(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _left(context: AbstractAsyncContextManager[T]) -> None:
    await context.__aexit__(None, None, None)
