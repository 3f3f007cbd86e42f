"""Two replicas and a database that goes away: neither takes the other for dead, and nothing is paid twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holmes.investigations.records.database import Database
from holmes.investigations.records.values import NewInvestigation
from tests.investigations.test_durability import Watched, until
from tests.services.fixtures import PostgresqlServer
from tests.support.command_line import Home, provider_config
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, call
from tests.support.replicas import replica

pytestmark = pytest.mark.slow
INVESTIGATIONS = 4
OUTAGE_SECONDS = 4


def replies(body: Body) -> Scripted:
    """A slow round of tools, then the answer."""
    if any(message["role"] == "assistant" for message in body["messages"]):
        return Reply(text="found")
    return Reply(tool_calls=(call("kubectl_get", kind="pod"),), delay_seconds=OUTAGE_SECONDS + 2)


async def test_after_an_outage_longer_than_a_lease_every_replica_goes_on_with_its_own(
    postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    url = postgresql.create_database()
    with OpenAIServer(replies) as provider:
        home = Home.make(tmp_path / "home", config=provider_config(provider.base_url)).path
        variables = {
            "HOLMES_DATABASE_URL": url,
            "HOLMES_LEASE_SECONDS": "2",
            "HOLMES_INVESTIGATION_CONCURRENCY": "2",
        }
        watched = Watched(await Database.open(url))
        with replica(home, name="one", **variables), replica(home, name="two", **variables):
            queued = [
                await watched.records.add(NewInvestigation(question=f"why? {number}", title="t", source="api"))
                for number in range(INVESTIGATIONS)
            ]

            async def all_asked() -> bool:
                return len(provider.requests) >= INVESTIGATIONS

            await until(all_asked)
            await asyncio.to_thread(postgresql.stop, "crash")
            await asyncio.sleep(OUTAGE_SECONDS)
            await asyncio.to_thread(postgresql.start)
            for identity in queued:
                await until(lambda identity=identity: watched.finished(identity))  # type: ignore[misc]
        records = [await watched.record(identity) for identity in queued]
        await watched.database.close()
    assert [(record.state, record.attempts) for record in records] == [("answered", 1)] * INVESTIGATIONS
    assert len(provider.requests) == 2 * INVESTIGATIONS
