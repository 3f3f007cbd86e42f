"""Closes incidents that no message closes: by hand, and when nothing was heard of them for long. Nobody is told.

Called by the records and by the cleaning up of `holmes.app`. A message that comes later may open them again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from sqlalchemy import exists, select, update

from holmes.investigations.records.database import lock_intake
from holmes.investigations.records.schema import ALERTS, INCIDENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import ClosedBy, IncidentId

_AT_ONCE: Final = 200
_REPEAT_SECONDS: Final = 5 * 3_600.0
"""Alertmanager repeats what fires every four hours, unless it is told otherwise."""


async def close_stale(database: Database, *, stale_seconds: float, listening_seconds: float) -> int:
    """Close open incidents without any message for so long, some at a time; returns how many there were.

    `listening_seconds` is for how long somebody has been there to hear a message: after an outage everything seems
    quiet until senders have repeated what still fires. Alerts of a closed incident stay as they are: one that still
    fires opens it again with its next message. Raises `DatabaseUnavailable`.
    """
    if listening_seconds < min(stale_seconds, _REPEAT_SECONDS):
        return 0
    return await database.transaction(lambda connection: _close_stale(connection, stale_seconds, time.time()))


def close_by_hand(connection: Connection, identity: IncidentId, now: float) -> bool:
    """Close an open incident within a transaction. False when it is not open.

    Its alerts count as over: whoever closed it does not want to hear of this firing again, only of the next.
    """
    lock_intake(connection)
    if not _close(connection, [identity], "hand", now):
        return False
    firing = (ALERTS.c.incident_id == identity, ALERTS.c.status == "firing")
    connection.execute(update(ALERTS).where(*firing).values(status="resolved", ends_at=now))
    return True


def _close_stale(connection: Connection, stale_seconds: float, now: float) -> int:
    lock_intake(connection)
    oldest = now - stale_seconds
    heard = exists().where(ALERTS.c.incident_id == INCIDENTS.c.id, ALERTS.c.last_seen >= oldest)
    stale = select(INCIDENTS.c.id).where(INCIDENTS.c.state == "open", INCIDENTS.c.opened_at < oldest, ~heard)
    identities = connection.execute(stale.limit(_AT_ONCE)).scalars().all()
    return _close(connection, identities, "stale", now) if identities else 0


def _close(connection: Connection, identities: Sequence[str], closed_by: ClosedBy, now: float) -> int:
    closed = update(INCIDENTS).where(INCIDENTS.c.id.in_(identities), INCIDENTS.c.state == "open")
    values = {"state": "closed", "closed_by": closed_by, "closed_at": now, "updated_at": now}
    return connection.execute(closed.values(**values)).rowcount
