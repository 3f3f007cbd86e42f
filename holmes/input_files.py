"""Reads files that users name, and never waits or reads without end.

A name can also stand for a pipe or a device: `-f <(kubectl logs web)`, a FIFO without a writer, `/dev/zero`.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

WAIT_SECONDS: Final = 15.0
"""Time to wait for the next data of a pipe."""
TOTAL_SECONDS: Final = 300.0
"""Time limit for data that arrives slowly."""
_CHUNK_BYTES: Final = 1 << 20


def read_input_file(path: Path, most_bytes: int, *, wait_seconds: float = WAIT_SECONDS) -> bytes:
    """Return the content of a file, or its first `most_bytes` + 1 bytes if it is larger.

    Raises `OSError`, also for a pipe that sends nothing for `wait_seconds` or does not end, and `ValueError` for a path
    with a NUL character.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        # The writer of a pipe without a name exists before the pipe is opened here.
        is_fifo = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        if is_fifo and "/fd/pipe:[" not in os.path.realpath(path):
            _wait(descriptor, wait_seconds)
        return _content(descriptor, most_bytes + 1, wait_seconds)
    finally:
        os.close(descriptor)


def _content(descriptor: int, most_bytes: int, wait_seconds: float) -> bytes:
    content = bytearray()
    deadline = time.monotonic() + TOTAL_SECONDS
    while len(content) < most_bytes:
        try:
            chunk = os.read(descriptor, min(_CHUNK_BYTES, most_bytes - len(content)))
        except BlockingIOError:
            _wait(descriptor, wait_seconds)
            continue
        if not chunk:
            break
        content += chunk
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"the data did not end within {TOTAL_SECONDS:g} s")
    return bytes(content)


def _wait(descriptor: int, wait_seconds: float) -> None:
    """Wait for data or for the end of the data. Raises `TimeoutError`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    if not poll.poll(wait_seconds * 1000):
        raise TimeoutError(errno.ETIMEDOUT, f"no data arrived within {wait_seconds:g} s")
