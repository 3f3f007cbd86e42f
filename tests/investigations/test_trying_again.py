"""An investigation that failed is begun anew while its alert fires, after a while and not for ever."""

from __future__ import annotations

import time
from datetime import timedelta

from sqlalchemy import update

from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import INVESTIGATIONS
from tests.investigations.alerts import Desk, alert

CHECKOUT = alert(pod="checkout-7b9bbf99ff-c5l4v")
CATALOG = alert(deployment="catalog")


async def end_all(database: Database, state: str = "failed", *, minutes_ago: float) -> None:
    ended = update(INVESTIGATIONS).values(state=state, finished_at=time.time() - minutes_ago * 60)
    await database.transaction(lambda connection: connection.execute(ended))


async def test_a_repeated_alert_whose_investigation_failed_gets_another_one(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT, CATALOG)
    await end_all(database, minutes_ago=11)
    again = await desk.take(CHECKOUT, CATALOG)

    first, second = await desk.investigations()
    assert (first.state, second.state, second.incident_id) == ("failed", "queued", first.incident_id)
    assert "checkout-7b9bbf99ff-c5l4v" in second.question
    assert (again.queued, again.investigations, again.counts.duplicates) == (1, (second.id,), 2)
    assert await desk.linked() == {second.id: 2}
    assert [event for event, _ in desk.news] == ["opened"]


async def test_not_at_once_and_not_after_an_answer_or_a_cancel(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT)
    for state, minutes_ago in (("failed", 9), ("answered", 60), ("cancelled", 60)):
        await end_all(database, state, minutes_ago=minutes_ago)
        assert (await desk.take(CHECKOUT)).queued == 0


async def test_three_times_while_it_fires_and_again_when_it_fires_anew(database: Database) -> None:
    desk = Desk(database)
    queued = []
    for _ in range(5):
        queued.append((await desk.take(CHECKOUT)).queued)
        await end_all(database, minutes_ago=11)
    assert queued == [1, 1, 1, 0, 0]

    hour = timedelta(hours=1)
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=hour))
    anew = alert(pod="checkout-7b9bbf99ff-c5l4v", starts=2 * hour)
    assert (await desk.take(anew)).queued == 1
    await end_all(database, minutes_ago=11)
    assert (await desk.take(anew)).queued == 1
