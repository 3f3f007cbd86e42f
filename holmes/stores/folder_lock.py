"""A lock between processes on one folder. Used by the result store: writers share it, the clean-up has it alone.

It goes with the process that holds it, so a kill leaves nothing behind. Nobody waits for ever: a stopped process that
holds it is an error after a while.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_POLL_SECONDS = 0.005


@contextmanager
def folder_lock(path: Path, *, shared: bool, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock file `path`, made when it is not there. Blocks the thread. Raises `OSError`, also for a timeout."""
    deadline = time.monotonic() + timeout_seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another process holds the folder")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
