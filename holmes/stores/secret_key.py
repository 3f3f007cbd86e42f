"""The key that makes placeholders of secrets: random, private, the same for every run. Called by `holmes.app`.

Without the key nobody can guess a short password from its placeholder. Refuses to fail: where no file can be kept, the
key lives as long as the process.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING

from holmes.stores.result_files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

KEY_BYTES = 32


def load_or_create_key(path: Path) -> bytes:
    """The key in the file at `path`, which is made (0600) when it is not there."""
    try:
        if not path.exists():
            _create(path)
        with open_regular(path) as file:
            key = file.read(KEY_BYTES + 1)
    except OSError:
        return os.urandom(KEY_BYTES)
    return key if len(key) == KEY_BYTES else os.urandom(KEY_BYTES)


def _create(path: Path) -> None:
    """Put a whole key in place in one go; when another process was first, its key counts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
