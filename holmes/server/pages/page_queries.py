"""What the lists of the page show besides the records themselves, each with a fixed number of statements.

Used by the page. Functions of a connection, to be run by `Database.transaction`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from holmes.investigations.records.schema import ALERTS, INCIDENTS, INVESTIGATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from holmes.investigations.records.values import IncidentId, InvestigationState


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
