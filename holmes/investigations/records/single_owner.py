"""A SQLite file belongs to one replica: whoever starts a second one is told so at once. Used by `holmes.app`."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.investigations.records.database import Database


@contextmanager
def single_owner(database: Database) -> Iterator[None]:
    """Own the file of `database` until the block ends; the kernel ends it for a process that dies.

    Does nothing for a database that replicas share. Raises `ConfigError` when another process owns it.
    """
    file = database.url.database
    if database.shared or not file or file == ":memory:":
        yield
        return
    with Path(f"{file}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"another holmes serve uses the database {file!r}: end it first, or give this one another "
                "HOLMES_DATABASE_URL; several replicas need postgresql://..."
            ) from error
        yield
