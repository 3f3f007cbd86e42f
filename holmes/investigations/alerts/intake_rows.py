"""Reads the state that the alert intake needs, and writes its decisions, within one transaction.

A group may have thousands of alerts, so each statement handles many rows. An incident may have tens of thousands of
other alerts. The full rows of these alerts are not read, because other replicas wait for the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import and_, bindparam, func, insert, or_, select, update

from holmes.investigations.alerts.clusters import incident_key_of
from holmes.investigations.alerts.intake_state import IntakeState, KnownInvestigation
from holmes.investigations.alerts.wording import NO_OTHER_FACTS, AlertFacts, OtherFacts, facts_of
from holmes.investigations.records.records import add_investigations
from holmes.investigations.records.schema import ALERTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import (
    Incident,
    IncidentId,
    InvestigationId,
    known_alert_of,
    labels_to_json,
    optional_moment,
    record_of,
    seconds_of,
)
from holmes.triage.alert_subjects import subject_key
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from sqlalchemy import ColumnElement, Connection

    from holmes.investigations.alerts.intake_state import IntakeChanges
    from holmes.investigations.records.values import Alert, AlertGroup, KnownAlert, NewInvestigation

    T = TypeVar("T")

_MOST_ASKED: Final = 100
"""Maximum number of alerts that are read for a question. The question quotes fewer alerts."""
_MOST_NAME_CHARACTERS: Final = 200
_MOST_SEVERITY_CHARACTERS: Final = 64


class StoredOtherAlerts:
    """Queries all stored alerts whose fingerprint is not in `fingerprints`.

    Considers only investigations from `source`.
    """

    def __init__(self, connection: Connection, fingerprints: AbstractSet[str], source: str) -> None:
        self._connection = connection
        self._fingerprints = fingerprints
        self._source = source

    def facts(self, incident: IncidentId, places: AbstractSet[str]) -> OtherFacts:
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


def _facts_row(alert: Alert) -> dict[str, object]:
    """Return the columns that `StoredOtherAlerts` queries."""
    facts = facts_of(alert)
    severity = facts.severity and shortened(facts.severity, _MOST_SEVERITY_CHARACTERS, mark="")
    return {
        "name": shortened(facts.name, _MOST_NAME_CHARACTERS, mark=""),
        "severity": severity,
        "place": facts.place,
        "namespace": facts.namespace,
        "subject": subject_key(alert.labels),
    }


_AT_ONCE: Final = 500
"""Maximum number of values in one SQL `IN` list."""
_UNDERWAY: Final = ("queued", "running", "answered")


def read_state(connection: Connection, group: AlertGroup, source: str) -> IntakeState:
    """Read the stored state that `group` may change.

    Locks queued investigations, so that they cannot start until the transaction ends.
    """
    fingerprints = {alert.fingerprint for alert in group.alerts}
    alerts = {each.alert.fingerprint: each for each in _alerts(connection, ALERTS.c.fingerprint, fingerprints)}
    keys = {incident_key_of(group.key, alert) for alert in group.alerts}
    incidents = {
        each.id: each
        for each in (
            *_incidents(connection, INCIDENTS.c.id, {each.incident_id for each in alerts.values()}),
            *_incidents(connection, INCIDENTS.c.group_key, keys, INCIDENTS.c.state == "open"),
        )
    }
    linked = {each.investigation_id for each in alerts.values() if each.investigation_id is not None}
    return IntakeState(
        alerts=alerts,
        incidents=incidents,
        investigations=_failed(connection, linked) | _investigations(connection, incidents, source),
        others=StoredOtherAlerts(connection, fingerprints, source),
    )


def write_changes(connection: Connection, changes: IntakeChanges, now: float) -> None:
    """Write all changes except the news, which `OnNews` handles."""
    _write_incidents(connection, changes)
    _write_alerts(connection, changes)
    add_investigations(connection, changes.new_investigations, now)
    if changes.rewritten:
        statement = (
            update(INVESTIGATIONS)
            .where(INVESTIGATIONS.c.id == bindparam("identity"))
            .values(question=bindparam("asked"), title=bindparam("called"), namespace=bindparam("place"))
        )
        connection.execute(statement, [_question(key, each) for key, each in changes.rewritten.items()])


def _alerts(
    connection: Connection, column: ColumnElement[str], values: Iterable[str], *conditions: ColumnElement[bool]
) -> Iterator[KnownAlert]:
    for some in _slices(values):
        rows = connection.execute(select(ALERTS).where(column.in_(some), *conditions))
        yield from map(known_alert_of, rows)


def _incidents(
    connection: Connection, column: ColumnElement[str], values: Iterable[str], *conditions: ColumnElement[bool]
) -> Iterator[Incident]:
    for some in _slices(values):
        rows = connection.execute(select(INCIDENTS).where(column.in_(some), *conditions).order_by(INCIDENTS.c.id))
        yield from (record_of(Incident, row) for row in rows)


def _investigations(
    connection: Connection, incidents: Iterable[IncidentId], source: str
) -> dict[InvestigationId, KnownInvestigation]:
    """Read the investigations of `incidents` that came from `source`.

    Locks the queued investigations, because their questions may change.
    """
    columns = INVESTIGATIONS.c
    query = select(columns.id, columns.incident_id, columns.state).order_by(columns.id)
    found: dict[InvestigationId, KnownInvestigation] = {}
    for some in _slices(incidents):
        its = and_(columns.incident_id.in_(some), columns.source == source)
        queued = connection.execute(query.where(its, columns.state == "queued").with_for_update()).all()
        begun = connection.execute(query.where(its, or_(*(columns.state == each for each in _UNDERWAY[1:])))).all()
        for row in (*queued, *begun):
            identity = InvestigationId(row.id)
            found[identity] = KnownInvestigation(id=identity, incident_id=IncidentId(row.incident_id), state=row.state)
    return found


def _failed(connection: Connection, identities: Iterable[InvestigationId]) -> dict[InvestigationId, KnownInvestigation]:
    columns = INVESTIGATIONS.c
    query = select(columns.id, columns.incident_id, columns.finished_at)
    found: dict[InvestigationId, KnownInvestigation] = {}
    for some in _slices(identities):
        for row in connection.execute(query.where(columns.id.in_(some), columns.state == "failed")):
            identity = InvestigationId(row.id)
            found[identity] = KnownInvestigation(
                id=identity,
                incident_id=IncidentId(row.incident_id),
                state="failed",
                finished_at=optional_moment(row.finished_at),
            )
    return found


def _slices(values: Iterable[T]) -> Iterator[Sequence[T]]:
    ordered = tuple(values)
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]


def _write_incidents(connection: Connection, changes: IntakeChanges) -> None:
    if changes.new_incidents:
        connection.execute(insert(INCIDENTS), [_incident_row(each) for each in changes.new_incidents])
    if changes.changed_incidents:
        # `root_cause`, `verdict` and `summary` are omitted, because finished investigations set them.
        changing = ("title", "state", "severity", "labels", "updated_at", "closed_at", "closed_by", "reopened")
        statement = (
            update(INCIDENTS)
            .where(INCIDENTS.c.id == bindparam("identity"))
            .values({name: bindparam(f"new_{name}") for name in changing})
        )
        rows = [_incident_row(each) for each in changes.changed_incidents]
        connection.execute(
            statement,
            [{"identity": row["id"], **{f"new_{name}": row[name] for name in changing}} for row in rows],
        )


def _write_alerts(connection: Connection, changes: IntakeChanges) -> None:
    if changes.new_alerts:
        connection.execute(insert(ALERTS), [_alert_row(each) | _facts_row(each.alert) for each in changes.new_alerts])
    if changes.changed_alerts:
        # The columns of `facts_row` do not change, because alerts with the same fingerprint have the same labels.
        rows = [_alert_row(each) for each in changes.changed_alerts]
        statement = (
            update(ALERTS)
            .where(ALERTS.c.fingerprint == bindparam("identity"))
            .values({name: bindparam(f"new_{name}") for name in rows[0] if name != "fingerprint"})
        )
        connection.execute(
            statement,
            [
                {"identity": row["fingerprint"], **{f"new_{name}": row[name] for name in row if name != "fingerprint"}}
                for row in rows
            ],
        )


def _incident_row(incident: Incident) -> dict[str, object]:
    return {
        "id": incident.id,
        "title": incident.title,
        "state": incident.state,
        "severity": incident.severity,
        "route": incident.route,
        "group_key": incident.group_key,
        "labels": labels_to_json(dict(incident.labels)),
        "opened_at": seconds_of(incident.opened_at),
        "updated_at": seconds_of(incident.updated_at),
        "closed_at": seconds_of(incident.closed_at),
        "closed_by": incident.closed_by,
        "reopened": incident.reopened,
        "root_cause": incident.root_cause,
        "verdict": incident.verdict,
        "summary": incident.summary,
        "cluster": incident.cluster,
    }


def _alert_row(known: KnownAlert) -> dict[str, object]:
    alert = known.alert
    return {
        "fingerprint": alert.fingerprint,
        "incident_id": known.incident_id,
        "investigation_id": known.investigation_id,
        "status": alert.status,
        "labels": labels_to_json(dict(alert.labels)),
        "annotations": labels_to_json(dict(alert.annotations)),
        "generator_url": alert.generator_url,
        "cluster": alert.cluster,
        "starts_at": seconds_of(alert.starts_at),
        "ends_at": seconds_of(alert.ends_at),
        "received": known.received,
        "tries": known.tries,
        "first_seen": seconds_of(known.first_seen),
        "last_seen": seconds_of(known.last_seen),
    }


def _question(identity: InvestigationId, asked: NewInvestigation) -> dict[str, object]:
    return {"identity": identity, "asked": asked.question, "called": asked.title, "place": asked.namespace}
