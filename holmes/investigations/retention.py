"""Deletes what is older than the user wants to keep. Called now and then by `holmes.app`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from holmes.investigations.chat_costs import CHATS
from holmes.investigations.schema import ALERTS, DELIVERIES, EVENTS, INCIDENTS, INVESTIGATIONS, RESULTS, STEPS
from holmes.investigations.values import FINAL_STATES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.database import Database

_AT_ONCE = 200


async def delete_old(database: Database, *, retention_seconds: float) -> tuple[str, ...]:
    """Delete finished investigations, closed incidents and results that nobody used for so long, some at a time.

    Returns the workflows that have no investigation any more. Raises `DatabaseUnavailable`.
    """
    return await database.transaction(lambda connection: _delete(connection, time.time() - retention_seconds))


def _delete(connection: Connection, oldest: float) -> tuple[str, ...]:
    columns = INVESTIGATIONS.c
    finished = (
        select(columns.id, columns.workflow_id)
        .where(columns.state.in_(FINAL_STATES), columns.finished_at < oldest)
        .limit(_AT_ONCE)
    )
    rows = connection.execute(finished).all()
    identities = [row.id for row in rows]
    if identities:
        for table in (EVENTS, STEPS):
            connection.execute(delete(table).where(table.c.investigation_id.in_(identities)))
        connection.execute(delete(INVESTIGATIONS).where(columns.id.in_(identities)))
    kept = select(columns.incident_id).where(columns.incident_id.is_not(None))
    closed = select(INCIDENTS.c.id).where(
        INCIDENTS.c.state == "closed", INCIDENTS.c.updated_at < oldest, INCIDENTS.c.id.not_in(kept)
    )
    gone = list(connection.execute(closed.limit(_AT_ONCE)).scalars())
    if gone:
        for table in (ALERTS, DELIVERIES):
            connection.execute(delete(table).where(table.c.incident_id.in_(gone)))
        connection.execute(delete(INCIDENTS).where(INCIDENTS.c.id.in_(gone)))
    connection.execute(delete(STEPS).where(STEPS.c.investigation_id == CHATS, STEPS.c.finished_at < oldest))
    connection.execute(delete(RESULTS).where(RESULTS.c.used_at < oldest))
    return tuple(row.workflow_id for row in rows if row.workflow_id)
