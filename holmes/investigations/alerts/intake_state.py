"""Input and output of the decision about alerts: values between `intake_plan` and the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

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
    """Counts every model as an LLM."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """Rules of the decision. `source` sent the alerts.

    `why_without_llm` is called once for each new investigation. It returns the limit that requires `builtin/triage`, or
    None if the chosen model may answer. `asks_llm` is true for a model (None: the default) that is an LLM.
    """

    source: str
    routes: Routes = field(default_factory=Routes)
    reopen_hours: float = 24
    why_without_llm: Callable[[Route], str | None] = _model_may_answer
    asks_llm: Callable[[str | None], bool] = every_model


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownInvestigation:
    """An investigation of an incident from the same source."""

    id: InvestigationId
    incident_id: IncidentId
    state: InvestigationState
    finished_at: datetime | None = None


class OtherAlerts(Protocol):
    """The firing alerts of known incidents outside the group.

    There may be thousands, so each query runs only if its result is needed.
    """

    def facts(self, incident: IncidentId, places: AbstractSet[str]) -> OtherFacts:
        """The facts for titles of an incident; `places` are those of the group's alerts."""
        ...

    def asked(self, investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        """The first alerts of an investigation, and the number of further ones."""
        ...

    def looking_at(self, incident: IncidentId, subject: str) -> InvestigationId | None:
        """A started investigation of an alert of this incident with this subject."""
        ...


class NoOtherAlerts:
    """No other alerts."""

    def facts(self, _incident: IncidentId, _places: AbstractSet[str]) -> OtherFacts:
        return NO_OTHER_FACTS

    def asked(self, _investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        return (), 0

    def looking_at(self, _incident: IncidentId, _subject: str) -> InvestigationId | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeState:
    """The stored state that a group of alerts may change.

    `alerts` has the known alerts of the group. `incidents` has the incidents of these alerts and the open ones of the
    group. `investigations` has theirs; failed ones only if an alert is linked to them. `others` finds the other firing
    alerts of these incidents.
    """

    alerts: Mapping[str, KnownAlert] = field(default_factory=dict)
    incidents: Mapping[IncidentId, Incident] = field(default_factory=dict)
    investigations: Mapping[InvestigationId, KnownInvestigation] = field(default_factory=dict)
    others: OtherAlerts = field(default_factory=NoOtherAlerts)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeCounts:
    """Number of alerts by outcome.

    `accepted` alerts started to fire; `duplicates` are known and unchanged, or older than the known state; `resolved`
    stopped firing; `ignored` are resolved and unknown.
    """

    accepted: int = 0
    duplicates: int = 0
    resolved: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeChanges:
    """New values, and values that replace those with the same id.

    `rewritten` are queued investigations with an updated question. `news` are changes for notifications. `linked` are
    the investigations of the group's firing alerts.
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
