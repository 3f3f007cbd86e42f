"""News that is to reach destinations: queued with what it tells of, listed, tried again.

The outbox: whoever changes an incident or ends an investigation queues the news in the same transaction, so that
neither is without the other. `DeliveryWorker` sends it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the codec reads the hints
from typing import TYPE_CHECKING, Literal, TypeAlias

from sqlalchemy import and_, select, update

from holmes.destinations.destination import NewsKind  # noqa: TC001  the codec reads the hints
from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.rows import record_of
from holmes.investigations.records.schema import DELIVERIES
from holmes.investigations.records.values import IncidentId, InvestigationId  # noqa: TC001  the codec reads the hints

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement, Connection

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationRecord

DeliveryState: TypeAlias = Literal["waiting", "delivered", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """Something that destinations are to hear. The same again is queued once.

    `ordinal` tells apart what may happen to an incident more than once: for `resolved` and `reopened` it is how often
    the incident was opened again.
    """

    event: NewsKind
    incident_id: IncidentId
    investigation_id: InvestigationId | None = None
    ordinal: int = 0

    def key(self, destination: str) -> str:
        """What makes this delivery the same one when it is queued or sent again."""
        return f"{self.incident_id}/{self.investigation_id or '-'}/{self.event}/{destination}/{self.ordinal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One news for one destination.

    One that failed was refused by the destination, or, when `gave_up` is true, tried for about a day. `last_error` is
    of the last attempt, also while it is still tried.
    """

    id: int
    key: str
    destination: str
    event: NewsKind
    incident_id: IncidentId
    investigation_id: InvestigationId | None
    state: DeliveryState
    attempts: int
    created_at: datetime
    due_at: datetime
    delivered_at: datetime | None
    last_error: str | None
    gave_up: bool


def queue_delivery(connection: Connection, new: NewDelivery, destinations: Iterable[str], now: float) -> int:
    """Queue news for each of `destinations` within a transaction; returns how many were not queued already."""
    return sum(
        insert_once(
            connection,
            DELIVERIES,
            {
                "key": new.key(destination),
                "destination": destination,
                "event": new.event,
                "incident_id": new.incident_id,
                "investigation_id": new.investigation_id,
                "state": "waiting",
                "attempts": 0,
                "created_at": now,
                "due_at": now,
                "gave_up": False,
            },
        )
        for destination in destinations
    )


def queue_finished(connection: Connection, record: InvestigationRecord, destinations: Iterable[str], now: float) -> int:
    """Queue that an investigation of an incident was answered or failed; others are nobody's news."""
    if record.incident_id is None or record.state not in {"answered", "failed"}:
        return 0
    event: NewsKind = "answered" if record.state == "answered" else "failed"
    new = NewDelivery(event=event, incident_id=record.incident_id, investigation_id=record.id)
    return queue_delivery(connection, new, destinations, now)


class DeliveryRecords:
    """The deliveries of this database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self,
        *,
        incident_id: IncidentId | None = None,
        state: DeliveryState | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[Delivery, ...]:
        """The newest first, those of an incident or in a state; `before` is the id to go on after."""
        columns = DELIVERIES.c
        conditions: list[ColumnElement[bool]] = []
        if incident_id is not None:
            conditions.append(columns.incident_id == incident_id)
        if state is not None:
            conditions.append(columns.state == state)
        if before is not None:
            conditions.append(columns.id < before)
        query = select(DELIVERIES).where(and_(True, *conditions)).order_by(columns.id.desc()).limit(limit)  # noqa: FBT003  SQL's word
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(record_of(Delivery, row) for row in rows)

    async def get(self, identity: int) -> Delivery | None:
        """One delivery; None when there is none of this id."""
        query = select(DELIVERIES).where(DELIVERIES.c.id == identity)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else record_of(Delivery, row)

    async def retry(self, identity: int) -> bool:
        """Try a failed delivery again for another day. False when it is none."""
        statement = (
            update(DELIVERIES)
            .where(DELIVERIES.c.id == identity, DELIVERIES.c.state == "failed")
            .values(state="waiting", attempts=0, due_at=time.time(), claimed_until=None, gave_up=False)
        )
        return await self._database.transaction(lambda connection: connection.execute(statement).rowcount > 0)
