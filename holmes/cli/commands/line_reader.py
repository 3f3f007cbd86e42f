"""Reads what the user types at the interactive prompt.

prompt_toolkit where it can run: history, editing, pasting of several lines. `input()` on a dumb terminal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from holmes.cli.render.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History

PROMPT = "holmes> "


class LineReader(Protocol):
    """Where questions come from."""

    async def read(self) -> str | None:
        """The next input, or None at its end (Ctrl-D). Raises `KeyboardInterrupt` on Ctrl-C."""
        ...


class PlainLineReader:
    """`input()`. Blocks the event loop, which has nothing else to do while the user thinks."""

    async def read(self) -> str | None:
        """One line."""
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return input(PROMPT)  # noqa: ASYNC250  nothing else runs while the user thinks
        except EOFError:
            return None
        finally:
            signal.signal(signal.SIGINT, previous)


class EditingLineReader:
    """prompt_toolkit with a history file that only its owner can read."""

    def __init__(self, history_file: Path, commands: Mapping[str, str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        completer = WordCompleter(list(commands), meta_dict=dict(commands), sentence=True)
        self._session: PromptSession[str] = PromptSession(
            history=_history(history_file), completer=completer, complete_while_typing=False
        )

    async def read(self) -> str | None:
        """One input; a paste may have several lines, and Alt-Enter adds one."""
        # Stays until somebody else takes the signal: a Ctrl-C between two prompts must not end the session.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._on_interrupt)
        try:
            return await self._session.prompt_async(PROMPT, handle_sigint=False)
        except EOFError:
            return None

    def _on_interrupt(self) -> None:
        """Ctrl-C as a signal: it was pressed while the terminal was changing hands, or sent from outside."""
        prompt = self._session.app
        if prompt.future is not None and not prompt.is_done:
            prompt.exit(exception=KeyboardInterrupt())


def make_line_reader(environment: Mapping[str, str], history_file: Path, commands: Mapping[str, str]) -> LineReader:
    """The reader that this terminal can have."""
    if environment.get("TERM", "dumb") in {"", "dumb", "unknown"} or not is_terminal(sys.stdout):
        return PlainLineReader()
    return EditingLineReader(history_file, commands)


def _history(file: Path) -> History:
    """The history of earlier sessions; only of this one when the file cannot be written, or no longer."""
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
