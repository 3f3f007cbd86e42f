"""Who sends which delivery, and what became of it, in the database.

A claim is a lease: it ends by itself when its owner dies. Of one incident and destination only the oldest delivery that
waits can be claimed, because later news builds on what earlier news left behind. Times are those of the database's
clock, so that replicas agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, exists, func, or_, select, update

from holmes.investigations.deliveries.records import Delivery
from holmes.investigations.records.replicas import now_seconds
from holmes.investigations.records.rows import record_of
from holmes.investigations.records.schema import DELIVERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection, Row, Update

    from holmes.investigations.records.database import Database

_NOT_CONFIGURED = "this destination is not in the configuration any more"
# Whoever takes comes again a second later anyway.
_TAKE_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A delivery that is ours for now. `reference` is what this attempt goes on from, see `Destination.send`."""

    delivery: Delivery
    reference: str | None


class DeliveryClaims:
    """Claims of one worker."""

    def __init__(self, database: Database, *, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds

    async def take(self, destination: str, limit: int) -> tuple[Claim, ...]:
        """Up to `limit` deliveries that are due; nobody else gets them while the lease lasts."""
        return await self._database.transaction(
            lambda connection: self._take(connection, destination, limit), wait_seconds=_TAKE_WAIT_SECONDS
        )

    async def delivered(self, claim: Claim, reference: str | None) -> None:
        """It arrived, whoever has it claimed meanwhile."""
        columns = DELIVERIES.c
        done = update(DELIVERIES).where(columns.id == claim.delivery.id, columns.state != "delivered")
        done = done.values(reference=func.coalesce(reference, columns.reference))
        await self._settle(
            lambda now: done.values(state="delivered", delivered_at=now, claimed_until=None, last_error=None)
        )

    async def later(self, claim: Claim, reason: str, *, seconds: float, reference: str | None) -> None:
        """Try it again after `seconds`."""
        changed = _not_delivered(claim, reason, reference)
        await self._settle(lambda now: changed.values(due_at=now + seconds))

    async def failed(self, claim: Claim, reason: str, *, gave_up: bool, reference: str | None) -> None:
        """It is not tried again."""
        changed = _not_delivered(claim, reason, reference)
        await self._settle(lambda _: changed.values(state="failed", gave_up=gave_up))

    async def abandon(self, configured: Collection[str], *, older_than_seconds: float) -> int:
        """Let those fail that have waited so long for a destination that is not `configured`.

        Tried or not: what was tried once waits for its next attempt, and nobody makes it any more.
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
    """The change of the row, unless the lease was lost and somebody else has it."""
    columns = DELIVERIES.c
    delivery = claim.delivery
    mine = update(DELIVERIES).where(
        columns.id == delivery.id, columns.state == "waiting", columns.attempts == delivery.attempts
    )
    kept = func.coalesce(reference, columns.reference)
    return mine.values(claimed_until=None, last_error=reason, reference=kept)


def _reference(connection: Connection, row: Row[tuple[object, ...]]) -> str | None:
    """What an earlier attempt at this delivery left behind, else the newest delivery of the incident there."""
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
