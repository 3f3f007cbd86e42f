"""A step is done once, whoever asks, and nobody goes on with an investigation that is not theirs any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import insert, select, update

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, ToolOutcome
from holmes.investigations.queue.worker import DurableStepRunner
from holmes.investigations.records.database import Database
from holmes.investigations.records.journal import Journal, Lease, LostInvestigation, step_from_bytes, step_to_bytes
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.replicas import Replicas, shared_key
from holmes.investigations.records.schema import EVENTS, INVESTIGATIONS, STEPS
from holmes.investigations.records.values import InvestigationId, stats_to_json
from holmes.values.charts import thinned
from holmes.values.messages import AssistantMessage, Text, ToolCallId, ToolMessage
from holmes.values.model import ModelReply
from holmes.values.stats import NOTHING_SPENT, RequestStats
from tests.support.charts import MEMORY, chart, line

ID = InvestigationId("one")


def reply(text: str, cost: float = 0.0) -> ModelReply:
    return ModelReply(
        message=AssistantMessage(text=text), finish_reason="stop", stats=RequestStats(cost=cost), model="m"
    )


async def running(database: Database, *, replica: str = "a", attempt: int = 1) -> Journal:
    """A journal of an investigation that is running."""
    values = {
        "id": ID,
        "state": "running",
        "source": "api",
        "title": "t",
        "question": "q",
        "route": "",
        "created_at": 1.0,
        "attempts": attempt,
        "replica": replica,
        "stats": stats_to_json(NOTHING_SPENT),
    }
    await database.transaction(lambda connection: connection.execute(insert(INVESTIGATIONS).values(**values)))
    return Journal(database, Lease(investigation_id=ID, replica=replica, attempt=attempt))


async def take_over(database: Database) -> None:
    statement = update(INVESTIGATIONS).values(replica="b", attempts=INVESTIGATIONS.c.attempts + 1)
    await database.transaction(lambda connection: connection.execute(statement))


async def test_a_recorded_step_is_not_done_again(database: Database) -> None:
    journal = await running(database)
    calls = 0

    async def step() -> ModelReply:
        nonlocal calls
        calls += 1
        return reply("first", 0.5)

    first = await DurableStepRunner(journal, {}).run("step-1/complete-0-0", step)
    again = await DurableStepRunner(journal, await journal.recorded_steps()).run("step-1/complete-0-0", step)
    assert first == again == reply("first", 0.5)
    assert calls == 1
    assert await InvestigationRecords(database).spent_today() == 0.5


async def test_a_step_that_fails_is_not_recorded(database: Database) -> None:
    journal = await running(database)

    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await DurableStepRunner(journal, {}).run("s", fails)
    assert await journal.recorded_steps() == {}


async def test_who_lost_the_investigation_begins_nothing_but_keeps_what_was_paid(database: Database) -> None:
    journal = await running(database)
    steps = DurableStepRunner(journal, {})

    async def overtaken() -> ModelReply:
        await take_over(database)
        return reply("paid", 1.0)

    with pytest.raises(LostInvestigation):
        await steps.run("first", overtaken)
    assert set(await journal.recorded_steps()) == {"first"}

    async def never() -> None:
        raise AssertionError("begun")

    with pytest.raises(LostInvestigation):
        await steps.run("second", never)


async def test_of_two_results_of_one_step_the_first_counts_for_both(database: Database) -> None:
    journal = await running(database)
    assert await journal.record_step("s", "one") == "one"
    assert await journal.record_step("s", "two") == "one"


async def test_a_finished_step_is_recorded_although_its_attempt_is_cancelled_meanwhile(database: Database) -> None:
    journal = await running(database)
    finished = asyncio.Event()

    async def step() -> str:
        finished.set()
        return "paid"

    task = asyncio.create_task(DurableStepRunner(journal, {}).run("s", step))
    await finished.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while not await journal.recorded_steps():  # noqa: ASYNC110  a database has no event
            await asyncio.sleep(0.01)


async def test_an_event_that_comes_again_is_kept_once(database: Database) -> None:
    journal = await running(database)
    await journal.add_events((("a:1", "a", "{}"), ("b:1", "b", "{}")))
    await journal.add_events((("a:1", "a", "{}"), ("a:2", "a", "{}")))
    names = await database.transaction(
        lambda connection: connection.execute(select(EVENTS.c.key).order_by(EVENTS.c.id)).scalars().all()
    )
    assert names == ["a:1", "b:1", "a:2"]


def test_the_chart_of_a_result_is_recorded_with_few_samples() -> None:
    """A repeated attempt tells the same events, and the journal stays small."""
    long = chart(*(line(f"a{number}", lambda place: place / 7, range(1_000)) for number in range(8)))
    message = ToolMessage(call_id=ToolCallId("1"), tool_name="t", status="success", parts=(Text(text="x"),))
    spill = SpillOutcome(message=message, tokens=1, spilled=False, stored=False)
    for shown in (long, replace(MEMORY, background=())):
        outcome = ToolOutcome(
            spill=spill, cap_tokens=9, invocation=None, error=None, elapsed_seconds=1.0, chart=thinned(shown)
        )
        content = step_to_bytes(outcome)
        assert len(content) < 60_000
        assert step_from_bytes(content) == outcome


async def test_all_replicas_have_the_same_key(database: Database) -> None:
    one, two = await asyncio.gather(shared_key(database, "k"), shared_key(database, "k"))
    assert one == two
    assert len(one) == 32
    assert await shared_key(database, "other") != one


async def test_a_replica_is_alive_while_it_says_so(database: Database) -> None:
    one = Replicas(database, "one", "1", lease_seconds=30)
    two = Replicas(database, "two", "2", lease_seconds=30)
    await one.renew()
    await two.renew()
    assert await one.alive() == {"one", "two"}
    await two.leave()
    assert await one.alive() == {"one"}
    await two.renew()
    assert await Replicas(database, "three", "1", lease_seconds=0).alive() == {"three"}


async def test_steps_of_one_name_in_two_investigations_do_not_meet(database: Database) -> None:
    journal = await running(database)
    await journal.record_step("s", "one")
    other = Journal(database, Lease(investigation_id=InvestigationId("two"), replica="a", attempt=1))
    assert await other.recorded_steps() == {}
    rows = await database.transaction(lambda connection: connection.execute(select(STEPS.c.investigation_id)).all())
    assert len(rows) == 1
