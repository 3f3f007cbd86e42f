"""Defines the news about an incident, the protocol of destinations, and the error for a failed delivery.

News is delivered at least once, so a destination may receive the same news again with the same key. The news describes
the state of the incident at delivery time, not at queue time. Alert texts are untrusted, so every destination escapes
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from holmes.values.errors import HolmesError, masked
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import httpx

    from holmes.values.verdicts import VerdictAuthor, VerdictKind

_LONGEST_REASON_CHARACTERS = 500

NewsKind: TypeAlias = Literal["opened", "answered", "failed", "resolved", "reopened"]
"""The event that news reports: a change to an incident, or the end of one of its investigations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertNews:
    """One alert of the incident. `summary` is one line from the annotations of the alert."""

    name: str
    status: Literal["firing", "resolved"]
    labels: Mapping[str, str]
    severity: str | None = None
    summary: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureNews:
    """A chart as a PNG. `alt` describes it for people who cannot see it."""

    id: str
    title: str
    alt: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationNews:
    """The investigation that the news reports.

    `answer` is Markdown. `summary` is the sentence that states the verdict. `root_cause` is the same sentence if the
    answer found the cause, else None. `cost` is in US dollars.
    `without_llm` is true if `builtin/triage` answered. `without_llm_reason` is set if `builtin/triage` replaced the
    configured model. `pictures` are the charts behind the answer, at most three.
    """

    id: str
    state: str
    answer: str | None = None
    root_cause: str | None = None
    verdict: VerdictKind | None = None
    verdict_by: VerdictAuthor | None = None
    summary: str | None = None
    error: str | None = None
    model: str | None = None
    cost: float = 0.0
    without_llm: bool = False
    without_llm_reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    link: str | None = None
    pictures: tuple[PictureNews, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentNews:
    """One change to an incident.

    `key` is the same in each delivery attempt. `repeated` is true if an earlier attempt may have arrived. `alerts`
    contains at most the first 100 of `alerts_total` alerts. `link` is the URL of the incident's page, or None if
    `public_url` is not set.
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
    verdict: VerdictKind | None = None
    summary: str | None = None
    alerts: tuple[AlertNews, ...] = ()
    alerts_total: int = 0
    investigation: InvestigationNews | None = None
    link: str | None = None
    repeated: bool = False


class DeliveryFailed(HolmesError):
    """The news did not arrive, or its arrival could not be confirmed.

    The message is one line that contains the next step and no secrets. `retryable` is true if a retry may succeed.
    `retry_after_seconds` is set if the destination requested a delay. If `reference` is set, the next attempt uses it
    to continue this delivery.
    """

    exit_code = 3

    def __init__(self, message: str, *, retryable: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(shortened(" ".join(masked(message).split()), _LONGEST_REASON_CHARACTERS))
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.reference: str | None = None


class Destination(Protocol):
    """A receiver of notifications. `name` is the key of the destination in the settings."""

    @property
    def name(self) -> str: ...

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:
        """Deliver `news`.

        Returns a reference in JSON for later news about the same incident, or None if the destination needs none.
        `reference` is the return value of the previous delivery for this incident, or None for the first delivery.
        Raises `DeliveryFailed`.
        """
        ...


def place(url: httpx.URL) -> str:
    """Return only the scheme, host and port of `url`, because its path or query may contain a secret."""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"
