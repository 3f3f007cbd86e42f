"""The worker: order, patience, and what is left of it when something dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holmes.destinations.destination import DeliveryFailed
from holmes.investigations.deliveries.worker import DeliveryPolicy, DeliveryWorker
from holmes.investigations.records.database import Database
from tests.investigations.deliveries_of import IMPATIENT, PlayedDestination, change, compose, queue, rows, settled


@asynccontextmanager
async def working(
    database: Database, *destinations: PlayedDestination, policy: DeliveryPolicy = IMPATIENT
) -> AsyncIterator[DeliveryWorker]:
    worker = DeliveryWorker(database, {each.name: each for each in destinations}, compose, policy)
    task = asyncio.create_task(worker.run())
    yield worker
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def refused(*, retryable: bool = True, wait: float | None = None) -> DeliveryFailed:
    return DeliveryFailed("ops: refused", retryable=retryable, retry_after_seconds=wait)


async def test_news_arrive_in_order_each_with_what_the_one_before_left(database: Database) -> None:
    ops = PlayedDestination("ops", "r1", refused(), "r2", "r3")
    await queue(database, "opened", "answered", "resolved")
    async with working(database, ops):
        await settled(database, 3)
    assert [(news.kind, news.repeated, reference) for news, reference in ops.sent] == [
        ("opened", False, None), ("answered", False, "r1"), ("answered", True, "r1"), ("resolved", False, "r2"),
    ]  # fmt: skip


async def test_what_was_queued_here_is_sent_at_once_and_what_others_queued_after_a_poll(database: Database) -> None:
    ops = PlayedDestination("ops")
    async with working(database, ops, policy=replace(IMPATIENT, poll_seconds=60)) as worker:
        await asyncio.sleep(0.1)
        await queue(database, "opened")
        worker.wake()
        await ops.wait_for(1)
    async with working(database, ops, policy=replace(IMPATIENT, poll_seconds=0.1)):
        await asyncio.sleep(0.3)
        await queue(database, "opened", incident="inc2")
        await ops.wait_for(2)
        await settled(database, 2)


async def test_what_a_person_must_change_is_visible_at_once_and_not_tried_again(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ops = PlayedDestination("ops", refused(retryable=False), "r")
    await queue(database, "opened", "answered")
    async with working(database, ops):
        failed, delivered = await settled(database, 2)
    assert (failed.state, failed.last_error, failed.gave_up, failed.attempts) == ("failed", "ops: refused", False, 1)
    assert (delivered.state, delivered.delivered_at is not None) == ("delivered", True)
    assert "inc1/-/opened/ops/0 failed permanently: ops: refused" in caplog.text


async def test_after_the_last_attempt_it_is_given_up_and_says_so(database: Database) -> None:
    ops = PlayedDestination("ops", refused())
    await queue(database, "opened")
    async with working(database, ops):
        (failed,) = await settled(database, 1)
    assert (failed.state, failed.gave_up, failed.attempts, failed.last_error) == ("failed", True, 4, "ops: refused")


def test_pauses_grow_to_a_quarter_of_an_hour_and_take_about_a_day() -> None:
    policy = DeliveryPolicy()
    pauses = [policy.pause_seconds(attempts, None) for attempts in range(1, policy.attempts)]
    assert 1.6 <= pauses[0] <= 2.4
    assert max(pauses) <= 1_080
    assert 20 * 3_600 < sum(pauses) < 28 * 3_600
    assert policy.pause_seconds(1, 30.0) == 30
    assert policy.pause_seconds(1, float("inf")) == 3_600
    assert policy.pause_seconds(10**6, None) <= 1_080


async def test_a_destination_that_asks_for_time_gets_it_for_all_news(database: Database) -> None:
    ops = PlayedDestination("ops", refused(wait=0.3), None)
    for number in range(3):
        await queue(database, "opened", incident=f"inc{number}")
    async with working(database, ops, policy=replace(IMPATIENT, concurrency=1)):
        await ops.wait_for(1)
        asked = time.monotonic()
        await ops.wait_for(2)
        assert time.monotonic() - asked > 0.25
        await settled(database, 3)
    assert len(ops.sent) == 4


async def test_a_slow_destination_does_not_hold_up_another(database: Database) -> None:
    forever = asyncio.Event()

    async def hang() -> None:
        await forever.wait()

    slow, quick = PlayedDestination("slow", hang), PlayedDestination("quick")
    for number in range(10):
        await queue(database, "opened", incident=f"inc{number}", to=("slow", "quick"))
    async with working(database, slow, quick, policy=replace(IMPATIENT, drain_seconds=0.01)):
        await quick.wait_for(10)
        await settled(database, 10)
        assert len(slow.sent) == IMPATIENT.concurrency
    assert len(await rows(database)) == 20


async def test_what_takes_too_long_is_cut_off_and_tried_again(database: Database) -> None:
    async def hang() -> None:
        await asyncio.sleep(60)

    ops = PlayedDestination("ops", hang, "r")
    await queue(database, "opened")
    async with working(database, ops, policy=replace(IMPATIENT, send_seconds=0.1)):
        (delivered,) = await settled(database, 1)
    assert (delivered.state, delivered.attempts, ops.sent[1][0].repeated) == ("delivered", 2, True)


async def test_a_bug_in_a_destination_ends_neither_the_lane_nor_the_news(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    ops = PlayedDestination("ops", broken, "r")
    await queue(database, "opened")
    async with working(database, ops):
        (delivered,) = await settled(database, 1)
    assert delivered.state == "delivered"
    assert "failed: internal error" in caplog.text


async def test_cancelling_lets_what_is_being_sent_finish(database: Database) -> None:
    async def slow() -> str:
        await asyncio.sleep(0.2)
        return "r"

    ops = PlayedDestination("ops", slow)
    await queue(database, "opened")
    async with working(database, ops):
        await ops.wait_for(1)
    assert [row.state for row in await rows(database)] == ["delivered"]


async def test_news_whose_incident_is_gone_are_not_sent(database: Database) -> None:
    async def nothing(_: object) -> None:
        return None

    ops = PlayedDestination("ops")
    await queue(database, "opened")
    worker = DeliveryWorker(database, {"ops": ops}, nothing, IMPATIENT)
    task = asyncio.create_task(worker.run())
    (failed,) = await settled(database, 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (failed.state, failed.last_error, ops.sent) == ("failed", "the incident was deleted", [])


async def test_a_database_that_is_away_is_waited_for_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    database = await Database.open(f"sqlite:///{tmp_path / 'd.db'}")
    ops = PlayedDestination("ops")
    await database.transaction(
        lambda connection: connection.exec_driver_sql("ALTER TABLE holmes_deliveries RENAME TO x")
    )
    async with working(database, ops, policy=replace(IMPATIENT, lease_seconds=0.1)):
        await asyncio.sleep(1.2)  # two looks at it
        await database.transaction(
            lambda connection: connection.exec_driver_sql("ALTER TABLE x RENAME TO holmes_deliveries")
        )
        await queue(database, "opened")
        await ops.wait_for(1)
    assert caplog.text.count("deliveries to 'ops' are waiting") == 1
    await database.close()


KILLED = """
import asyncio, sys
from holmes.investigations.records.database import Database
from holmes.investigations.deliveries.worker import DeliveryWorker
from tests.investigations.deliveries_of import IMPATIENT, PlayedDestination, compose

async def sent():
    print("sent", flush=True)
    await asyncio.sleep(60)

async def main():
    database = await Database.open(sys.argv[1])
    await DeliveryWorker(database, {"ops": PlayedDestination("ops", sent)}, compose, IMPATIENT).run()

asyncio.run(main())
"""


async def test_killed_between_sending_and_marking_it_is_sent_again_with_the_same_key(database: Database) -> None:
    await queue(database, "opened", "answered")
    address = database.url.set(drivername=database.url.get_backend_name()).render_as_string(hide_password=False)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, address, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"sent\n"
        process.send_signal(signal.SIGKILL)
        await process.wait()
    ops = PlayedDestination("ops", "r")
    async with working(database, ops) as worker:
        await asyncio.sleep(0.1)
        assert ops.sent == []  # the lease of the dead one still holds
        await change(database, claimed_until=time.time() - 1)
        worker.wake()
        await settled(database, 2)
    assert ops.keys == ["inc1/-/opened/ops/0", "inc1/-/answered/ops/0"]
    assert [news.repeated for news, _ in ops.sent] == [True, False]
