"""What an investigation has done already: finished steps and events, kept under their names. Used by the worker.

The steps of DBOS are numbered in the order in which they run, so that a workflow whose order changes (another version,
a compaction that comes earlier) cannot go on. Ours go by name, which the loop makes unique: what is recorded is never
done again, whatever else changed.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from holmes.investigations.records.schema import EVENTS, INVESTIGATIONS, STEPS
from holmes.investigations.records.step_codec import cost_of, step_from_bytes, step_to_bytes
from holmes.investigations.records.texts import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Table

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationId

# A finished step was paid for: the database may take long to come back before it is given up.
_RECORD_WAIT_SECONDS = 600.0


class LostInvestigation(Exception):
    """Another replica took this investigation over, or it was cancelled: whoever runs it must stop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who runs an investigation: the replica, and which attempt it is."""

    investigation_id: InvestigationId
    replica: str
    attempt: int


class Journal:
    """Steps and events of one attempt at an investigation."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    async def recorded_steps(self) -> Mapping[str, bytes]:
        """What earlier attempts finished, by name."""
        query = select(STEPS.c.name, STEPS.c.result).where(STEPS.c.investigation_id == self._lease.investigation_id)
        rows = await self._database.transaction(lambda connection: connection.execute(query).all())
        return {row.name: bytes(row.result) for row in rows}

    async def record_step(self, name: str, result: object) -> object:
        """Keep the result of a step; if somebody else recorded one meanwhile, that one counts and is returned.

        Raises `LostInvestigation` when this attempt is not the present one, after the step was kept all the same.
        """
        content = step_to_bytes(result)

        def record(connection: Connection) -> tuple[bytes, bool]:
            insert_once(
                connection,
                STEPS,
                {
                    "investigation_id": self._lease.investigation_id,
                    "name": name,
                    "result": content,
                    "cost": cost_of(result),
                    "finished_at": time.time(),
                },
            )
            query = select(STEPS.c.result).where(
                STEPS.c.investigation_id == self._lease.investigation_id, STEPS.c.name == name
            )
            return bytes(connection.execute(query).scalar_one()), self._is_mine(connection)

        kept, mine = await self._database.transaction(record, wait_seconds=_RECORD_WAIT_SECONDS)
        if not mine:
            raise LostInvestigation(self._lease.investigation_id)
        return result if kept == content else step_from_bytes(kept)

    async def record_cost(self, name: str, cost: float) -> None:
        """Keep what a step cost that failed all the same. It is done again when the investigation is."""
        values = {
            "investigation_id": self._lease.investigation_id,
            "name": f"{name}/failed-{uuid.uuid4().hex[:12]}",
            "result": b"null",
            "cost": cost,
            "finished_at": time.time(),
        }
        await self._database.transaction(
            lambda connection: insert_once(connection, STEPS, values), wait_seconds=_RECORD_WAIT_SECONDS
        )

    async def require_mine(self) -> None:
        """Raises `LostInvestigation` when this attempt is not the present one: nothing may be begun any more."""
        if not await self._database.transaction(self._is_mine, wait_seconds=_RECORD_WAIT_SECONDS):
            raise LostInvestigation(self._lease.investigation_id)

    async def add_events(self, events: tuple[tuple[str, str, str], ...]) -> None:
        """Keep events as (key, name, JSON); one whose key is there already is the same event of an earlier attempt."""
        now = time.time()

        def add(connection: Connection) -> None:
            for key, name, data in events:
                values = {
                    "investigation_id": self._lease.investigation_id,
                    "key": key,
                    "name": name,
                    "at": now,
                    "data": storable(data),
                }
                insert_once(connection, EVENTS, values)

        await self._database.transaction(add, wait_seconds=_RECORD_WAIT_SECONDS)

    def _is_mine(self, connection: Connection) -> bool:
        columns = INVESTIGATIONS.c
        query = select(columns.id).where(
            columns.id == self._lease.investigation_id,
            columns.state == "running",
            columns.replica == self._lease.replica,
            columns.attempts == self._lease.attempt,
        )
        return connection.execute(query).first() is not None


def insert_once(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row unless there is one with its key. Returns whether it was inserted."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values(**values).on_conflict_do_nothing()
    # Without the option PostgreSQL's count is not kept, and every row would look as if it had been there.
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount > 0
