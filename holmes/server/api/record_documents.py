"""The JSON documents of the HTTP API for investigations, incidents, alerts and deliveries."""

import json
from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, JsonValue

from holmes.investigations.deliveries.records import Delivery, DeliveryState
from holmes.investigations.records.values import (
    ClosedBy,
    Incident,
    IncidentState,
    InvestigationRecord,
    InvestigationState,
    KnownAlert,
    StoredEvent,
)
from holmes.investigations.records.wire_events import usage_metadata
from holmes.values.verdicts import VerdictAuthor, VerdictKind


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a NUL character is not allowed")  # PostgreSQL rejects NUL
    return text


Clean = Annotated[str, AfterValidator(_without_nul)]
"""Text without NUL characters, which PostgreSQL rejects."""


class InvestigationDocument(BaseModel):
    """An investigation. `answer` is Markdown. `answered_by` is the model that answered. Costs are in US dollars.

    `verdict` and `summary` state what the answer claims. `root_cause` is the summary if the answer found the cause.
    """

    id: str
    state: InvestigationState
    title: str
    question: str
    source: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    incident_id: str | None
    route: str
    namespace: str | None
    model: str | None
    max_cost: float | None
    without_llm: str | None
    cluster: str | None
    attempts: int
    answer: str | None
    error: str | None
    answered_by: str | None
    verdict: VerdictKind | None
    verdict_by: VerdictAuthor | None
    summary: str | None
    root_cause: str | None
    cost: float
    metadata: dict[str, object]

    @classmethod
    def of(cls, record: InvestigationRecord) -> Self:
        return cls(
            id=record.id,
            state=record.state,
            title=record.title,
            question=record.question,
            source=record.source,
            created_at=record.created_at,
            started_at=record.started_at,
            finished_at=record.finished_at,
            incident_id=record.incident_id,
            route=record.route,
            namespace=record.namespace,
            model=record.model,
            max_cost=record.max_cost,
            without_llm=record.without_llm,
            cluster=record.cluster,
            attempts=record.attempts,
            answer=record.answer,
            error=record.error,
            answered_by=record.answered_by,
            verdict=record.verdict,
            verdict_by=record.verdict_by,
            summary=record.summary,
            root_cause=record.root_cause,
            cost=record.stats.cost,
            metadata=dict(usage_metadata(record.stats)),
        )


class InvestigationList(BaseModel):
    """Investigations, newest first. `next` is the value of `before` for the next page; null on the last page."""

    investigations: list[InvestigationDocument]
    next: str | None


class EventDocument(BaseModel):
    """One event, with the same names and fields as in a streamed chat."""

    id: int
    event: str
    at: datetime
    data: JsonValue

    @classmethod
    def of(cls, event: StoredEvent) -> Self:
        return cls(id=event.id, event=event.name, at=event.at, data=json.loads(event.data))


class EventList(BaseModel):
    """Events in order. `next` is the value of `Last-Event-ID` for the next request; null if no more events exist."""

    events: list[EventDocument]
    next: str | None


class InvestigationRequest(BaseModel):
    """A question to investigate. The investigation resumes if the server restarts."""

    question: Clean = Field(min_length=1, max_length=100_000, pattern=r"\S")
    title: Clean | None = Field(
        default=None, min_length=1, max_length=500, description="Title in lists. Default: the start of the question."
    )
    namespace: str | None = Field(default=None, pattern=r"^[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?$")
    cluster: Clean | None = Field(
        default=None, min_length=1, max_length=200, description="A configured cluster. Default: `default_cluster`."
    )
    model: str | None = Field(default=None, min_length=1, max_length=200)
    max_cost: float | None = Field(default=None, ge=0, le=1_000_000, description="Maximum cost in US dollars.")


class InvestigationReceipt(BaseModel):
    """The response for an investigation that is stored and queued."""

    id: str
    state: InvestigationState = "queued"


class IncidentDocument(BaseModel):
    """A group of related alerts. `verdict` and `summary` are those of the newest answer.

    `root_cause` is its summary if it found the cause, else null.
    `closed_by` is `hand` if a user closed the incident, `stale` if no more messages arrived, else null.
    """

    id: str
    title: str
    state: IncidentState
    severity: str | None
    route: str
    cluster: str | None
    group_key: str
    labels: dict[str, str]
    opened_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    closed_by: ClosedBy | None
    reopened: int
    verdict: VerdictKind | None
    summary: str | None
    root_cause: str | None

    @classmethod
    def of(cls, incident: Incident) -> Self:
        return cls(
            id=incident.id,
            title=incident.title,
            state=incident.state,
            severity=incident.severity,
            route=incident.route,
            cluster=incident.cluster,
            group_key=incident.group_key,
            labels=dict(incident.labels),
            opened_at=incident.opened_at,
            updated_at=incident.updated_at,
            closed_at=incident.closed_at,
            closed_by=incident.closed_by,
            reopened=incident.reopened,
            verdict=incident.verdict,
            summary=incident.summary,
            root_cause=incident.root_cause,
        )


class IncidentList(BaseModel):
    """Incidents, most recently changed first.

    `next` is the value of `before` for the next page; null on the last page.
    """

    incidents: list[IncidentDocument]
    next: str | None


class AlertDocument(BaseModel):
    """An alert with the content of its newest message. `received` is the number of messages about the alert."""

    fingerprint: str
    name: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime | None
    ends_at: datetime | None
    generator_url: str | None
    investigation_id: str | None
    received: int
    first_seen: datetime
    last_seen: datetime

    @classmethod
    def of(cls, known: KnownAlert) -> Self:
        alert = known.alert
        return cls(
            fingerprint=alert.fingerprint,
            name=alert.name,
            status=alert.status,
            labels=dict(alert.labels),
            annotations=dict(alert.annotations),
            starts_at=alert.starts_at,
            ends_at=alert.ends_at,
            generator_url=alert.generator_url,
            investigation_id=known.investigation_id,
            received=known.received,
            first_seen=known.first_seen,
            last_seen=known.last_seen,
        )


class DeliveryDocument(BaseModel):
    """A notification about an incident to one destination."""

    id: int
    destination: str
    event: str
    incident_id: str
    investigation_id: str | None
    state: DeliveryState
    attempts: int
    created_at: datetime
    due_at: datetime
    delivered_at: datetime | None
    last_error: str | None
    gave_up: bool

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        return cls(
            id=delivery.id,
            destination=delivery.destination,
            event=delivery.event,
            incident_id=delivery.incident_id,
            investigation_id=delivery.investigation_id,
            state=delivery.state,
            attempts=delivery.attempts,
            created_at=delivery.created_at,
            due_at=delivery.due_at,
            delivered_at=delivery.delivered_at,
            last_error=delivery.last_error,
            gave_up=delivery.gave_up,
        )


class DeliveryList(BaseModel):
    """Deliveries, newest first. `next` is the value of `before` for the next page; null on the last page."""

    deliveries: list[DeliveryDocument]
    next: int | None


class IncidentDetail(IncidentDocument):
    """An incident with its alerts, investigations (newest first) and deliveries.

    `alerts` has at most 200 alerts, firing alerts first. `alert_count` is the total number of alerts.
    """

    alert_count: int
    alerts: list[AlertDocument]
    investigations: list[InvestigationDocument]
    deliveries: list[DeliveryDocument]
