"""Asks the person at the terminal whether tool calls may run. Handed to the loop by the commands.

What was typed before a question was shown never answers it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from holmes.cli.render.terminal import one_line, sanitized

if TYPE_CHECKING:
    from holmes.cli.render.rendering import Renderer
    from holmes.values.tools import ToolInvocation

_GATHERING_SECONDS = 0.05
"""How long the first question waits for the other calls of the reply, so that it can say how many there are."""

_LONGEST_ANSWER_BYTES = 4_096


class _Question:
    """A call that waits. `answer` is None until the person has decided."""

    def __init__(self, invocation: ToolInvocation, description: str) -> None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in invocation.arguments.items())
        self.description = one_line(description)
        self.call = f"{one_line(invocation.tool.name)}({sanitized(arguments)})"
        self.answer: bool | None = None


class TerminalApprover:
    """One question after the other, answered with y or n; anything else is a no.

    When several calls wait, `all` allows and `none` refuses every call that waited when the question was shown.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._turn = asyncio.Lock()
        self._waiting: list[_Question] = []
        self._decided = 0

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        """Whether the person allowed it. Cancelling it stops waiting."""
        question = _Question(invocation, description)
        self._waiting.append(question)
        try:
            await asyncio.sleep(_GATHERING_SECONDS)
            async with self._turn:
                if question.answer is None:
                    await self._ask(question)
                self._decided += 1
                return bool(question.answer)
        finally:
            self._waiting.remove(question)
            if not self._waiting:
                self._decided = 0

    async def _ask(self, question: _Question) -> None:
        together = tuple(each for each in self._waiting if each.answer is None)
        self._renderer.pause()
        try:
            _discard_typed()
            sys.stderr.write(self._text(question, len(together)))
            sys.stderr.flush()
            typed = (await _typed_line()).strip().lower()
        finally:
            self._renderer.resume()
        question.answer = typed in {"y", "yes"}
        if typed in {"all", "none"} and len(together) > 1:
            for each in together:
                each.answer = typed == "all"

    def _text(self, question: _Question, together: int) -> str:
        if self._decided + together == 1:
            return f"Holmes wants to run: {question.description}\n  {question.call}\nAllow it? [y/N] "
        number = f"{self._decided + 1} of {self._decided + together}"
        choice = f"Type all to allow all {together} that wait, none to refuse them.\n" if together > 1 else ""
        return f"Holmes wants to run ({number}): {question.description}\n  {question.call}\n{choice}Allow it? [y/N] "


def _discard_typed() -> None:
    with suppress(termios.error, OSError):  # no longer a terminal: the answer will be empty
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _typed_line() -> str:
    """The next line, without a thread: one that waits for a key could not be cancelled.

    It comes from the descriptor, since the buffer of `sys.stdin` may still hold what was typed before.
    """
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
    try:
        return os.read(descriptor, _LONGEST_ANSWER_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
