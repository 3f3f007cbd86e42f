"""Alerts and groups for tests, and what the database says about them."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

from sqlalchemy import Row, select, update

from holmes.investigations.alerts.intake import AlertIntake, IntakePolicy, IntakeReceipt
from holmes.investigations.alerts.intake_state import IncidentEvent
from holmes.investigations.alerts.payload import fingerprint_of
from holmes.investigations.alerts.routes import Route, Routes
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentRecords, InvestigationQuery, InvestigationRecords
from holmes.investigations.records.schema import ALERTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import (
    Alert,
    AlertGroup,
    AlertStatus,
    Incident,
    IncidentId,
    InvestigationRecord,
)

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
GROUP = '{}:{alertname="KubePodCrashLooping"}'


def alert(
    status: AlertStatus = "firing",
    *,
    starts: timedelta | None = timedelta(),
    ends: timedelta | None = None,
    **labels: str,
) -> Alert:
    """An alert of these labels that began `starts` after noon."""
    whole = {"alertname": "KubePodCrashLooping", "namespace": "shop", "severity": "warning", **labels}
    return Alert(
        fingerprint=fingerprint_of(whole),
        status=status,
        labels=whole,
        annotations={"summary": "it crashes"},
        starts_at=None if starts is None else START + starts,
        ends_at=None if ends is None else START + ends,
    )


def group(*alerts: Alert, key: str = GROUP) -> AlertGroup:
    """A notification."""
    return AlertGroup(key=key, alerts=alerts)


class Desk:
    """An intake and everything that it told."""

    def __init__(self, database: Database, *routes: Route, policy: IntakePolicy | None = None) -> None:
        self.database = database
        self.news: list[tuple[IncidentEvent, str]] = []
        self.wakes = 0
        self.intake = AlertIntake(
            database, Routes(routes), policy or IntakePolicy(), self._wake, lambda _, *told: self._hear(*told)
        )

    async def take(self, *alerts: Alert, key: str = GROUP) -> IntakeReceipt:
        """Send a notification."""
        return await self.intake.take(group(*alerts, key=key), "alertmanager")

    async def incidents(self) -> tuple[Incident, ...]:
        """All incidents, the oldest first."""
        return tuple(sorted((await IncidentRecords(self.database).list()).incidents, key=lambda each: each.id))

    async def investigations(self) -> tuple[InvestigationRecord, ...]:
        """All investigations, the oldest first."""
        listed = await InvestigationRecords(self.database).list(InvestigationQuery(limit=1_000))
        return tuple(reversed(listed))

    async def alerts(self) -> list[Row[tuple[object, ...]]]:
        """The rows of all alerts."""
        return list(await self.database.transaction(lambda connection: connection.execute(select(ALERTS)).all()))

    async def set_state(self, state: str, identity: str | None = None) -> None:
        """What a worker does: all investigations, or one, are in this state now."""
        statement = update(INVESTIGATIONS).values(state=state)
        if identity is not None:
            statement = statement.where(INVESTIGATIONS.c.id == identity)
        await self.database.transaction(lambda connection: connection.execute(statement))

    async def age_closed(self, hours: float) -> None:
        """The incidents were closed so much earlier."""
        statement = update(INCIDENTS).values(closed_at=INCIDENTS.c.closed_at - hours * 3_600)
        await self.database.transaction(lambda connection: connection.execute(statement))

    async def linked(self) -> Counter[str | None]:
        """How many alerts each investigation looks at."""
        return Counter(row.investigation_id for row in await self.alerts())

    def _wake(self) -> None:
        self.wakes += 1

    def _hear(self, incident: Incident, event: IncidentEvent, route: Route) -> None:
        self.news.append((event, f"{incident.title} {route.name}".strip()))


async def all_of(*desks: Desk, groups: list[AlertGroup]) -> list[IntakeReceipt]:
    """Send all groups at once, each to the next desk."""
    sending = [desks[number % len(desks)].intake.take(each, "alertmanager") for number, each in enumerate(groups)]
    return list(await asyncio.gather(*sending))


def incident_ids(receipts: list[IntakeReceipt]) -> set[IncidentId]:
    """The incidents of all receipts."""
    return {identity for receipt in receipts for identity in receipt.incidents}
