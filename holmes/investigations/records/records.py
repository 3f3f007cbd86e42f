"""Lists, reads, cancels and closes stored investigations and incidents.

Functions that take a connection run within the caller's transaction. Methods run their own transaction.

If no message resolves an incident's alerts, the user can close the incident, or Holmes closes it after a long time
without messages. Holmes sends no notification in these cases, and a later message may reopen the incident.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, exists, func, insert, or_, select, tuple_, update

from holmes.investigations.records.database import lock_intake
from holmes.investigations.records.schema import ALERTS, EVENTS, INCIDENTS, INVESTIGATIONS, STEPS
from holmes.investigations.records.values import (
    FINAL_STATES,
    Incident,
    InvestigationId,
    InvestigationRecord,
    StoredEvent,
    known_alert_of,
    record_of,
    stats_to_json,
    storable,
    time_id,
)
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import (
        ClosedBy,
        IncidentId,
        IncidentState,
        InvestigationState,
        KnownAlert,
        NewInvestigation,
    )

SECONDS_PER_DAY = 86_400
SECONDS_PER_HOUR = 3_600
_MOST_ALERTS_SHOWN: Final = 200
_CANCELLED = "cancelled"
_UNFINISHED = ("queued", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationQuery:
    """A filter for a list of investigations, newest first.

    A field that is None matches all investigations. `before` is the last id of the previous page.
    """

    state: InvestigationState | None = None
    source: str | None = None
    incident_id: IncidentId | None = None
    text: str | None = None
    before: InvestigationId | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """The number of investigations in each state, and the age of the oldest queued investigation in seconds."""

    by_state: Mapping[InvestigationState, int]
    oldest_wait_seconds: float


def add_investigation(connection: Connection, new: NewInvestigation, now: float) -> InvestigationId:
    """Queue an investigation within a transaction. Returns its id. Ids sort by creation time."""
    identity = InvestigationId(time_id(now))
    add_investigations(connection, {identity: new}, now)
    return identity


def add_investigations(connection: Connection, new: Mapping[InvestigationId, NewInvestigation], now: float) -> None:
    """Queue investigations within a transaction. The keys of `new` are their ids."""
    rows = [
        {
            "id": identity,
            "incident_id": each.incident_id,
            "state": "queued",
            "source": each.source,
            "title": storable(each.title),
            "question": storable(each.question),
            "route": each.route,
            "namespace": each.namespace,
            "model": each.model,
            "max_cost": each.max_cost,
            "without_llm": each.without_llm,
            "cluster": each.cluster,
            "counted": int(each.counted),
            "created_at": now,
            "attempts": 0,
            "stats": stats_to_json(NOTHING_SPENT),
            "cost": 0.0,
        }
        for identity, each in new.items()
    ]
    if rows:
        connection.execute(insert(INVESTIGATIONS), rows)


def list_investigations(connection: Connection, query: InvestigationQuery) -> tuple[InvestigationRecord, ...]:
    """List the newest investigations that match `query`, within a transaction."""
    statement = select(INVESTIGATIONS).where(and_(True, *_conditions(query)))  # noqa: FBT003  an SQL literal
    statement = statement.order_by(INVESTIGATIONS.c.id.desc()).limit(query.limit)
    return tuple(record_of(InvestigationRecord, row) for row in connection.execute(statement))


def queue_figures(connection: Connection) -> QueueFigures:
    """Count the investigations by state, within a transaction."""
    counting = select(INVESTIGATIONS.c.state, func.count()).group_by(INVESTIGATIONS.c.state)
    waiting = select(func.min(INVESTIGATIONS.c.created_at)).where(INVESTIGATIONS.c.state == "queued")
    oldest = connection.execute(waiting).scalar()
    counted = {row[0]: row[1] for row in connection.execute(counting)}
    return QueueFigures(by_state=counted, oldest_wait_seconds=time.time() - oldest if oldest else 0.0)


class InvestigationRecords:
    """Reads and changes the stored investigations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, new: NewInvestigation) -> InvestigationId:
        """Queue an investigation, which `InvestigationQueue` then finds and runs."""
        return await self._database.transaction(lambda connection: add_investigation(connection, new, time.time()))

    async def get(self, identity: InvestigationId) -> InvestigationRecord | None:
        """Read one investigation. Returns None for an unknown id."""
        query = select(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else record_of(InvestigationRecord, row)

    async def list(self, query: InvestigationQuery) -> tuple[InvestigationRecord, ...]:
        """List the newest investigations that match `query`."""
        return await self._database.read(lambda connection: list_investigations(connection, query))

    async def events(self, identity: InvestigationId, *, after: int = 0, limit: int = 500) -> tuple[StoredEvent, ...]:
        """Read an investigation's events with ids above `after`, in order."""
        statement = (
            select(EVENTS)
            .where(EVENTS.c.investigation_id == identity, EVENTS.c.id > after)
            .order_by(EVENTS.c.id)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return tuple(record_of(StoredEvent, row) for row in rows)

    async def cancel(self, identity: InvestigationId) -> bool:
        """Cancel an unfinished investigation, which then stops within a second. Returns false if it has finished."""
        statement = (
            update(INVESTIGATIONS)
            .where(INVESTIGATIONS.c.id == identity, INVESTIGATIONS.c.state.not_in(FINAL_STATES))
            .values(state=_CANCELLED, finished_at=time.time(), error="Cancelled.")
        )
        return await self._database.transaction(lambda connection: connection.execute(statement).rowcount > 0)

    async def figures(self) -> QueueFigures:
        """Count the investigations by state."""
        return await self._database.read(queue_figures)

    async def count_unfinished(self) -> int:
        """Count the queued and running investigations."""
        query = select(func.count()).where(INVESTIGATIONS.c.state.in_(_UNFINISHED))
        return await self._database.read(lambda connection: int(connection.execute(query).scalar() or 0))

    async def unfinished(self, among: Sequence[InvestigationId]) -> frozenset[InvestigationId]:
        """Return the investigations from `among` that are queued or running."""
        columns = INVESTIGATIONS.c
        query = select(columns.id).where(columns.id.in_(among), columns.state.in_(_UNFINISHED))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return frozenset(InvestigationId(row.id) for row in rows)

    async def spent_today(self) -> float:
        """Return the cost of all chats and investigations since midnight UTC, in US dollars."""
        return await self._database.read(spent_today)


CURSOR_PATTERN = r"^\d{1,12}(\.\d{1,17})?_[0-9A-Za-z\-]{1,40}$"
_CURSOR = re.compile(r"(\d{1,12}(?:\.\d{1,17})?)_([0-9A-Za-z-]{1,40})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentQuery:
    """A filter for a list of incidents. `after` is the position of the last incident on the previous page."""

    state: IncidentState | None = None
    severity: str | None = None
    text: str | None = None
    after: tuple[float, str] | None = None
    limit: int = 50


_EVERY_INCIDENT = IncidentQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncidents:
    """One page of a list of incidents.

    `next_after` contains the update time and the id of its last incident. It is None on the last page.
    """

    incidents: tuple[Incident, ...]
    next_after: tuple[float, str] | None

    @property
    def cursor(self) -> str | None:
        """`next_after` as a string that `position_of` can parse."""
        return None if self.next_after is None else "{!r}_{}".format(*self.next_after)


def position_of(cursor: str) -> tuple[float, str] | None:
    """Parse a cursor into the position of an incident. Returns None for an invalid cursor."""
    match = _CURSOR.fullmatch(cursor)
    return (float(match[1]), match[2]) if match else None


def list_incidents(connection: Connection, query: IncidentQuery) -> ListedIncidents:
    """List the incidents that match `query`, most recently changed first, within a transaction."""
    statement = select(INCIDENTS).where(and_(True, *_incident_conditions(query)))  # noqa: FBT003  an SQL literal
    statement = statement.order_by(INCIDENTS.c.updated_at.desc(), INCIDENTS.c.id.desc()).limit(query.limit + 1)
    rows = connection.execute(statement).all()
    shown = rows[: query.limit]
    is_more = len(rows) > query.limit
    return ListedIncidents(
        incidents=tuple(record_of(Incident, row) for row in shown),
        next_after=(float(shown[-1].updated_at), str(shown[-1].id)) if is_more else None,
    )


def _incident_conditions(query: IncidentQuery) -> list[ColumnElement[bool]]:
    columns = INCIDENTS.c
    conditions: list[ColumnElement[bool]] = []
    if query.state:
        conditions.append(columns.state == query.state)
    if query.severity:
        conditions.append(func.lower(columns.severity) == query.severity.lower())
    if query.after:
        conditions.append(tuple_(columns.updated_at, columns.id) < query.after)
    if query.text:
        found = (
            column.icontains(query.text, autoescape=True)
            for column in (columns.title, columns.root_cause, columns.labels, columns.severity)
        )
        conditions.append(or_(*found))
    return conditions


class IncidentRecords:
    """Reads and closes the stored incidents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, query: IncidentQuery = _EVERY_INCIDENT) -> ListedIncidents:
        """List the incidents that match `query`, most recently changed first."""
        return await self._database.read(lambda connection: list_incidents(connection, query))

    async def get(self, identity: IncidentId) -> Incident | None:
        """Read one incident. Returns None for an unknown id."""
        query = select(INCIDENTS).where(INCIDENTS.c.id == identity)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else record_of(Incident, row)

    async def alerts(self, identity: IncidentId, *, limit: int = _MOST_ALERTS_SHOWN) -> tuple[KnownAlert, ...]:
        """Read the alerts of an incident. Firing alerts come first, then resolved alerts.

        Both groups are in order of arrival.
        """
        columns = ALERTS.c
        query = select(ALERTS).where(columns.incident_id == identity)
        # "firing" sorts before "resolved"
        query = query.order_by(columns.status, columns.first_seen, columns.fingerprint).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(map(known_alert_of, rows))

    async def count_alerts(self, identity: IncidentId) -> int:
        """Count the alerts of an incident."""
        query = select(func.count()).where(ALERTS.c.incident_id == identity)
        return await self._database.read(lambda connection: int(connection.execute(query).scalar() or 0))

    async def close(self, identity: IncidentId) -> bool:
        """Close an incident at the user's request (see `close_by_hand`). Returns false if it is not open."""
        return await self._database.transaction(lambda connection: _close_by_hand(connection, identity, time.time()))


def spent_today(connection: Connection) -> float:
    """Sum the cost of all chats and investigations since midnight UTC within a transaction, in US dollars."""
    midnight = time.time() // SECONDS_PER_DAY * SECONDS_PER_DAY
    return float(
        connection.execute(
            select(func.coalesce(func.sum(STEPS.c.cost), 0)).where(STEPS.c.finished_at >= midnight)
        ).scalar()
        or 0.0
    )


def _conditions(query: InvestigationQuery) -> list[ColumnElement[bool]]:
    columns = INVESTIGATIONS.c
    conditions: list[ColumnElement[bool]] = []
    for column, value in (
        (columns.state, query.state),
        (columns.source, query.source),
        (columns.incident_id, query.incident_id),
    ):
        if value is not None:
            conditions.append(column == value)
    if query.before is not None:
        conditions.append(columns.id < query.before)
    if query.text:
        searched = (columns.title, columns.question, columns.answer)
        conditions.append(or_(*(column.icontains(query.text, autoescape=True) for column in searched)))
    return conditions


_AT_ONCE: Final = 200
_REPEAT_SECONDS: Final = 5 * 3_600.0
"""Time within which every sender repeats its firing alerts. Alertmanager repeats them every four hours by default."""


async def close_stale(database: Database, *, stale_seconds: float, listening_seconds: float) -> int:
    """Close a batch of open incidents that received no message for `stale_seconds`.

    Returns the number of closed incidents. `listening_seconds` is the time since the server started. After an outage,
    no incident is closed until senders have had time to repeat firing alerts. Alerts are not changed, so an alert that
    is still firing reopens its incident with its next message. Raises `DatabaseUnavailable`.
    """
    if listening_seconds < min(stale_seconds, _REPEAT_SECONDS):
        return 0
    return await database.transaction(lambda connection: _close_stale(connection, stale_seconds, time.time()))


def _close_by_hand(connection: Connection, identity: IncidentId, now: float) -> bool:
    """Close an open incident within a transaction. Returns false if it is not open.

    Its alerts count as resolved until they fire again.
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
