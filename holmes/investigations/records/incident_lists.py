"""Lists of incidents, the one that changed last first, page by page.

Where a page ends is a time and an id: all incidents of one payload change at the same time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select, tuple_

from holmes.investigations.records.rows import record_of
from holmes.investigations.records.schema import INCIDENTS
from holmes.investigations.records.values import Incident

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from holmes.investigations.records.values import IncidentState

CURSOR_PATTERN = r"^\d{1,12}(\.\d{1,17})?_[0-9A-Za-z\-]{1,40}$"
_CURSOR = re.compile(r"(\d{1,12}(?:\.\d{1,17})?)_([0-9A-Za-z-]{1,40})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentQuery:
    """Which incidents to list. `after` is where the page before this one ended."""

    state: IncidentState | None = None
    severity: str | None = None
    text: str | None = None
    after: tuple[float, str] | None = None
    limit: int = 50


EVERY_INCIDENT = IncidentQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncidents:
    """One page of a list. `next_after` is where the next one goes on, as the database has it; None at the end."""

    incidents: tuple[Incident, ...]
    next_after: tuple[float, str] | None

    @property
    def cursor(self) -> str | None:
        """`next_after` as text, for `position_of`."""
        return None if self.next_after is None else "{!r}_{}".format(*self.next_after)


def position_of(cursor: str) -> tuple[float, str] | None:
    """Where a page ended, from the text that said so; None for nonsense."""
    match = _CURSOR.fullmatch(cursor)
    return (float(match[1]), match[2]) if match else None


def list_incidents(connection: Connection, query: IncidentQuery) -> ListedIncidents:
    """The incidents that fit, within a transaction."""
    statement = select(INCIDENTS).where(and_(True, *_conditions(query)))  # noqa: FBT003  SQL's word
    statement = statement.order_by(INCIDENTS.c.updated_at.desc(), INCIDENTS.c.id.desc()).limit(query.limit + 1)
    rows = connection.execute(statement).all()
    shown = rows[: query.limit]
    is_more = len(rows) > query.limit
    return ListedIncidents(
        incidents=tuple(record_of(Incident, row) for row in shown),
        next_after=(float(shown[-1].updated_at), str(shown[-1].id)) if is_more else None,
    )


def _conditions(query: IncidentQuery) -> list[ColumnElement[bool]]:
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
