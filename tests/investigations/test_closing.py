"""Incidents that no message closes: stale ones, and those that a person closes."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentRecords, close_stale
from holmes.investigations.records.schema import ALERTS, INCIDENTS
from holmes.investigations.records.values import IncidentId
from tests.investigations.alerts import Desk, alert

HOUR = 3_600.0
CHECKOUT = alert(pod="checkout-7b9bbf99ff-c5l4v")
CATALOG = alert(deployment="catalog")


async def age(database: Database, hours: float, fingerprint: str | None = None) -> None:
    """Everything was heard of so much earlier; with a fingerprint only this alert."""
    heard = update(ALERTS).values(last_seen=ALERTS.c.last_seen - hours * HOUR)
    opened = update(INCIDENTS).values(opened_at=INCIDENTS.c.opened_at - hours * HOUR)
    if fingerprint is not None:
        heard = heard.where(ALERTS.c.fingerprint == fingerprint)
    await database.transaction(lambda connection: (connection.execute(heard), connection.execute(opened)))


async def test_an_incident_without_any_message_for_long_is_closed_and_nobody_is_told(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT, key="one")
    await desk.take(CATALOG, key="two")
    await age(database, 25, CHECKOUT.fingerprint)

    assert await close_stale(database, stale_seconds=24 * HOUR, listening_seconds=24 * HOUR) == 1
    assert await close_stale(database, stale_seconds=24 * HOUR, listening_seconds=24 * HOUR) == 0
    stale, heard = await desk.incidents()
    assert (stale.state, stale.closed_by, heard.state) == ("closed", "stale", "open")
    assert stale.closed_at == stale.updated_at is not None
    assert [event for event, _ in desk.news] == ["opened", "opened"]


async def test_a_stale_incident_opens_again_when_its_alert_still_fires(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT)
    await age(database, 25)
    await close_stale(database, stale_seconds=24 * HOUR, listening_seconds=24 * HOUR)
    await desk.take(CHECKOUT)

    (incident,) = await desk.incidents()
    assert (incident.state, incident.closed_by, incident.reopened) == ("open", None, 1)


async def test_after_an_outage_nothing_is_stale_until_senders_could_repeat_it(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT)
    await age(database, 25)

    for stale, listening in ((24, 0), (24, 4.9), (2, 1.9)):
        assert await close_stale(database, stale_seconds=stale * HOUR, listening_seconds=listening * HOUR) == 0
    assert await close_stale(database, stale_seconds=24 * HOUR, listening_seconds=5 * HOUR) == 1


async def test_what_a_person_closed_opens_again_only_when_it_fires_anew(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT, CATALOG)
    (incident,) = await desk.incidents()
    records = IncidentRecords(database)

    assert await records.close(incident.id)
    assert not await records.close(incident.id)
    assert not await records.close(IncidentId("0"))
    repeated = await desk.take(CHECKOUT, CATALOG)
    (closed,) = await desk.incidents()
    assert (closed.state, closed.closed_by, repeated.counts.duplicates, repeated.queued) == ("closed", "hand", 2, 0)

    await desk.take(alert(deployment="catalog", starts=timedelta(hours=1)))
    (again,) = await desk.incidents()
    assert (again.state, again.title) == ("open", "KubePodCrashLooping: shop/catalog")
    assert [event for event, _ in desk.news] == ["opened", "reopened"]
