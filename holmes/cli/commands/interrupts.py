"""Handles Ctrl-C, SIGTERM and SIGHUP.

After the first signal, the running work is cancelled and its processes end. The second signal ends Holmes immediately.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = "\x1b[?25h"


class Interrupted(Exception):
    """Raised if a signal ended the work. `exit_code` is 128 plus the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.exit_code = 128 + number


class Interrupts:
    """Context manager that handles signals by cancelling the innermost running work."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._targets: list[asyncio.Task[object]] = []
        self._stays = False

    def __enter__(self) -> Self:
        """Install the signal handlers. If no inner work is running, a signal cancels the current task."""
        task = asyncio.current_task()
        if task is not None:
            self._targets.append(task)
        self._take_signals()
        return self

    def __exit__(self, *_: object) -> None:
        self._targets.clear()
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    @property
    def exit_code(self) -> int:
        """The exit code: 128 plus the number of the received signal."""
        return 128 + (self._received or signal.SIGINT)

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Let Ctrl-C end only the work of `run`. If no such work is running, Ctrl-C has no effect."""
        self._stays = True
        try:
            yield
        finally:
            self._stays = False

    async def run(self, work: Coroutine[object, object, T]) -> T:
        """Run `work`. A signal cancels only this work. Raises `Interrupted` after a signal."""
        self._take_signals()  # a prompt may have replaced the handler of Ctrl-C
        task = asyncio.ensure_future(work)
        self._targets.append(task)
        try:
            await asyncio.wait({task})
        finally:
            self._targets.remove(task)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if self._received is None:
            return task.result()
        number, self._received = self._received, None
        raise Interrupted(number) from (None if task.cancelled() else task.exception())

    def _take_signals(self) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        if self._stays and number == signal.SIGINT and len(self._targets) == 1:
            return
        if self._received is not None or not self._targets:
            _leave_now(number)
        self._received = number
        self._targets[-1].cancel()


def _leave_now(number: int) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"{_SHOW_CURSOR}\nholmes: exiting immediately\n")
        sys.stderr.flush()
    os._exit(128 + number)
