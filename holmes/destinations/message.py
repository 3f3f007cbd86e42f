"""What a destination is told about an incident. Composed by `holmes.investigations`, worded by each destination.

All values are frozen and hold what is true when the news is sent, not when it was queued: a destination that was away
for an hour hears how things stand. Texts of alerts come from outside and may be hostile: whoever writes them somewhere
escapes them for that place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

NewsKind: TypeAlias = Literal["opened", "answered", "failed", "resolved", "reopened"]
"""What happened: the incident was opened, closed or opened again, or an investigation of it came to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertNews:
    """One alert of the incident. `summary` is what its annotations say in one line."""

    name: str
    status: Literal["firing", "resolved"]
    labels: Mapping[str, str]
    severity: str | None = None
    summary: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationNews:
    """The investigation that the news is about. `answer` is Markdown and `root_cause` its first line.

    `without_llm` is true when `builtin/triage` answered; `without_llm_reason` says why when it was not asked for.
    `cost` is in US dollars.
    """

    id: str
    state: str
    answer: str | None = None
    root_cause: str | None = None
    error: str | None = None
    model: str | None = None
    cost: float = 0.0
    without_llm: bool = False
    without_llm_reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentNews:
    """Something happened with an incident.

    `key` stays the same when the news is sent again, and `repeated` says that an earlier attempt may have arrived.
    `alerts` are at most the first hundred of `alerts_total`. `link` leads to the incident's page; it is None when
    nobody said where that is.
    """

    kind: NewsKind
    key: str
    incident_id: str
    title: str
    state: Literal["open", "closed"]
    opened_at: datetime
    updated_at: datetime
    severity: str | None = None
    cluster: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    closed_at: datetime | None = None
    reopened: int = 0
    root_cause: str | None = None
    alerts: tuple[AlertNews, ...] = ()
    alerts_total: int = 0
    investigation: InvestigationNews | None = None
    link: str | None = None
    repeated: bool = False
