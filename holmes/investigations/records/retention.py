"""Deletes what is older than the user wants to keep. Called now and then by `holmes.app`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select

from holmes.investigations.records.chat_costs import CHATS
from holmes.investigations.records.schema import ALERTS, DELIVERIES, EVENTS, INCIDENTS, INVESTIGATIONS, RESULTS, STEPS
from holmes.investigations.records.values import FINAL_STATES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database

_AT_ONCE = 200


async def delete_old(database: Database, *, retention_seconds: float) -> tuple[str, ...]:
    """Delete finished investigations, closed incidents and results that nobody used for so long, some at a time.

    What belongs to an open incident stays. Returns the workflows that have no investigation any more, also those that
    earlier attempts had. Raises `DatabaseUnavailable`.
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
    """All workflows that an investigation had, the `last` one being `X` or `X.<number>`."""
    number = last.removeprefix(f"{identity}.")
    earlier = range(1, int(number)) if number.isdecimal() and number != last else range(0)
    return (*dict.fromkeys((identity, *(f"{identity}.{each}" for each in earlier), last)),)
