"""The firing alerts of an incident that a group of alerts does not bring. Read by the intake within its transaction.

An incident may have tens of thousands, and all intakes take turns: their full rows are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from holmes.investigations.alerts.subjects import subject_key
from holmes.investigations.alerts.wording import NO_OTHER_FACTS, AlertFacts, OtherFacts, facts_of
from holmes.investigations.records.rows import known_alert_of
from holmes.investigations.records.schema import ALERTS, INVESTIGATIONS
from holmes.investigations.records.values import InvestigationId
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from sqlalchemy import Connection

    from holmes.investigations.records.values import Alert, IncidentId

_MOST_ASKED: Final = 100
"""Alerts that a question may show: it quotes fewer."""
_MOST_NAME_CHARACTERS: Final = 200
_MOST_SEVERITY_CHARACTERS: Final = 64


class StoredOtherAlerts:
    """Those in the database, but those of these `fingerprints`. `source` made the investigations that count."""

    def __init__(self, connection: Connection, fingerprints: AbstractSet[str], source: str) -> None:
        self._connection = connection
        self._fingerprints = fingerprints
        self._source = source

    def facts(self, incident: IncidentId, places: AbstractSet[str]) -> OtherFacts:
        """What titles say of those of an incident; `places` are those of the group's own alerts."""
        columns = ALERTS.c
        theirs = (
            columns.incident_id == incident,
            columns.status == "firing",
            columns.fingerprint.not_in(self._fingerprints),
        )
        kind = (columns.namespace, columns.name, columns.severity)
        counting = select(*kind, func.count()).where(*theirs).group_by(*kind).order_by(*kind)
        kinds = self._connection.execute(counting).all()
        if not kinds:
            return NO_OTHER_FACTS
        placing = select(func.count(columns.place.distinct()), func.max(columns.place))
        number, place = self._connection.execute(placing.where(*theirs, columns.place != "")).one()
        sharing = select(columns.place).where(*theirs, columns.place.in_(places)).distinct()
        return OtherFacts(
            count=sum(row[3] for row in kinds),
            kinds=tuple(AlertFacts(row[1] or "alert", row[2], "", row[0] or "") for row in kinds),
            places=number,
            place=place or "",
            shared=frozenset(self._connection.execute(sharing).scalars()) if places else frozenset(),
        )

    def asked(self, investigation: InvestigationId) -> tuple[Sequence[Alert], int]:
        """The first of those that an investigation is about, and how many more there are."""
        columns = ALERTS.c
        incident = select(INVESTIGATIONS.c.incident_id).where(INVESTIGATIONS.c.id == investigation).scalar_subquery()
        its = (
            columns.incident_id == incident,
            columns.investigation_id == investigation,
            columns.status == "firing",
        )
        naming = select(columns.fingerprint).where(*its).order_by(columns.starts_at, columns.fingerprint)
        named = [each for each in self._connection.execute(naming).scalars() if each not in self._fingerprints]
        rows = self._connection.execute(select(ALERTS).where(columns.fingerprint.in_(named[:_MOST_ASKED])))
        return [known_alert_of(row).alert for row in rows], max(0, len(named) - _MOST_ASKED)

    def looking_at(self, incident: IncidentId, subject: str) -> InvestigationId | None:
        """A begun investigation for one of those of an incident that are about this subject."""
        columns, begun = ALERTS.c, INVESTIGATIONS.c
        query = (
            select(columns.fingerprint, begun.id)
            .join(INVESTIGATIONS, begun.id == columns.investigation_id)
            .where(
                columns.incident_id == incident,
                columns.subject == subject,
                columns.status == "firing",
                begun.state.in_(("running", "answered")),
                begun.source == self._source,
            )
        )
        rows = self._connection.execute(query)
        return next((InvestigationId(row[1]) for row in rows if row[0] not in self._fingerprints), None)


def facts_row(alert: Alert) -> dict[str, object]:
    """The columns that the questions above read."""
    facts = facts_of(alert)
    severity = facts.severity and shortened(facts.severity, _MOST_SEVERITY_CHARACTERS, mark="")
    return {
        "name": shortened(facts.name, _MOST_NAME_CHARACTERS, mark=""),
        "severity": severity,
        "place": facts.place,
        "namespace": facts.namespace,
        "subject": subject_key(alert.labels),
    }
