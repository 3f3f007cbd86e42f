"""Which replicas are alive: each says so in the database every few seconds. Used by the queue.

The clock is the database's when replicas share one, so that the clocks of their machines need not agree.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, text, update

from holmes.investigations.journal import insert_once
from holmes.investigations.schema import REPLICAS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.database import Database


class Replicas:
    """The lease of this replica, and who else has one."""

    def __init__(self, database: Database, replica: str, version: str, *, lease_seconds: float) -> None:
        self._database = database
        self._replica = replica
        self._version = version
        self._lease_seconds = lease_seconds

    async def renew(self) -> None:
        """Say that this replica is alive. Raises `DatabaseUnavailable`."""
        await self._database.transaction(self._renew)

    async def join(self) -> None:
        """Begin to be alive; alone, when nobody else can use the database. Raises `DatabaseUnavailable`."""
        if not self._database.shared:
            await self._database.transaction(lambda connection: connection.execute(delete(REPLICAS)))
        await self.renew()

    async def leave(self) -> None:
        """Say that this replica ends: its investigations may be taken over at once."""
        statement = delete(REPLICAS).where(REPLICAS.c.id == self._replica)
        await self._database.transaction(lambda connection: connection.execute(statement))

    async def alive(self) -> frozenset[str]:
        """The replicas whose lease runs, this one included. Forgets those whose lease is long over."""
        return await self._database.transaction(self._alive)

    def _renew(self, connection: Connection) -> None:
        now = now_seconds(connection)
        values = {"id": self._replica, "version": self._version, "started_at": now, "seen_at": now}
        if not insert_once(connection, REPLICAS, values):
            connection.execute(update(REPLICAS).where(REPLICAS.c.id == self._replica).values(seen_at=now))

    def _alive(self, connection: Connection) -> frozenset[str]:
        oldest = now_seconds(connection) - self._lease_seconds
        connection.execute(delete(REPLICAS).where(REPLICAS.c.seen_at < oldest, REPLICAS.c.id != self._replica))
        return frozenset({self._replica, *connection.execute(select(REPLICAS.c.id)).scalars()})


def now_seconds(connection: Connection) -> float:
    """Seconds since the epoch by the clock of the database's machine."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()
