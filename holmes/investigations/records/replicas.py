"""Manages the leases of replicas and the keys that replicas share. Each replica renews its lease every few seconds.

Replicas that share a database use the clock of the database. Only one replica can use an SQLite file. A second replica
fails at once.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, text, update

from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import KEYS, REPLICAS
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database


_FORGOTTEN_LEASES = 20


class Replicas:
    """Renews the lease of this replica, and reads the leases of the other replicas."""

    def __init__(self, database: Database, replica: str, version: str, *, lease_seconds: float) -> None:
        self._database = database
        self._replica = replica
        self._version = version
        self._lease_seconds = lease_seconds
        self._renewed_at: float | None = None
        self._steady_since = float("-inf")

    async def renew(self) -> None:
        """Renew the lease. Raises `DatabaseUnavailable`."""
        await self._database.transaction(self._renew)
        now = time.monotonic()
        if self._renewed_at is not None and now - self._renewed_at > self._lease_seconds / 2:
            self._steady_since = now
        self._renewed_at = now

    def can_judge(self) -> bool:
        """Return whether an expired lease proves that its replica is dead.

        Returns false after a database outage, until this replica has renewed its own lease for a whole lease period.
        """
        now = time.monotonic()
        is_renewed = self._renewed_at is not None and now - self._renewed_at <= self._lease_seconds / 2
        return is_renewed and now - self._steady_since >= self._lease_seconds

    async def join(self) -> None:
        """Start the lease. Deletes all other leases if the database is not shared. Raises `DatabaseUnavailable`."""
        if not self._database.shared:
            await self._database.transaction(lambda connection: connection.execute(delete(REPLICAS)))
        await self.renew()

    async def leave(self) -> None:
        """End the lease, so that other replicas can take over at once."""
        statement = delete(REPLICAS).where(REPLICAS.c.id == self._replica)
        await self._database.transaction(lambda connection: connection.execute(statement))

    async def alive(self) -> frozenset[str]:
        """Return the replicas with a valid lease, including this replica. Deletes leases that expired long ago."""
        return await self._database.transaction(self._alive)

    def _renew(self, connection: Connection) -> None:
        now = now_seconds(connection)
        values = {"id": self._replica, "version": self._version, "started_at": now, "seen_at": now}
        if not insert_once(connection, REPLICAS, values):
            connection.execute(update(REPLICAS).where(REPLICAS.c.id == self._replica).values(seen_at=now))

    def _alive(self, connection: Connection) -> frozenset[str]:
        now = now_seconds(connection)
        connection.execute(delete(REPLICAS).where(REPLICAS.c.seen_at < now - _FORGOTTEN_LEASES * self._lease_seconds))
        alive = select(REPLICAS.c.id).where(REPLICAS.c.seen_at >= now - self._lease_seconds)
        return frozenset({self._replica, *connection.execute(alive).scalars()})


def now_seconds(connection: Connection) -> float:
    """Return the time of the database clock, in seconds since the epoch."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()


@contextmanager
def single_owner(database: Database) -> Iterator[None]:
    """Lock the SQLite file of `database` until the context manager exits or the process ends.

    Does nothing for a shared database. Raises `ConfigError` if another process has locked the file.
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
                f"another holmes serve uses the database {file!r}: stop that server, or set another "
                "HOLMES_DATABASE_URL; several replicas require postgresql://..."
            ) from error
        yield


_KEY_BYTES = 32


async def shared_key(database: Database, name: str) -> bytes:
    """Read the key `name`, which is 32 random bytes and is created on first use. Raises `DatabaseUnavailable`."""

    def read(connection: Connection) -> bytes:
        insert_once(connection, KEYS, {"name": name, "value": os.urandom(_KEY_BYTES)})
        return bytes(connection.execute(select(KEYS.c.value).where(KEYS.c.name == name)).scalar_one())

    return await database.transaction(read)
