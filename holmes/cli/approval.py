"""Asks the person at the terminal whether a tool call may run. Handed to the loop by `holmes ask`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from holmes.cli.sanitize import one_line, sanitized

if TYPE_CHECKING:
    from holmes.cli.rendering import Renderer
    from holmes.core.tools import ToolInvocation


class TerminalApprover:
    """One question at a time, answered with y or n; anything else is a no."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._turn = asyncio.Lock()

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        """Whether the person typed y or yes. Cancelling it stops waiting."""
        async with self._turn:
            self._renderer.pause()
            try:
                arguments = ", ".join(f"{name}={value!r}" for name, value in invocation.arguments.items())
                sys.stderr.write(
                    f"Holmes wants to run: {one_line(description)}\n"
                    f"  {one_line(invocation.tool.name)}({sanitized(arguments)})\nAllow it? [y/N] "
                )
                sys.stderr.flush()
                return (await _line_of_stdin()).strip().lower() in {"y", "yes"}
            finally:
                self._renderer.resume()


async def _line_of_stdin() -> str:
    """The next line, without a thread: one that waits for a key could not be cancelled."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def on_input() -> None:
        if not ready.done():
            ready.set_result(None)

    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, on_input)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline()
