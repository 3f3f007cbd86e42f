"""Stores the random, private key for the placeholders of secrets. All runs use the same key.

Without the key, an attacker cannot guess a short password from its placeholder. If the file cannot be read or written,
each process uses its own key.
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
    """Return the key in the file at `path`. A missing file is created with mode 0600."""
    try:
        if not path.exists():
            _create(path)
        with open_regular(path) as file:
            key = file.read(KEY_BYTES + 1)
    except OSError:
        return os.urandom(KEY_BYTES)
    return key if len(key) == KEY_BYTES else os.urandom(KEY_BYTES)


def _create(path: Path) -> None:
    """Create the complete key file in one step. If another process has already created the file, its key is used."""
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
