"""Advisory file locks: two test sessions must not build or start the same thing at once."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` alone; the kernel releases it when the holder dies, so it cannot go stale."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def share(path: Path) -> IO[str]:
    """Hold `path` together with others until the returned file is closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = path.open("a")
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def only_holder(handle: IO[str]) -> bool:
    """Turn the shared lock on `handle` into an exclusive one, or say that others hold it too."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
