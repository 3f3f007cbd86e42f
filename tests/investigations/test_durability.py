"""An investigation survives whatever happens to the server, and nothing that is finished is done or paid again."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from holmes.investigations.records.database import Database
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.schema import STEPS
from holmes.investigations.records.values import InvestigationId, InvestigationRecord, NewInvestigation
from tests.support.command_line import Home, provider_config
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, call
from tests.support.replicas import replica, start_replica

pytestmark = pytest.mark.slow
ROUNDS = 5
ANSWER = "ConfigMap shop/payments-config has no key GATEWAY_URL."
NEW = NewInvestigation(question="why is checkout failing?", title="checkout", source="api")


def replies(body: Body) -> Scripted:
    """Five rounds of tools, then the answer."""
    done = sum(message["role"] == "assistant" for message in body["messages"])
    if done >= ROUNDS:
        return Reply(text=ANSWER, delay_seconds=0.2)
    return Reply(tool_calls=(call("kubectl_get", kind="pod", namespace="shop"),), delay_seconds=0.2)


def round_of(body: Body) -> int:
    return 1 + [message["role"] for message in body["messages"]].count("assistant")


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait for something in a database, which has no event."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  see above
            await asyncio.sleep(0.05)


class Watched:
    """The database of the replicas, as a test looks at it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.records = InvestigationRecords(database)

    async def record(self, identity: InvestigationId) -> InvestigationRecord:
        record = await self.records.get(identity)
        assert record is not None
        return record

    async def steps(self) -> dict[str, float]:
        query = select(STEPS.c.name, STEPS.c.finished_at)
        rows = await self.database.transaction(lambda connection: connection.execute(query).all())
        return {row.name: row.finished_at for row in rows}

    async def finished(self, identity: InvestigationId) -> bool:
        return (await self.record(identity)).state not in {"queued", "running"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'investigations.db'}"
    return str(request.getfixturevalue("postgresql_url"))


async def test_after_kill_9_it_goes_on_from_the_last_finished_step_and_pays_none_again(
    database_url: str, tmp_path: Path
) -> None:
    with OpenAIServer(replies) as provider:
        home = Home.make(tmp_path / "home", config=provider_config(provider.base_url)).path
        variables = {"HOLMES_DATABASE_URL": database_url, "HOLMES_LEASE_SECONDS": "1"}
        watched = Watched(await Database.open(database_url))
        identity = await watched.records.add(NEW)
        offset = time.time() - time.monotonic()
        for kills in (1, 4):  # in the middle of a tool, and of a later reply

            async def far_enough(kills: int = kills) -> bool:
                return len(await watched.steps()) >= kills

            process = await asyncio.to_thread(start_replica, home, **variables)
            assert process.stdout is not None
            await until(far_enough)
            process.kill()
            process.wait()
            process.stdout.close()
        with replica(home, **variables):
            await until(lambda: watched.finished(identity))
        record = await watched.record(identity)
        steps = await watched.steps()
        events = await watched.records.events(identity)
        await watched.database.close()

    assert (record.state, record.answer, record.attempts) == ("answered", ANSWER, 3), record.error
    recorded = {int(name.split("/")[0].removeprefix("step-")): at for name, at in steps.items() if "/complete" in name}
    late = [
        round_of(request.body)
        for request in provider.requests
        if request.at_seconds + offset > recorded[round_of(request.body)]
    ]
    assert late == [], "a model call was made again after it was recorded"
    assert len(provider.requests) <= ROUNDS + 1 + 2, "each kill may cost the one call that was under way"
    names = [event.name for event in events]
    assert names.count("ai_answer_end") == 1
    assert names.count("start_tool_calling") == names.count("tool_calling_result") == ROUNDS
    assert sum("Resumed by" in event.data for event in events) == 2


async def test_a_replica_that_is_told_to_end_hands_over_at_once(postgresql_url: str, tmp_path: Path) -> None:
    handed_over = threading.Event()

    def slow(body: Body) -> Scripted:
        if round_of(body) == 3:  # the first replica is still waiting for this one when it is told to end
            handed_over.wait(60)
        return replies(body)

    with OpenAIServer(slow) as provider:
        home = Home.make(tmp_path / "home", config=provider_config(provider.base_url)).path
        variables = {"HOLMES_DATABASE_URL": postgresql_url, "HOLMES_DRAIN_SECONDS": "0", "HOLMES_LEASE_SECONDS": "8"}
        watched = Watched(await Database.open(postgresql_url))
        identity = await watched.records.add(NEW)
        with replica(home, name="first", **variables) as first:

            async def begun() -> bool:
                return len(await watched.steps()) >= 2

            await until(begun)
            with replica(home, name="second", **variables):
                first.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(first.wait, 30) == 0
                handed_over.set()
                await until(lambda: watched.finished(identity))
        record = await watched.record(identity)
        await watched.database.close()
    assert (record.state, record.answer, record.attempts) == ("answered", ANSWER, 2), record.error


async def test_cancelling_stops_the_run_and_closes_the_connection_to_the_provider(
    postgresql_url: str, tmp_path: Path
) -> None:
    from tests.support.openai_server import Hang

    with OpenAIServer([Hang()]) as provider:
        home = Home.make(tmp_path / "home", config=provider_config(provider.base_url)).path
        watched = Watched(await Database.open(postgresql_url))
        identity = await watched.records.add(NEW)
        with replica(home, HOLMES_DATABASE_URL=postgresql_url):
            assert await asyncio.to_thread(provider.wait_for_request, 60)
            assert await watched.records.cancel(identity)
            assert not await watched.records.cancel(identity)
            assert await asyncio.to_thread(provider.wait_for_disconnect, 30)
        record = await watched.record(identity)
        await watched.database.close()
    assert record.state == "cancelled"
