"""Composes a notification from the stored records when the notification is sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from holmes.destinations.destination import AlertNews, IncidentNews, InvestigationNews
from holmes.investigations.deliveries.pictures import pictures_in, read_pictures
from holmes.investigations.records.schema import ALERTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import Incident, InvestigationRecord, known_alert_of, record_of
from holmes.settings.model import BUILTIN_MODEL
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection

    from holmes.investigations.deliveries.pictures import StoredPicture
    from holmes.investigations.deliveries.records import Delivery
    from holmes.investigations.records.database import Database
    from holmes.investigations.records.values import Alert, KnownAlert
    from holmes.values.tools import ResultStore

_MOST_ALERTS: Final = 100
_MOST_SUMMARY_CHARACTERS: Final = 500
_SUMMARIES: Final = ("summary", "description", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """The records of one notification, read in one transaction."""

    incident: Incident
    alerts: tuple[KnownAlert, ...]
    alerts_total: int
    investigation: InvestigationRecord | None
    pictures: tuple[StoredPicture, ...]


class NewsComposer:
    """Composes news about incidents. If `public_url` is None, the news contains no links.

    `cluster` is the name of the cluster of incidents that name none.

    `mask` masks secrets in alert texts. Answers were masked when they were created. `results` contains the pictures of
    an answer. Without it, the news has none.
    """

    def __init__(
        self,
        database: Database,
        *,
        public_url: str | None = None,
        cluster: str | None = None,
        mask: Callable[[str], str] | None = None,
        results: ResultStore | None = None,
    ) -> None:
        self._database = database
        self._results = results
        self._public_url = public_url.rstrip("/") if public_url else None
        self._cluster = cluster
        self._mask = mask or str

    async def compose(self, delivery: Delivery) -> IncidentNews | None:
        """Describe the current state of the delivery's incident. Returns None if the incident was deleted.

        Raises `DatabaseUnavailable`.
        """
        records = await self._database.read(lambda connection: _read(connection, delivery))
        if records is None:
            return None
        news = await asyncio.to_thread(self._news, delivery, records)
        if news.investigation is None or not records.pictures:
            return news
        pictures = await read_pictures(self._results, records.pictures)
        return replace(news, investigation=replace(news.investigation, pictures=pictures))

    def _news(self, delivery: Delivery, records: _Records) -> IncidentNews:
        incident, mask = records.incident, self._mask
        investigation = records.investigation
        return IncidentNews(
            kind=delivery.event,
            key=delivery.key,
            incident_id=incident.id,
            title=mask(incident.title),
            state=incident.state,
            severity=incident.severity,
            cluster=mask(incident.cluster) if incident.cluster else self._cluster,
            labels=self._masked(incident.labels),
            opened_at=incident.opened_at,
            updated_at=incident.updated_at,
            closed_at=incident.closed_at,
            reopened=incident.reopened,
            root_cause=mask(incident.root_cause) if incident.root_cause else None,
            verdict=incident.verdict,
            summary=mask(incident.summary) if incident.summary else None,
            alerts=tuple(self._alert(known.alert) for known in records.alerts),
            alerts_total=records.alerts_total,
            investigation=self._investigation(investigation) if investigation else None,
            link=self._link("incidents", incident.id),
            repeated=delivery.attempts > 1 or delivery.last_error is not None,
        )

    def _alert(self, alert: Alert) -> AlertNews:
        said = next((alert.annotations[name] for name in _SUMMARIES if alert.annotations.get(name)), None)
        return AlertNews(
            name=self._mask(alert.name),
            status=alert.status,
            severity=alert.severity,
            labels=self._masked(alert.labels),
            summary=self._summary(said) if said else None,
            starts_at=alert.starts_at,
            ends_at=alert.ends_at,
        )

    def _summary(self, said: str) -> str:
        return shortened(self._mask(" ".join(said.split())), _MOST_SUMMARY_CHARACTERS)

    def _investigation(self, record: InvestigationRecord) -> InvestigationNews:
        return InvestigationNews(
            id=record.id,
            state=record.state,
            answer=record.answer,
            root_cause=record.root_cause,
            verdict=record.verdict,
            verdict_by=record.verdict_by,
            summary=record.summary,
            error=self._mask(record.error) if record.error else None,
            model=record.answered_by or record.model,
            cost=record.stats.cost,
            without_llm=record.answered_by == BUILTIN_MODEL,
            without_llm_reason=self._mask(record.without_llm) if record.without_llm else None,
            started_at=record.started_at,
            finished_at=record.finished_at,
            link=self._link("investigations", record.id),
        )

    def _masked(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Mask each label value together with its name, because the name often identifies a secret."""
        masked = {}
        for name, value in labels.items():
            line = self._mask(f"{name}={value}")
            start = f"{name}="
            masked[name] = line.removeprefix(start) if line.startswith(start) else self._mask(value)
        return masked

    def _link(self, kind: str, identity: str) -> str | None:
        return f"{self._public_url}/{kind}/{identity}" if self._public_url else None


def _read(connection: Connection, delivery: Delivery) -> _Records | None:
    row = connection.execute(select(INCIDENTS).where(INCIDENTS.c.id == delivery.incident_id)).first()
    if row is None:
        return None
    columns = INVESTIGATIONS.c
    query = select(INVESTIGATIONS).where(columns.incident_id == delivery.incident_id)
    if delivery.investigation_id is not None:
        query = query.where(columns.id == delivery.investigation_id)
    investigation = connection.execute(query.order_by(columns.id.desc()).limit(1)).first()
    of_incident = ALERTS.c.incident_id == delivery.incident_id
    alerts = connection.execute(select(ALERTS).where(of_incident).order_by(ALERTS.c.first_seen).limit(_MOST_ALERTS))
    record = record_of(InvestigationRecord, investigation) if investigation else None
    return _Records(
        incident=record_of(Incident, row),
        alerts=tuple(map(known_alert_of, alerts)),
        alerts_total=connection.execute(select(func.count()).where(of_incident)).scalar_one(),
        investigation=record,
        pictures=pictures_in(connection, record) if record is not None and delivery.event == "answered" else (),
    )
