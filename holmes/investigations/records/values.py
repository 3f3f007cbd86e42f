"""Values for incidents, alerts and investigations, and their conversion to and from database rows.

All values are frozen. Times are timezone-aware datetimes in UTC.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import (
    UTC,
    datetime,
)
from typing import TYPE_CHECKING, Final, Literal, NewType, TypeAlias, TypeVar, overload

from holmes.values.codec import Codec
from holmes.values.stats import NOTHING_SPENT, RequestStats
from holmes.values.texts import whole_characters
from holmes.values.verdicts import VerdictAuthor, VerdictKind  # noqa: TC001  the codec reads the type hints

if TYPE_CHECKING:
    from sqlalchemy import Row

InvestigationId = NewType("InvestigationId", str)
IncidentId = NewType("IncidentId", str)

InvestigationState: TypeAlias = Literal["queued", "running", "answered", "failed", "cancelled"]
IncidentState: TypeAlias = Literal["open", "closed"]
AlertStatus: TypeAlias = Literal["firing", "resolved"]
ClosedBy: TypeAlias = Literal["hand", "stale"]
FINAL_STATES: tuple[InvestigationState, ...] = ("answered", "failed", "cancelled")
UNFINISHED_STATES: tuple[InvestigationState, ...] = ("queued", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert as its source sent it. `fingerprint` is never empty. `starts_at` is None if unknown.

    `cluster` is the configured cluster or the unknown cluster that a label names. It is None without `clusters`.
    """

    fingerprint: str
    status: AlertStatus
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    generator_url: str | None = None
    cluster: str | None = None

    @property
    def name(self) -> str:
        return self.labels.get("alertname") or "alert"

    @property
    def severity(self) -> str | None:
        """The value of the label `severity`, or None if the alert does not have this label."""
        return self.labels.get("severity") or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertGroup:
    """One notification from a source, with the alerts that the source grouped.

    `key` identifies the group in later notifications. It is empty if the source does not group alerts. `truncated` is
    the number of alerts that the source omitted.
    """

    key: str
    alerts: tuple[Alert, ...]
    receiver: str = ""
    common_labels: Mapping[str, str] = field(default_factory=dict)
    external_url: str | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAlert:
    """A stored alert of an incident, with the content of its last message.

    `received` is the number of messages about the alert. `tries` is the number of investigations since the alert
    started to fire.
    """

    alert: Alert
    incident_id: IncidentId
    investigation_id: InvestigationId | None
    received: int
    first_seen: datetime
    last_seen: datetime
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A group of related alerts.

    `verdict` and `summary` are those of the newest answer. `root_cause` is its summary if it found the cause.
    `closed_by` is `hand` or `stale` if the incident was closed before its alerts were resolved, else None.
    """

    id: IncidentId
    title: str
    state: IncidentState
    severity: str | None
    route: str
    group_key: str
    labels: Mapping[str, str]
    opened_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    reopened: int = 0
    root_cause: str | None = None
    verdict: VerdictKind | None = None
    summary: str | None = None
    closed_by: ClosedBy | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvestigation:
    """An investigation to queue. By default, `model` and `max_cost` come from the general settings.

    `source` is for example `alertmanager` or `api`. `without_llm` describes the exceeded limit that requires
    `builtin/triage`. It is None if the model may answer. `counted` is true if the investigation counts towards hourly
    limits. `cluster` is the configured cluster that it reads, or None without `clusters`.
    """

    question: str
    title: str
    source: str
    incident_id: IncidentId | None = None
    route: str = ""
    namespace: str | None = None
    model: str | None = None
    max_cost: float | None = None
    without_llm: str | None = None
    counted: bool = False
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationRecord:
    """A stored investigation. `attempts` is the number of times that a replica started or resumed it.

    `verdict`, `verdict_by` and `summary` are those of the answer. They are None without an answer, and for answers of
    older versions.
    """

    id: InvestigationId
    state: InvestigationState
    question: str
    title: str
    source: str
    created_at: datetime
    incident_id: IncidentId | None = None
    route: str = ""
    namespace: str | None = None
    model: str | None = None
    max_cost: float | None = None
    without_llm: str | None = None
    cluster: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    replica: str | None = None
    answer: str | None = None
    error: str | None = None
    answered_by: str | None = None
    verdict: VerdictKind | None = None
    verdict_by: VerdictAuthor | None = None
    summary: str | None = None
    stats: RequestStats = NOTHING_SPENT

    @property
    def root_cause(self) -> str | None:
        """The sentence that states the cause, or None if the answer found no cause."""
        return self.summary if self.verdict == "cause_found" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """One event of an investigation. Later events have higher ids. `data` is JSON (see `wire_events`)."""

    id: int
    name: str
    at: datetime
    data: str


def time_id(seconds: float) -> str:
    """Create an id that sorts by time: the milliseconds since the epoch and random digits, all in hexadecimal."""
    return f"{int(seconds * 1000):012x}{uuid.uuid4().hex[:12]}"


T = TypeVar("T")


def moment(seconds: float) -> datetime:
    """Convert a stored time to a datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def optional_moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)


def seconds_of(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def stats_to_json(stats: RequestStats) -> str:
    return json.dumps(_STATS.encode(stats))


def labels_to_json(labels: object) -> str:
    """Encode labels sorted by name, so that equal labels result in equal strings."""
    return json.dumps(labels, sort_keys=True, ensure_ascii=False)


def record_of(kind: type[T], row: Row[tuple[object, ...]]) -> T:
    """Convert a row to a dataclass whose fields have the names of the columns."""
    return _ROWS.decode(kind, row._asdict())


def known_alert_of(row: Row[tuple[object, ...]]) -> KnownAlert:
    columns = row._asdict()
    return _ROWS.decode(KnownAlert, {**columns, "alert": columns})


def _stats_of(text: str) -> RequestStats:
    return _STATS.decode(RequestStats, json.loads(text))


_STATS: Final = Codec()
_ROWS: Final = Codec(
    converters={datetime: moment, Mapping[str, str]: json.loads, RequestStats: _stats_of}, keeps_unknown=True
)


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """Replace NUL characters and lone surrogates in `text`, because PostgreSQL and UTF-8 do not allow them."""
    if text is None:
        return None
    return whole_characters(text.replace("\0", "\ufffd"))
