"""An incident with thousands of firing alerts: what is said of it counts them all."""

from __future__ import annotations

import json
from datetime import timedelta

from sqlalchemy import insert, update

from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import ALERTS
from tests.investigations.alerts import GROUP, Desk, alert

MANY = 10_000
CHECKOUT = alert(pod="checkout-7b9bbf99ff-c5l4v", severity="critical")


async def fill(desk: Desk) -> None:
    """Ten thousand alerts of the group in the database, one of them through the intake."""
    first = alert(pod="checkout-7b9bbf99ff-w76mq")
    await desk.take(first)
    await desk.set_state("answered")
    (row,) = await desk.alerts()
    rows = [
        {
            **row._asdict(),
            "fingerprint": f"f{number}",
            "place": f"shop/app-{number}",
            "subject": f"workload shop/app-{number}",
            "labels": json.dumps({**first.labels, "pod": f"app-{number}"}),
        }
        for number in range(MANY)
    ]
    await desk.database.transaction(lambda connection: connection.execute(insert(ALERTS), rows))


async def test_one_more_alert_is_taken_and_all_are_counted(database: Database) -> None:
    desk = Desk(database)
    await fill(desk)
    for number in range(3):
        await desk.take(alert(deployment=f"new-{number}-app", severity="critical"))
        await desk.set_state("answered")
    (incident,) = await desk.incidents()
    assert incident.title == f"KubePodCrashLooping: {MANY + 4} objects in shop ({MANY + 4} alerts)"
    assert incident.severity == "critical"
    assert incident.labels == {"alertname": "KubePodCrashLooping", "namespace": "shop"}


async def test_a_question_that_waits_takes_in_one_of_many(database: Database) -> None:
    desk = Desk(database)
    await fill(desk)
    await desk.set_state("queued")
    await desk.take(CHECKOUT)
    (investigation,) = await desk.investigations()
    assert f"alert 1 of {MANY + 2}" in investigation.question
    assert investigation.title.endswith(f"({MANY + 2} alerts)")


async def test_it_stays_open_while_others_fire_and_an_answer_stands_for_the_same_thing(database: Database) -> None:
    desk = Desk(database)
    first = alert(pod="checkout-7b9bbf99ff-w76mq")
    await desk.take(first, alert(deployment="catalog"))
    await desk.set_state("answered")
    assert (await desk.take(CHECKOUT)).queued == 0, "another alert about checkout was looked at"
    over = timedelta(minutes=9)
    await desk.take(
        alert("resolved", ends=over, pod="checkout-7b9bbf99ff-w76mq"),
        alert("resolved", ends=over, deployment="catalog"),
    )
    (incident,) = await desk.incidents()
    assert (incident.state, incident.title) == ("open", "KubePodCrashLooping: shop/checkout")


async def test_rows_of_an_older_version_count_too(database: Database) -> None:
    desk = Desk(database)
    await desk.take(CHECKOUT, key=GROUP)
    nothing = dict.fromkeys(("name", "severity", "place", "namespace", "subject"))
    await database.transaction(lambda connection: connection.execute(update(ALERTS).values(**nothing)))
    await desk.take(alert(deployment="catalog"))
    (incident,) = await desk.incidents()
    assert incident.title.endswith("(2 alerts)")
