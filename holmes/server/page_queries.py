"""What the lists of the page show besides the records themselves, each with a fixed number of statements.

Used by the page. Functions of a connection, to be run by `Database.transaction`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, or_, select, tuple_

from holmes.investigations.rows import incident_of
from holmes.investigations.schema import ALERTS, INCIDENTS, INVESTIGATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from holmes.investigations.values import Incident, IncidentId, IncidentState, InvestigationState


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentQuery:
    """Which incidents to list, the one that changed last first. `after` is where the page before this one ended."""

    state: IncidentState | None = None
    severity: str | None = None
    text: str | None = None
    after: tuple[float, str] | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFigures:
    """An incident in numbers. `model` and `state` are those of its newest investigation."""

    alerts: int = 0
    firing: int = 0
    investigations: int = 0
    cost: float = 0.0
    model: str | None = None
    state: InvestigationState | None = None


NO_FIGURES = IncidentFigures()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncidents:
    """One page of a list. `next_after` is where the next one goes on, as the database has it; None at the end."""

    incidents: tuple[Incident, ...]
    next_after: tuple[float, str] | None


def list_incidents(connection: Connection, query: IncidentQuery) -> ListedIncidents:
    """The incidents that fit."""
    statement = select(INCIDENTS).where(and_(True, *_conditions(query)))  # noqa: FBT003  SQL's word
    statement = statement.order_by(INCIDENTS.c.updated_at.desc(), INCIDENTS.c.id.desc()).limit(query.limit + 1)
    rows = connection.execute(statement).all()
    shown = rows[: query.limit]
    is_more = len(rows) > query.limit
    return ListedIncidents(
        incidents=tuple(map(incident_of, shown)),
        next_after=(float(shown[-1].updated_at), str(shown[-1].id)) if is_more else None,
    )


def count_open(connection: Connection) -> int:
    """How many incidents are open."""
    counting = select(func.count()).select_from(INCIDENTS).where(INCIDENTS.c.state == "open")
    return int(connection.execute(counting).scalar() or 0)


def figures_of(connection: Connection, ids: Sequence[IncidentId]) -> Mapping[str, IncidentFigures]:
    """The figures of these incidents; one that has none is left out."""
    if not ids:
        return {}
    alerts: dict[str, dict[str, int]] = defaultdict(dict)
    counting = select(ALERTS.c.incident_id, ALERTS.c.status, func.count()).where(ALERTS.c.incident_id.in_(ids))
    for incident, status, number in connection.execute(counting.group_by(ALERTS.c.incident_id, ALERTS.c.status)):
        alerts[incident][status] = number
    columns = INVESTIGATIONS.c
    summing = select(columns.incident_id, func.count(), func.sum(columns.cost), func.max(columns.id))
    sums = connection.execute(summing.where(columns.incident_id.in_(ids)).group_by(columns.incident_id)).all()
    choosing = select(columns.id, columns.state, func.coalesce(columns.answered_by, columns.model))
    newest = {
        row[0]: (row[1], row[2]) for row in connection.execute(choosing.where(columns.id.in_([row[3] for row in sums])))
    }
    found = {
        row[0]: IncidentFigures(
            alerts=sum(alerts[row[0]].values()),
            firing=alerts[row[0]].get("firing", 0),
            investigations=row[1],
            cost=float(row[2] or 0.0),
            state=newest[row[3]][0],
            model=newest[row[3]][1],
        )
        for row in sums
    }
    for incident, by_status in alerts.items():
        counted = IncidentFigures(alerts=sum(by_status.values()), firing=by_status.get("firing", 0))
        found.setdefault(incident, counted)
    return found


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
