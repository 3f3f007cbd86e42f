"""The prompt while the investigator is being opened, which takes seconds: the user types meanwhile.

What makes the opening fail ends the prompt. A question waits for the opening; a command and the end of input do not.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from holmes.cli.commands.interrupts import Interrupted
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from holmes.app.investigator import Investigator
    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.commands.line_reader import LineReader
    from holmes.cli.render.rendering import Renderer

T = TypeVar("T")


@asynccontextmanager
async def in_background(work: Coroutine[object, object, T]) -> AsyncIterator[asyncio.Task[T]]:
    """The task that does `work`; leaving the context ends it."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def opened_by(opening: asyncio.Task[Investigator]) -> Investigator:
    """The investigator. Raises `HolmesError` while it is not open yet, and what made the opening fail."""
    if not opening.done():
        raise HolmesError("Holmes is still starting: try again in a moment")
    return opening.result()


class PromptWhileOpening:
    """A `LineReader` around another one. `announce` is called once, between two prompts."""

    def __init__(
        self,
        reader: LineReader,
        opening: asyncio.Task[Investigator],
        renderer: Renderer,
        interrupts: Interrupts,
        announce: Callable[[Investigator], None],
    ) -> None:
        self._reader = reader
        self._opening = opening
        self._renderer = renderer
        self._interrupts = interrupts
        self._announce = announce
        self._announced = False

    async def read(self) -> str | None:
        """The next input, or None at its end. Raises what made the opening fail, and `KeyboardInterrupt` on Ctrl-C."""
        typed = await self._read_unless_it_fails()
        if typed is not None and typed.strip() and not typed.strip().startswith("/"):
            await self._wait_until_open()
        return typed

    async def _read_unless_it_fails(self) -> str | None:
        if self._announced:
            return await self._reader.read()
        reading = asyncio.create_task(_read_or_ctrl_c(self._reader))
        try:
            await asyncio.wait({reading, self._opening}, return_when=asyncio.FIRST_COMPLETED)
            if self._opening.done():
                self._opening.result()
            typed = await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if isinstance(typed, KeyboardInterrupt):
            raise typed
        return typed

    async def _wait_until_open(self) -> None:
        if self._announced:
            return
        self._renderer.start()
        try:
            investigator = await self._interrupts.run(_shielded(self._opening))
        except Interrupted as interrupted:
            if interrupted.number == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise
        finally:
            self._renderer.stop()
        self._announced = True
        self._announce(investigator)


async def _read_or_ctrl_c(reader: LineReader) -> str | KeyboardInterrupt | None:
    """What was typed. Ctrl-C is a value: raised in a task, it would end the whole event loop."""
    try:
        return await reader.read()
    except KeyboardInterrupt as pressed:
        return pressed


async def _shielded(task: asyncio.Task[T]) -> T:
    """What `task` gives. Who stops waiting for it does not stop it."""
    return await asyncio.shield(task)
