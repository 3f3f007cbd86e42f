"""The outbox, which queues, claims, lists and retries notifications.

A changed incident and the notification about the change are stored in the same transaction. `DeliveryWorker` sends the
notifications.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the codec reads the type hints
from typing import TYPE_CHECKING, Literal, TypeAlias

from sqlalchemy import and_, exists, func, or_, select, update

from holmes.destinations.destination import NewsKind  # noqa: TC001  the codec reads the type hints
from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.replicas import now_seconds
from holmes.investigations.records.schema import DELIVERIES
from holmes.investigations.records.values import IncidentId, InvestigationId, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlalchemy import ColumnElement, Connection, Row, Update

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import InvestigationRecord


DeliveryState: TypeAlias = Literal["waiting", "delivered", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """News to queue. The same news is queued only once for each destination.

    `ordinal` distinguishes repeated events. For incident events, it is the number of times that the incident was
    reopened.
    """

    event: NewsKind
    incident_id: IncidentId
    investigation_id: InvestigationId | None = None
    ordinal: int = 0

    def key(self, destination: str) -> str:
        """Return the idempotency key, which is the same each time this news is queued or sent to `destination`."""
        return f"{self.incident_id}/{self.investigation_id or '-'}/{self.event}/{destination}/{self.ordinal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One notification for one destination.

    A delivery fails if the destination rejects it. It also fails after retries for about a day, and `gave_up` is then
    true. `last_error` is the error from the last attempt.
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
    """Queue news for all `destinations` within a transaction. Returns the number of new deliveries."""
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
    """Queue news about an answered or failed investigation, if it belongs to an incident.

    Returns the number of new deliveries.
    """
    if record.incident_id is None or record.state not in {"answered", "failed"}:
        return 0
    event: NewsKind = "answered" if record.state == "answered" else "failed"
    new = NewDelivery(event=event, incident_id=record.incident_id, investigation_id=record.id)
    return queue_delivery(connection, new, destinations, now)


class DeliveryRecords:
    """Lists and retries the deliveries of a database."""

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
        """List deliveries, newest first. `before` is the last id of the previous page."""
        columns = DELIVERIES.c
        conditions: list[ColumnElement[bool]] = []
        if incident_id is not None:
            conditions.append(columns.incident_id == incident_id)
        if state is not None:
            conditions.append(columns.state == state)
        if before is not None:
            conditions.append(columns.id < before)
        query = select(DELIVERIES).where(and_(True, *conditions)).order_by(columns.id.desc()).limit(limit)  # noqa: FBT003  an SQL literal
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(record_of(Delivery, row) for row in rows)

    async def get(self, identity: int) -> Delivery | None:
        """Read one delivery. Returns None for an unknown id."""
        query = select(DELIVERIES).where(DELIVERIES.c.id == identity)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else record_of(Delivery, row)

    async def retry(self, identity: int) -> bool:
        """Retry a failed delivery for another day. Returns false if the delivery has not failed."""
        statement = (
            update(DELIVERIES)
            .where(DELIVERIES.c.id == identity, DELIVERIES.c.state == "failed")
            .values(state="waiting", attempts=0, due_at=time.time(), claimed_until=None, gave_up=False)
        )
        return await self._database.transaction(lambda connection: connection.execute(statement).rowcount > 0)


_NOT_CONFIGURED = "this destination is no longer configured"
# The wait is short, because workers poll again after a second.
_TAKE_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A delivery that this worker owns until its lease expires. `reference` is passed to `Destination.send`."""

    delivery: Delivery
    reference: str | None


class DeliveryClaims:
    """Claims deliveries for one worker and records their outcome."""

    def __init__(self, database: Database, *, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds

    async def take(self, destination: str, limit: int) -> tuple[Claim, ...]:
        """Claim up to `limit` due deliveries until the lease expires."""
        return await self._database.transaction(
            lambda connection: self._take(connection, destination, limit), wait_seconds=_TAKE_WAIT_SECONDS
        )

    async def delivered(self, claim: Claim, reference: str | None) -> None:
        """Mark a delivery as delivered, even if another worker has claimed it in the meantime."""
        columns = DELIVERIES.c
        done = update(DELIVERIES).where(columns.id == claim.delivery.id, columns.state != "delivered")
        done = done.values(reference=func.coalesce(reference, columns.reference))
        await self._settle(
            lambda now: done.values(state="delivered", delivered_at=now, claimed_until=None, last_error=None)
        )

    async def later(self, claim: Claim, reason: str, *, seconds: float, reference: str | None) -> None:
        """Schedule a retry after `seconds`."""
        changed = _not_delivered(claim, reason, reference)
        await self._settle(lambda now: changed.values(due_at=now + seconds))

    async def failed(self, claim: Claim, reason: str, *, gave_up: bool, reference: str | None) -> None:
        """Mark a delivery as failed, without further retries."""
        changed = _not_delivered(claim, reason, reference)
        await self._settle(lambda _: changed.values(state="failed", gave_up=gave_up))

    async def abandon(self, configured: Collection[str], *, older_than_seconds: float) -> int:
        """Mark old deliveries as failed if their destination is not in `configured`.

        Deliveries that are waiting for a retry are included.

        Returns the number of failed deliveries.
        """
        columns = DELIVERIES.c
        nobodys = (columns.state == "waiting", columns.destination.not_in(configured))
        failed = update(DELIVERIES).values(state="failed", last_error=_NOT_CONFIGURED).where(*nobodys)
        return await self._database.transaction(
            lambda connection: (
                connection.execute(
                    failed.where(columns.created_at < now_seconds(connection) - older_than_seconds)
                ).rowcount
            )
        )

    async def _settle(self, at: Callable[[float], Update]) -> None:
        def settle(connection: Connection) -> None:
            connection.execute(at(now_seconds(connection)))

        await self._database.transaction(settle, wait_seconds=self._lease_seconds)

    def _take(self, connection: Connection, destination: str, limit: int) -> tuple[Claim, ...]:
        now = now_seconds(connection)
        columns = DELIVERIES.c
        earlier = DELIVERIES.alias("earlier")
        is_behind = exists().where(
            earlier.c.incident_id == columns.incident_id,
            earlier.c.destination == columns.destination,
            earlier.c.id < columns.id,
            earlier.c.state == "waiting",
        )
        is_free = or_(columns.claimed_until.is_(None), columns.claimed_until <= now)
        due = and_(columns.state == "waiting", columns.destination == destination, columns.due_at <= now, is_free)
        query = select(columns.id).where(due, ~is_behind).order_by(columns.id).limit(limit)
        identities = list(connection.execute(query.with_for_update(skip_locked=True, of=DELIVERIES)).scalars())
        if not identities:
            return ()
        mine = columns.id.in_(identities)
        claimed = {"claimed_until": now + self._lease_seconds, "attempts": columns.attempts + 1}
        connection.execute(update(DELIVERIES).where(mine).values(**claimed))
        rows = connection.execute(select(DELIVERIES).where(mine).order_by(columns.id)).all()
        return tuple(Claim(delivery=record_of(Delivery, row), reference=_reference(connection, row)) for row in rows)


def _not_delivered(claim: Claim, reason: str, reference: str | None) -> Update:
    """Build the UPDATE statement for an unsuccessful attempt.

    The statement has no effect if another worker owns the lease.
    """
    columns = DELIVERIES.c
    delivery = claim.delivery
    mine = update(DELIVERIES).where(
        columns.id == delivery.id, columns.state == "waiting", columns.attempts == delivery.attempts
    )
    kept = func.coalesce(reference, columns.reference)
    return mine.values(claimed_until=None, last_error=reason, reference=kept)


def _reference(connection: Connection, row: Row[tuple[object, ...]]) -> str | None:
    """Find the reference of an earlier attempt, or else of the newest delivery of this incident to this destination."""
    if row.reference is not None:
        return str(row.reference)
    columns = DELIVERIES.c
    query = (
        select(columns.reference)
        .where(
            columns.incident_id == row.incident_id,
            columns.destination == row.destination,
            columns.reference.is_not(None),
        )
        .order_by(columns.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()
