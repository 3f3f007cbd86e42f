"""The interactive loop of `holmes ask`: a prompt, questions, answers and commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from holmes.cli.commands.inputs import Question
from holmes.cli.commands.interrupts import Interrupted
from holmes.cli.render.terminal import context_lines, one_line, spending, write_line
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.cli.commands.session import Session
    from holmes.cli.commands.terminal_input import LineReader
    from holmes.cli.render.rendering import Renderer

COMMANDS: Final = {
    "/help": "show these commands",
    "/details": "show everything behind the last answer",
    "/clear": "start a new conversation",
    "/tools": "show the toolsets",
    "/context": "show context window usage",
    "/compact": "summarise the conversation now",
    "/cost": "show the cost of this session",
    "/exit": "exit (or press Ctrl-D)",
}
_FATAL_EXIT_CODES = frozenset({129, 143})


class InteractiveLoop:
    """Prompts for questions until the user exits."""

    def __init__(
        self,
        session: Session,
        reader: LineReader,
        renderer: Renderer,
        list_tools: Callable[[], Awaitable[str]],
        *,
        color: bool = False,
    ) -> None:
        self._session = session
        self._reader = reader
        self._renderer = renderer
        self._list_tools = list_tools
        self._color = color

    async def run(self, first: Question) -> int:
        """Answer `first` if it has text, then each question that the user types. Returns the exit code.

        Files and piped text without a question are attached to the first question that the user types.
        """
        if not first.text:
            self._renderer.notice("Ask a question, or type /help. Press Ctrl-C to stop an answer, Ctrl-D to exit.")
        with self._session.staying():
            return await self._converse(first)

    async def _converse(self, pending: Question) -> int:
        while True:
            if pending.text:
                if (code := await self._answer(pending)) in _FATAL_EXIT_CODES:
                    return code
                pending = Question(text="", attachments=())
            try:
                typed = await self._reader.read()
            except KeyboardInterrupt:
                continue
            if typed is None or typed.strip() == "/exit":
                return 0
            if typed.strip() == "/details":
                pending = Question(text="details", attachments=())
            elif typed.strip().startswith("/"):
                if (code := await self._obey(typed.strip())) in _FATAL_EXIT_CODES:
                    return code
            else:
                pending = Question(text=typed.strip(), attachments=pending.attachments)

    async def _answer(self, question: Question) -> int:
        """Answer one question and return an exit code. A failure does not end the session."""
        try:
            end = await self._session.ask(question)
        except HolmesError as error:
            self._renderer.notice(f"holmes: {one_line(str(error), limit=2_000)}")
            return error.exit_code
        if end.error:
            self._renderer.notice(f"holmes: {one_line(end.error, limit=2_000)}")
        return end.exit_code

    async def _obey(self, command: str) -> int:
        """Run one command and return an exit code. A failure does not end the session."""
        try:
            await self._session.interruptible(self._do(command))
        except Interrupted as interrupted:
            self._renderer.notice("holmes: interrupted")
            return interrupted.exit_code
        except (HolmesError, OSError) as error:
            self._renderer.notice(f"holmes: {one_line(str(error), limit=2_000)}")
        return 0

    async def _do(self, command: str) -> None:
        match command:
            case "/help":
                for name, meaning in COMMANDS.items():
                    self._renderer.notice(f"{name:<9} {meaning}")
            case "/clear":
                self._session.start_over()
                self._renderer.notice("started a new conversation")
            case "/tools":
                self._renderer.notice(await self._list_tools())
            case "/context":
                for line in context_lines(await self._session.context_usage(), color=self._color):
                    write_line(sys.stderr, line)
            case "/compact":
                await self._session.compact()
            case "/cost":
                self._renderer.notice(spending(self._session.stats))
            case _:
                self._renderer.notice(f"unknown command {one_line(command)!r}; type /help")
