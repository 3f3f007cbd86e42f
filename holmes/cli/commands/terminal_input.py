"""Reads what the user types at the terminal: lines at the prompt, and approvals of tool calls.

The prompt uses prompt_toolkit, or `input()` on a dumb terminal. Text that was typed before an approval question appears
is never used as the answer to this question.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from holmes.cli.render.terminal import is_terminal, one_line, sanitized

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History

    from holmes.cli.render.rendering import Renderer
    from holmes.values.tools import ToolInvocation

_PROMPT = "holmes> "


class LineReader(Protocol):
    """Reads the questions of an interactive session."""

    async def read(self) -> str | None:
        """Return the next input, or None at the end of the input (Ctrl-D). Raises `KeyboardInterrupt` on Ctrl-C."""
        ...


class PlainLineReader:
    """Uses `input()`. The call may block the event loop, because no other work runs at the prompt."""

    async def read(self) -> str | None:
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return input(_PROMPT)  # noqa: ASYNC250  no other work runs at the prompt
        except EOFError:
            return None
        finally:
            signal.signal(signal.SIGINT, previous)


class EditingLineReader:
    """Uses prompt_toolkit, with a history file that only its owner can read."""

    def __init__(self, history_file: Path, commands: Mapping[str, str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        completer = WordCompleter(list(commands), meta_dict=dict(commands), sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=_history(history_file), completer=completer, complete_while_typing=False
        )

    async def read(self) -> str | None:
        """Read one input. Pasted text may have several lines, and Alt-Enter adds a line."""
        # The handler stays installed after the prompt, because Ctrl-C between two prompts must not end the session.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._on_interrupt)
        try:
            return await self._session.prompt_async(_PROMPT, handle_sigint=False)
        except EOFError:
            return None

    def _on_interrupt(self) -> None:
        """Handle a SIGINT that the terminal did not deliver as a key."""
        prompt = self._session.app
        if prompt.future is not None and not prompt.is_done:
            prompt.exit(exception=KeyboardInterrupt())


def make_line_reader(environment: Mapping[str, str], history_file: Path, commands: Mapping[str, str]) -> LineReader:
    """Return the best reader that this terminal supports."""
    if environment.get("TERM", "dumb") in {"", "dumb", "unknown"} or not is_terminal(sys.stdout):
        return PlainLineReader()
    return EditingLineReader(history_file, commands)


def _history(file: Path) -> History:
    """Return the stored history. If the file is not writable, the history covers only this session."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class OptionalFileHistory(FileHistory):
        def load_history_strings(self) -> Iterable[str]:
            try:
                return super().load_history_strings()
            except OSError:
                return ()

        def store_string(self, string: str) -> None:
            with suppress(OSError):
                super().store_string(string)

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return OptionalFileHistory(str(file))


_GATHERING_SECONDS = 0.05
"""Wait time before the first approval question, so that the question can show the number of waiting calls."""

_LONGEST_ANSWER_BYTES = 4_096


class _Question:
    """A call that requires approval. `answer` is None until the user decides."""

    def __init__(self, invocation: ToolInvocation, description: str) -> None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in invocation.arguments.items())
        self.description = one_line(description)
        self.call = f"{one_line(invocation.tool.name)}({sanitized(arguments)})"
        self.answer: bool | None = None


class TerminalApprover:
    """Asks for approval of one call at a time. The call runs only if the user types `y`.

    If several calls are waiting, `all` allows and `none` refuses all calls that were waiting when the question
    appeared.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._turn = asyncio.Lock()
        self._waiting: list[_Question] = []
        self._decided = 0

    async def decide(self, invocation: ToolInvocation, description: str) -> bool:
        """Ask the user, and return whether the call is allowed. The task that waits for the answer can be cancelled."""
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
        several = f"Type 'all' to allow all {together} waiting calls, or 'none' to refuse them.\n"
        choice = several if together > 1 else ""
        return f"Holmes wants to run ({number}): {question.description}\n  {question.call}\n{choice}Allow it? [y/N] "


def _discard_typed() -> None:
    with suppress(termios.error, OSError):  # no longer a terminal, so the input is empty
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _typed_line() -> str:
    """Read the next line without a thread, because a thread that waits for a key cannot be cancelled.

    Reads the file descriptor directly, because the buffer of `sys.stdin` may contain text that was typed earlier.
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
