"""Values that `intake_plan` exchanges with the database: the stored state, the rules and the changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from holmes.investigations.alerts.clusters import AlertClusters
from holmes.investigations.alerts.routes import Routes
from holmes.investigations.alerts.wording import NO_OTHER_FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from holmes.investigations.alerts.routes import Route
    from holmes.investigations.alerts.wording import OtherFacts
    from holmes.investigations.records.values import (
        Alert,
        Incident,
        IncidentId,
        InvestigationId,
        InvestigationState,
        KnownAlert,
        NewInvestigation,
    )

IncidentEvent: TypeAlias = Literal["opened", "reopened", "resolved"]


def _model_may_answer(_route: Route) -> str | None:
    return None


def every_model(_model: str | None) -> bool:
    """Return true, because this function treats every model as an LLM."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """Rules for alerts from `source`.

    `why_without_llm` is called once for each new investigation. It returns the limit that requires `builtin/triage`, or
    None if the configured model may answer. `asks_llm` returns whether a model is an LLM. Its argument is None for the
    default model.
    """

    source: str
    routes: Routes = field(default_factory=Routes)
    reopen_hours: float = 24
    why_without_llm: Callable[[Route], str | None] = _model_may_answer
    asks_llm: Callable[[str | None], bool] = every_model
    clusters: AlertClusters = field(default_factory=AlertClusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownInvestigation:
    """A stored investigation that an alert may be linked to."""

    id: InvestigationId
    incident_id: IncidentId
    state: InvestigationState
    finished_at: datetime | None = None


class OtherAlerts(Protocol):
    """Queries the firing alerts that belong to known incidents but not to the group.

    An incident may have thousands of alerts, so each query runs only if its result is needed.
    """

    def facts(self, incident: IncidentId, places: AbstractSet[str]) -> OtherFacts:
        """Return the facts for the title of an incident. `places` are the objects of the group's alerts."""
        ...

    def asked(self, investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        """Return the first alerts of an investigation, and the number of its remaining alerts."""
        ...

    def looking_at(self, incident: IncidentId, subject: str) -> InvestigationId | None:
        """Return a started investigation of an alert with this incident and subject, or None if none exists."""
        ...


class NoOtherAlerts:
    """An `OtherAlerts` that contains no alerts."""

    def facts(self, _incident: IncidentId, _places: AbstractSet[str]) -> OtherFacts:
        return NO_OTHER_FACTS

    def asked(self, _investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        return (), 0

    def looking_at(self, _incident: IncidentId, _subject: str) -> InvestigationId | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeState:
    """The stored state that a group of alerts may change.

    `alerts` contains the stored alerts of the group. `incidents` contains the incidents of these alerts and the open
    incidents of the group. `investigations` contains the investigations of these incidents. Failed investigations are
    included only if an alert is linked to them. `others` queries the other firing alerts of these incidents.
    """

    alerts: Mapping[str, KnownAlert] = field(default_factory=dict)
    incidents: Mapping[IncidentId, Incident] = field(default_factory=dict)
    investigations: Mapping[InvestigationId, KnownInvestigation] = field(default_factory=dict)
    others: OtherAlerts = field(default_factory=NoOtherAlerts)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeCounts:
    """The number of alerts by outcome.

    `accepted` alerts started to fire. `duplicates` repeat the stored state or are older than it. `resolved` alerts
    stopped firing. `ignored` alerts are resolved but were never stored.
    """

    accepted: int = 0
    duplicates: int = 0
    resolved: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeChanges:
    """New records, and changed records that replace the record with the same id.

    `rewritten` contains queued investigations with a new question. `news` contains changes that cause notifications.
    `concerned` contains the incidents of the received alerts, and `linked` contains their investigations.
    """

    new_alerts: tuple[KnownAlert, ...]
    changed_alerts: tuple[KnownAlert, ...]
    new_incidents: tuple[Incident, ...]
    changed_incidents: tuple[Incident, ...]
    new_investigations: Mapping[InvestigationId, NewInvestigation]
    rewritten: Mapping[InvestigationId, NewInvestigation]
    news: tuple[tuple[Incident, IncidentEvent, Route], ...]
    concerned: tuple[IncidentId, ...]
    linked: tuple[InvestigationId, ...]
    counts: IntakeCounts
