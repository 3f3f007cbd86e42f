"""A program on a pseudo terminal: what it draws can be read, and keys can be pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]")


class Terminal:
    """Runs `python ARGUMENTS` with standard input, output and error on one terminal of 100 x 30."""

    def __init__(self, arguments: list[str], *, cwd: Path, environment: dict[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.output = ""

        def control_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
            preexec_fn=control_terminal,  # noqa: PLW1509  Ctrl-C needs a controlling terminal
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What was written, without the sequences that move and colour it."""
        return _SEQUENCE.sub("", self.output)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str, seconds: float = 20) -> None:
        """Read until `text` has been written."""
        self.wait_until(lambda screen: text in screen, f"{text!r} on the screen", seconds)

    def wait_until(self, fulfilled: Callable[[str], bool], what: str, seconds: float = 20) -> None:
        """Read until what was written is as `fulfilled` wants it; `what` says so when it never is."""
        deadline = time.monotonic() + seconds
        while not fulfilled(self.text):
            if time.monotonic() > deadline or not self._read(0.2):
                message = f"there was never {what}: {self.text[-2000:]}"
                raise AssertionError(message)

    def exit_code(self, seconds: float = 20) -> int:
        """Read to the end and wait for the program."""
        deadline = time.monotonic() + seconds
        while self._read(0.2):
            assert time.monotonic() < deadline, self.text[-2000:]
        return self.process.wait(timeout=seconds)

    def _read(self, seconds: float) -> bool:
        """Read what is there; False at the end."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._master, 65536)
        except OSError:
            return False
        self.output += piece.decode("utf-8", "replace")
        return bool(piece)
