"""`GET /metrics` with a real database: what the queue says, and what happens when the database does not answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from holmes.app.serving import Service, Worker
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.values import NewInvestigation
from holmes.server.api.health import metrics_router
from holmes.server.errors import add_error_handlers
from holmes.server.security import Keys
from holmes.settings.server import ServerSettings
from holmes.telemetry.instruments import QueueReading, QueueScrape
from holmes.telemetry.metrics import Metrics
from tests.server.workers import NoWorker
from tests.services.fixtures import PostgresqlServer
from tests.support.deadlines import ends_before

KEY = "a-key-of-the-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the endpoint needs of a service."""

    investigations: InvestigationRecords
    metrics: Metrics
    worker: Worker


def application(database: Database) -> FastAPI:
    made = FastAPI()
    made.state.keys = Keys(ServerSettings(api_key=SecretStr(KEY)))
    parts = Parts(investigations=InvestigationRecords(database), metrics=Metrics(models=[]), worker=NoWorker())
    made.include_router(metrics_router(cast("Service", parts)))
    add_error_handlers(made)
    return made


async def scrape(made: FastAPI, key: str = KEY) -> httpx.Response:
    transport = httpx.ASGITransport(app=made)
    async with httpx.AsyncClient(transport=transport, base_url="http://holmes") as client:
        return await client.get("/metrics", headers={"authorization": f"Bearer {key}"})


async def test_the_queue_is_shown_and_a_database_that_is_down_is_not_waited_for(
    postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    database = await Database.open(postgresql_url)
    try:
        made = application(database)
        await InvestigationRecords(database).add(NewInvestigation(question="q", title="t", source="api"))
        up = (await scrape(made)).text
        assert "holmes_database_up 1.0" in up
        assert 'holmes_investigations{state="queued"} 1.0' in up
        assert 'holmes_investigations{state="failed"} 0.0' in up
        assert "holmes_queue_depth 1.0" in up

        postgresql.stop("crash")
        await asyncio.sleep(2.1)  # as long as an answer is good
        with ends_before(10):
            down = await scrape(made)
        assert down.status_code == 200
        assert "holmes_database_up 0.0" in down.text
        assert "holmes_queue_depth 1" not in down.text
        assert "holmes_build_info{" in down.text

        postgresql.start()
        async with asyncio.timeout(20):
            while "holmes_database_up 1.0" not in (await scrape(made)).text:  # noqa: ASYNC110  a server of its own
                await asyncio.sleep(0.2)
    finally:
        await database.close()


async def test_figures_need_the_key(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'i.db'}")
    try:
        refused = await scrape(application(database), key="wrong")
    finally:
        await database.close()
    assert refused.status_code == 401
    assert "holmes_" not in refused.text


async def test_a_database_that_hangs_is_asked_once_however_many_scrape() -> None:
    asked = 0
    answer = asyncio.Event()

    async def read() -> QueueReading:
        nonlocal asked
        asked += 1
        await answer.wait()
        return QueueReading(by_state={"queued": 1}, waiting=1, oldest_wait_seconds=2.0)

    scraping = QueueScrape(read, patience_seconds=0.05)
    assert await asyncio.gather(*(scraping.reading() for _ in range(5))) == [None] * 5
    answer.set()
    readings = await asyncio.gather(*(scraping.reading() for _ in range(5)))
    assert all(reading is not None and reading.waiting == 1 for reading in readings)
    assert asked == 1


async def test_an_answer_is_good_for_a_moment_only() -> None:
    asked = 0

    async def read() -> QueueReading:
        nonlocal asked
        asked += 1
        return QueueReading(by_state={}, waiting=asked, oldest_wait_seconds=0.0)

    scraping = QueueScrape(read, stale_after_seconds=0.02)
    assert [(await scraping.reading()) == (await scraping.reading()), asked] == [True, 1]
    await asyncio.sleep(0.03)
    reading = await scraping.reading()
    assert (reading and reading.waiting) == 2


@pytest.mark.parametrize("reading", [None, QueueReading(by_state={}, waiting=0, oldest_wait_seconds=0.0)])
async def test_an_empty_queue_is_not_a_database_that_is_down(reading: QueueReading | None) -> None:
    text = (await Metrics(models=[]).exposition(reading)).content.decode()
    assert ("holmes_queue_depth 0.0" in text) is (reading is not None)
    assert f"holmes_database_up {1.0 if reading else 0.0}" in text
