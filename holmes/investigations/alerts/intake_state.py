"""What the intake of alerts knows before it decides, and what it decided. Between `intake_plan` and the database."""

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
    """Each model is an LLM."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """How to decide. `source` is who sent the alerts.

    `why_without_llm` is asked once for each new investigation: why `builtin/triage` is to answer, None when the chosen
    model may. `asks_llm` says whether a model (None: the general one) is an LLM.
    """

    source: str
    routes: Routes = field(default_factory=Routes)
    reopen_hours: float = 24
    why_without_llm: Callable[[Route], str | None] = _model_may_answer
    asks_llm: Callable[[str | None], bool] = every_model


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownInvestigation:
    """An investigation of an incident, made by the same source."""

    id: InvestigationId
    incident_id: IncidentId
    state: InvestigationState
    finished_at: datetime | None = None


class OtherAlerts(Protocol):
    """The firing alerts of known incidents that are not in the group.

    There may be thousands, so each question is asked only when its answer is needed.
    """

    def facts(self, incident: IncidentId, places: AbstractSet[str]) -> OtherFacts:
        """What titles say of those of an incident; `places` are those of the group's own alerts."""
        ...

    def asked(self, investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        """The first of those that an investigation is about, and how many more there are."""
        ...

    def looking_at(self, incident: IncidentId, subject: str) -> InvestigationId | None:
        """A begun investigation for one of those of an incident that are about this subject."""
        ...


class NoOtherAlerts:
    """Nobody knows any."""

    def facts(self, _incident: IncidentId, _places: AbstractSet[str]) -> OtherFacts:
        """None."""
        return NO_OTHER_FACTS

    def asked(self, _investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        """None."""
        return (), 0

    def looking_at(self, _incident: IncidentId, _subject: str) -> InvestigationId | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeState:
    """What is kept of everything that a group of alerts may concern.

    `alerts` has every alert of the group that is known; `incidents` are those of these alerts, and the open ones of the
    group; `investigations` are theirs, of those that failed only those that the alerts are linked to; `others` knows
    the rest of what fires in these incidents.
    """

    alerts: Mapping[str, KnownAlert] = field(default_factory=dict)
    incidents: Mapping[IncidentId, Incident] = field(default_factory=dict)
    investigations: Mapping[InvestigationId, KnownInvestigation] = field(default_factory=dict)
    others: OtherAlerts = field(default_factory=NoOtherAlerts)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeCounts:
    """How many alerts were what.

    `accepted` fire and did not before; `duplicates` are known and unchanged, or older than what is known; `resolved`
    fire no more; `ignored` are resolved ones that nobody knows.
    """

    accepted: int = 0
    duplicates: int = 0
    resolved: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeChanges:
    """What is to be written: values that are new, and values that replace those of the same id.

    `rewritten` are queued investigations with the question that includes all their alerts. `news` is what people may
    want to hear of. `linked` are the investigations of the group's firing alerts.
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
