"""Stores tool results in the database that several replicas share, and deletes old records."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select, update

from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import (
    ALERTS,
    CHATS,
    DELIVERIES,
    EVENTS,
    INCIDENTS,
    INVESTIGATIONS,
    RESULTS,
    STEPS,
)
from holmes.investigations.records.values import FINAL_STATES
from holmes.values.errors import HolmesError, ResultStoreError
from holmes.values.messages import ResultId, StoredResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database
    from holmes.values.messages import ToolCallId


_ID_CHARACTERS = 16
_MOST_BYTES = 256 * 1024 * 1024


class DatabaseResultStore:
    """Stores results under an id that is derived from the content, so that equal content is stored once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:  # noqa: ARG002  the protocol's parameters
        """Store `content`. Raises `ResultStoreError` if `content` exceeds 256 MiB or the database fails."""
        if len(content) > _MOST_BYTES:
            raise ResultStoreError(f"a result of {len(content):,} bytes is too large for the database")
        identity = ResultId(hashlib.sha256(content).hexdigest()[:_ID_CHARACTERS])
        now = time.time()
        values = {
            "id": identity,
            "media_type": media_type,
            "size_bytes": len(content),
            "content": content,
            "stored_at": now,
            "used_at": now,
        }

        def store(connection: Connection) -> None:
            if not insert_once(connection, RESULTS, values):
                connection.execute(update(RESULTS).where(RESULTS.c.id == identity).values(used_at=now))

        try:
            await self._database.transaction(store, wait_seconds=60.0)
        except HolmesError as error:
            raise ResultStoreError(f"cannot store a result: {error}") from error
        return StoredResult(id=identity, path=None, size_bytes=len(content), media_type=media_type)

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """Read the content and the metadata of a result. Raises `ResultStoreError` for an unknown id."""
        query = select(RESULTS.c.content, RESULTS.c.media_type).where(RESULTS.c.id == result_id)
        try:
            row = await self._database.transaction(lambda connection: connection.execute(query).first())
        except HolmesError as error:
            raise ResultStoreError(f"cannot read a stored result: {error}") from error
        if row is None:
            raise ResultStoreError(f"stored result {result_id!r} not found; it may have expired")
        content = bytes(row.content)
        return content, StoredResult(id=result_id, path=None, size_bytes=len(content), media_type=row.media_type)


_AT_ONCE = 200


async def delete_old(database: Database, *, retention_seconds: float) -> tuple[str, ...]:
    """Delete a batch of old finished investigations, closed incidents, chat costs and unused results.

    The records of open incidents are kept. Returns all workflow ids of the deleted investigations. Raises
    `DatabaseUnavailable`.
    """
    return await database.transaction(lambda connection: _delete(connection, time.time() - retention_seconds))


def _delete(connection: Connection, oldest: float) -> tuple[str, ...]:
    workflows = _delete_investigations(connection, oldest)
    _delete_incidents(connection, oldest)
    connection.execute(delete(STEPS).where(STEPS.c.investigation_id == CHATS, STEPS.c.finished_at < oldest))
    unused = select(RESULTS.c.id).where(RESULTS.c.used_at < oldest).order_by(RESULTS.c.used_at).limit(_AT_ONCE)
    connection.execute(delete(RESULTS).where(RESULTS.c.id.in_(unused), RESULTS.c.used_at < oldest))
    return workflows


def _delete_investigations(connection: Connection, oldest: float) -> tuple[str, ...]:
    columns = INVESTIGATIONS.c
    is_open = exists().where(INCIDENTS.c.id == columns.incident_id, INCIDENTS.c.state == "open")
    finished = (
        select(columns.id, columns.workflow_id)
        .where(columns.state.in_(FINAL_STATES), columns.finished_at < oldest, ~is_open)
        .limit(_AT_ONCE)
    )
    rows = connection.execute(finished).all()
    identities = [row.id for row in rows]
    if identities:
        for table in (EVENTS, STEPS):
            connection.execute(delete(table).where(table.c.investigation_id.in_(identities)))
        connection.execute(delete(INVESTIGATIONS).where(columns.id.in_(identities)))
    return tuple(name for row in rows if row.workflow_id for name in _workflows(row.id, row.workflow_id))


def _delete_incidents(connection: Connection, oldest: float) -> None:
    kept = select(INVESTIGATIONS.c.incident_id).where(INVESTIGATIONS.c.incident_id.is_not(None))
    closed = select(INCIDENTS.c.id).where(
        INCIDENTS.c.state == "closed", INCIDENTS.c.updated_at < oldest, INCIDENTS.c.id.not_in(kept)
    )
    gone = list(connection.execute(closed.limit(_AT_ONCE)).scalars())
    if gone:
        for table in (ALERTS, DELIVERIES):
            connection.execute(delete(table).where(table.c.incident_id.in_(gone)))
        connection.execute(delete(INCIDENTS).where(INCIDENTS.c.id.in_(gone)))


def _workflows(identity: str, last: str) -> tuple[str, ...]:
    """Return all workflow ids of an investigation. `last` is the newest id, in the form `<id>` or `<id>.<number>`."""
    number = last.removeprefix(f"{identity}.")
    earlier = range(1, int(number)) if number.isdecimal() and number != last else range(0)
    return (*dict.fromkeys((identity, *(f"{identity}.{each}" for each in earlier), last)),)
