"""The outbox: what is queued once, what can be seen of it, and who may send what in which order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from holmes.investigations.deliveries.records import (
    DeliveryClaims,
    DeliveryRecords,
    NewDelivery,
    queue_delivery,
    queue_finished,
)
from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import DELIVERIES
from holmes.investigations.records.values import IncidentId, InvestigationId, InvestigationRecord
from tests.investigations.deliveries_of import NOW, change, queue, rows


@pytest.fixture
def claims(database: Database) -> DeliveryClaims:
    return DeliveryClaims(database, lease_seconds=60)


@pytest.fixture
async def second(database: Database) -> AsyncIterator[DeliveryClaims]:
    """Another replica: its own connections to the same database."""
    other = await Database.open(database.url.render_as_string(hide_password=False))
    yield DeliveryClaims(other, lease_seconds=60)
    await other.close()


async def test_the_same_news_is_queued_once_and_what_happens_again_is_told_again(database: Database) -> None:
    for _ in range(2):
        await queue(database, "opened", "resolved", to=("ops", "audit"))
    again = NewDelivery(event="resolved", incident_id=IncidentId("inc1"), ordinal=1)
    assert await database.transaction(lambda connection: queue_delivery(connection, again, ("ops",), NOW)) == 1
    assert [row.key for row in await rows(database)] == [
        "inc1/-/opened/ops/0", "inc1/-/opened/audit/0", "inc1/-/resolved/ops/0", "inc1/-/resolved/audit/0",
        "inc1/-/resolved/ops/1",
    ]  # fmt: skip


async def test_a_finished_investigation_is_news_of_its_incident_only(database: Database) -> None:
    record = InvestigationRecord(
        id=InvestigationId("inv1"), incident_id=IncidentId("inc1"), state="answered", question="q", title="t",
        source="alertmanager", created_at=datetime.now(UTC),
    )  # fmt: skip
    failed = replace(record, id=InvestigationId("inv2"), state="failed")
    for each in (record, failed, replace(record, state="cancelled"), replace(record, incident_id=None)):
        await database.transaction(lambda connection, each=each: queue_finished(connection, each, ("ops",), NOW))  # type: ignore[misc]
    assert [row.key for row in await rows(database)] == ["inc1/inv1/answered/ops/0", "inc1/inv2/failed/ops/0"]


async def test_news_that_only_a_newer_version_knows_hides_and_stops_no_other_news(
    database: Database, claims: DeliveryClaims
) -> None:
    await queue(database, "opened")
    await database.transaction(lambda connection: connection.execute(update(DELIVERIES).values(event="novel")))
    await queue(database, "opened", incident="inc2")
    assert [each.event for each in await DeliveryRecords(database).list()] == ["opened", "novel"]
    assert [each.delivery.incident_id for each in await claims.take("ops", 10)] == ["inc1", "inc2"]


async def test_a_transaction_that_fails_queues_nothing(database: Database) -> None:
    class Changed(Exception):
        pass

    def work(connection: object) -> None:
        queue_delivery(connection, NewDelivery(event="opened", incident_id=IncidentId("inc1")), ("ops",), NOW)  # type: ignore[arg-type]
        raise Changed

    with pytest.raises(Changed):
        await database.transaction(work)
    assert await rows(database) == ()


async def test_of_an_incident_only_the_oldest_waiting_news_can_be_claimed(
    database: Database, claims: DeliveryClaims
) -> None:
    await queue(database, "opened", "answered", "resolved", to=("ops", "audit"))
    await queue(database, "opened", incident="inc2")
    first = await claims.take("ops", 10)
    assert [claim.delivery.key for claim in first] == ["inc1/-/opened/ops/0", "inc2/-/opened/ops/0"]
    assert await claims.take("ops", 10) == ()
    await claims.delivered(first[0], '{"ts": "1"}')
    (second,) = await claims.take("ops", 10)
    assert (second.delivery.event, second.reference) == ("answered", '{"ts": "1"}')
    await claims.failed(second, "refused", gave_up=False, reference=None)
    (third,) = await claims.take("ops", 10)
    assert (third.delivery.event, third.reference) == ("resolved", '{"ts": "1"}')
    assert [claim.delivery.event for claim in await claims.take("audit", 10)] == ["opened"]


async def test_a_claim_ends_with_its_lease_and_late_failures_of_its_owner_do_not_count(
    database: Database, claims: DeliveryClaims, second: DeliveryClaims
) -> None:
    await queue(database, "opened")
    (dead,) = await claims.take("ops", 1)
    assert await second.take("ops", 1) == ()
    await change(database, claimed_until=time.time() - 1)
    (alive,) = await second.take("ops", 1)
    assert (alive.delivery.key, alive.delivery.attempts) == (dead.delivery.key, 2)
    await claims.failed(dead, "too late", gave_up=False, reference=None)
    await claims.later(dead, "too late", seconds=0, reference=None)
    assert await claims.take("ops", 1) == ()
    await second.delivered(alive, None)
    await claims.failed(dead, "much too late", gave_up=False, reference=None)
    assert [(row.state, row.last_error) for row in await rows(database)] == [("delivered", None)]


async def test_two_replicas_never_claim_the_same(
    database: Database, claims: DeliveryClaims, second: DeliveryClaims
) -> None:
    for number in range(60):
        await queue(database, "opened", incident=f"inc{number}")
    taken: list[int] = []

    async def take(mine: DeliveryClaims) -> None:
        while found := await mine.take("ops", 3):
            taken.extend(claim.delivery.id for claim in found)

    async with asyncio.TaskGroup() as takers:
        for mine in (claims, second, claims, second):
            takers.create_task(take(mine))
    assert sorted(taken) == sorted(set(taken))
    # What another one held locked at that moment was skipped; a poll later it is there.
    assert len(taken) + len(await claims.take("ops", 60)) == 60


async def test_what_failed_is_listed_and_can_be_tried_again(database: Database, claims: DeliveryClaims) -> None:
    records = DeliveryRecords(database)
    await queue(database, "opened")
    await queue(database, "opened", incident="inc2")
    await queue(database, "opened", incident="inc3")
    first, second_claim, third = await claims.take("ops", 3)
    await claims.failed(first, "ops: Slack rejected: invalid_auth", gave_up=False, reference='{"part": 1}')
    await claims.later(second_claim, "ops: not reachable", seconds=600, reference=None)
    await claims.delivered(third, None)
    assert [each.last_error for each in await records.list(state="waiting")] == ["ops: not reachable"]
    (failed,) = await records.list(state="failed")
    assert await records.list(incident_id=failed.incident_id) == (failed,)
    assert await records.get(failed.id) == failed
    assert await records.retry(failed.id)
    assert not await records.retry(failed.id)
    (again,) = await claims.take("ops", 9)
    assert (again.delivery.id, again.delivery.attempts, again.reference) == (failed.id, 1, '{"part": 1}')
    assert again.delivery.last_error == "ops: Slack rejected: invalid_auth"


async def test_news_for_a_destination_that_nobody_has_fails_after_a_while(
    database: Database, claims: DeliveryClaims
) -> None:
    await queue(database, "opened", to=("ops", "gone"))
    (tried,) = await claims.take("gone", 1)
    await claims.later(tried, "gone: not reachable", seconds=600, reference=None)
    assert await claims.abandon({"ops"}, older_than_seconds=time.time()) == 0
    assert await claims.abandon({"ops"}, older_than_seconds=60) == 1
    (failed,) = await DeliveryRecords(database).list(state="failed")
    assert (failed.destination, failed.last_error) == ("gone", "this destination is no longer configured")
