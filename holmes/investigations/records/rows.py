"""Between rows of the database and values."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from holmes.investigations.records.values import (
    Alert,
    Incident,
    IncidentId,
    InvestigationId,
    InvestigationRecord,
    KnownAlert,
    StoredEvent,
)
from holmes.values.stats import ModelSpend, RequestStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Row

    from holmes.investigations.records.values import IncidentState, InvestigationState

_STATS_FIELDS = frozenset(field.name for field in fields(RequestStats))


def moment(seconds: float) -> datetime:
    """A time of the database as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def optional_moment(seconds: float | None) -> datetime | None:
    """Like `moment`, for what may be missing."""
    return None if seconds is None else moment(seconds)


def seconds_of(at: datetime | None) -> float | None:
    """A time as the database keeps it."""
    return None if at is None else at.timestamp()


def stats_to_json(stats: RequestStats) -> str:
    """The text that `stats_from_json` reads."""
    return json.dumps(asdict(stats))


def stats_from_json(text: str) -> RequestStats:
    """Tolerates fields of another version."""
    return _stats_of(json.loads(text))


def _stats_of(document: Mapping[str, Any]) -> RequestStats:
    known = {name: value for name, value in document.items() if name in _STATS_FIELDS}
    summaries = known.pop("summaries", ())
    named = tuple(ModelSpend(model=each["model"], stats=_stats_of(each["stats"])) for each in summaries)
    return RequestStats(**known, summaries=named)


def labels_to_json(labels: object) -> str:
    """Labels with their names in order, so that equal labels are equal text."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def incident_of(row: Row[tuple[object, ...]]) -> Incident:
    """A row of `holmes_incidents`."""
    return Incident(
        id=IncidentId(row.id),
        title=row.title,
        state=cast("IncidentState", row.state),
        severity=row.severity,
        route=row.route,
        group_key=row.group_key,
        labels=json.loads(row.labels),
        opened_at=moment(row.opened_at),
        updated_at=moment(row.updated_at),
        closed_at=optional_moment(row.closed_at),
        reopened=row.reopened,
        root_cause=row.root_cause,
        closed_by=row.closed_by,
    )


def known_alert_of(row: Row[tuple[object, ...]]) -> KnownAlert:
    """A row of `holmes_alerts`."""
    return KnownAlert(
        alert=Alert(
            fingerprint=row.fingerprint,
            status=cast("Literal['firing', 'resolved']", row.status),
            labels=json.loads(row.labels),
            annotations=json.loads(row.annotations),
            starts_at=optional_moment(row.starts_at),
            ends_at=optional_moment(row.ends_at),
            generator_url=row.generator_url,
        ),
        incident_id=IncidentId(row.incident_id),
        investigation_id=InvestigationId(row.investigation_id) if row.investigation_id else None,
        received=row.received,
        tries=row.tries,
        first_seen=moment(row.first_seen),
        last_seen=moment(row.last_seen),
    )


def investigation_of(row: Row[tuple[object, ...]]) -> InvestigationRecord:
    """A row of `holmes_investigations`."""
    return InvestigationRecord(
        id=InvestigationId(row.id),
        state=cast("InvestigationState", row.state),
        question=row.question,
        title=row.title,
        source=row.source,
        created_at=moment(row.created_at),
        incident_id=IncidentId(row.incident_id) if row.incident_id else None,
        route=row.route,
        namespace=row.namespace,
        model=row.model,
        max_cost=row.max_cost,
        without_llm=row.without_llm,
        started_at=optional_moment(row.started_at),
        finished_at=optional_moment(row.finished_at),
        attempts=row.attempts,
        replica=row.replica,
        answer=row.answer,
        error=row.error,
        answered_by=row.answered_by,
        stats=stats_from_json(row.stats),
    )


def event_of(row: Row[tuple[object, ...]]) -> StoredEvent:
    """A row of `holmes_events`."""
    return StoredEvent(id=row.id, name=row.name, at=moment(row.at), data=row.data)
