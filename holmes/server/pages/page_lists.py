"""The lists of incidents (the start page) and of investigations. Each page runs a fixed number of SQL statements.

Invalid query parameters are ignored, so that a list page always loads. Functions that take a connection run within the
caller's transaction.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import urlencode

from fastapi.responses import Response  # noqa: TC002  FastAPI reads the annotations
from sqlalchemy import func, select

from holmes.investigations.records.records import (
    IncidentQuery,
    InvestigationQuery,
    list_incidents,
    list_investigations,
    position_of,
    queue_figures,
    spent_today,
)
from holmes.investigations.records.schema import ALERTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import InvestigationId, InvestigationState
from holmes.server.pages.page_rendering import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import APIRouter
    from sqlalchemy import Connection

    from holmes.app.serving import Service
    from holmes.investigations.records.records import ListedIncidents, QueueFigures
    from holmes.investigations.records.values import IncidentId, InvestigationRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFigures:
    """The number of alerts and investigations of an incident, and its cost.

    `model` and `state` describe its newest investigation.
    """

    alerts: int = 0
    firing: int = 0
    investigations: int = 0
    cost: float = 0.0
    model: str | None = None
    state: InvestigationState | None = None


_NO_FIGURES = IncidentFigures()


def _count_open(connection: Connection) -> int:
    """Count the open incidents."""
    counting = select(func.count()).select_from(INCIDENTS).where(INCIDENTS.c.state == "open")
    return int(connection.execute(counting).scalar() or 0)


def figures_of(connection: Connection, ids: Sequence[IncidentId]) -> Mapping[str, IncidentFigures]:
    """Read the counts and costs of incidents. Incidents without alerts and investigations are omitted."""
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


_PAGE_ROWS: Final = 50
_RECENT_ROWS = 10
_TEXT_CHARACTERS = 200
_STATES: Final[tuple[InvestigationState, ...]] = get_args(InvestigationState)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strip:
    """The summary above the lists. `spent` is today's cost in US dollars."""

    open_incidents: int
    spent: float
    queue: QueueFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The data of the incident list, read in one transaction."""

    listed: ListedIncidents
    figures: Mapping[str, IncidentFigures]
    recent: tuple[InvestigationRecord, ...]
    strip: _Strip


def list_routes(routes: APIRouter, service: Service) -> None:
    """Add the routes of the lists to `routes`."""

    @routes.get("/")
    async def incidents(state: str = "open", severity: str = "", q: str = "", after: str = "") -> Response:
        text = _searched(q)
        query = IncidentQuery(
            state="open" if state == "open" else "closed" if state == "closed" else None,
            severity=severity.strip()[:_TEXT_CHARACTERS] or None,
            text=text or None,
            after=position_of(after),
            limit=_PAGE_ROWS,
        )
        is_first = not (text or severity or after) and query.state == "open"
        # All queries run in one transaction, because each transaction waits for its turn.
        read = await service.database.read(lambda connection: _read(connection, query, with_recent=is_first))
        chosen = {"state": query.state or "all", "severity": query.severity or "", "q": text}
        return render(
            "incidents.html.jinja2",
            incidents=[(incident, read.figures.get(incident.id, _NO_FIGURES)) for incident in read.listed.incidents],
            recent=read.recent,
            chosen=chosen,
            filtered=bool(text or severity or after),
            older=_older(chosen, read.listed.cursor) if read.listed.cursor else None,
            **_common(service, read.strip),
        )

    @routes.get("/investigations")
    async def investigations(state: str = "", q: str = "", source: str = "", after: str = "") -> Response:
        text, origin = _searched(q), source.strip()[:_TEXT_CHARACTERS]
        query = InvestigationQuery(
            state=next((known for known in _STATES if known == state), None),
            source=origin or None,
            text=text or None,
            before=InvestigationId(after) if after.isalnum() and after.isascii() else None,
            limit=_PAGE_ROWS + 1,
        )
        listed, strip = await service.database.read(
            lambda connection: (list_investigations(connection, query), _strip(connection))
        )
        chosen = {"state": query.state or "", "q": text, "source": origin}
        return render(
            "investigations.html.jinja2",
            investigations=listed[:_PAGE_ROWS],
            states=_STATES,
            chosen=chosen,
            filtered=bool(text or origin or query.state or after),
            older=_older(chosen, listed[_PAGE_ROWS - 1].id) if len(listed) > _PAGE_ROWS else None,
            **_common(service, strip),
        )


def model_of(record: InvestigationRecord, default: str) -> str:
    """Return the model that answered, else the requested model, else the default model."""
    return record.answered_by or record.model or default


def _read(connection: Connection, query: IncidentQuery, *, with_recent: bool) -> _Read:
    listed = list_incidents(connection, query)
    return _Read(
        listed=listed,
        figures=figures_of(connection, [incident.id for incident in listed.incidents]),
        recent=list_investigations(connection, InvestigationQuery(limit=_RECENT_ROWS)) if with_recent else (),
        strip=_strip(connection),
    )


def _strip(connection: Connection) -> _Strip:
    return _Strip(
        open_incidents=_count_open(connection), spent=spent_today(connection), queue=queue_figures(connection)
    )


def _common(service: Service, strip: _Strip) -> dict[str, object]:
    queue = strip.queue
    mask = service.redactor.redact if service.redactor else str
    summary = {
        "open": strip.open_incidents,
        "running": queue.by_state.get("running", 0),
        "queued": queue.by_state.get("queued", 0),
        "wait_seconds": queue.oldest_wait_seconds,
        "spent": strip.spent,
        "limit": service.settings.server.max_cost_per_day,
    }
    return {
        "now": datetime.now(UTC),
        "summary": summary,
        "failed_toolsets": [
            (status.name, mask(status.reason or "")) for status in service.investigators.clusters.failed_toolsets
        ],
        "default_model": service.settings.model.model,
        "model_of": model_of,
        "signed_in": service.settings.server.api_key is not None,
    }


def _searched(text: str) -> str:
    """Remove NUL characters, which PostgreSQL rejects, from a search text, and replace lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()[:_TEXT_CHARACTERS]


def _older(chosen: dict[str, str], after: str) -> str:
    """Return the relative URL of the next page."""
    return "?" + urlencode({**{name: value for name, value in chosen.items() if value}, "after": after})
