"""Which addresses are taken, and what a database that is away looks like."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Connection, text

from holmes.core.errors import ConfigError, ResultStoreError
from holmes.core.messages import ResultId, ToolCallId
from holmes.investigations.database import Database, DatabaseUnavailable
from holmes.investigations.database_results import DatabaseResultStore
from holmes.investigations.records import InvestigationRecords
from holmes.investigations.values import NewInvestigation
from tests.services.fixtures import PostgresqlServer


@pytest.mark.parametrize("address", ["", "nonsense", "mysql://a/b", "http://x"])
async def test_an_address_that_is_none_is_refused_with_what_to_write(address: str) -> None:
    with pytest.raises(ConfigError, match="postgresql://"):
        await Database.open(address)


async def test_the_password_of_a_database_that_does_not_answer_is_not_shown() -> None:
    with pytest.raises(DatabaseUnavailable) as caught:
        await Database.open("postgresql://me:hunter2@127.0.0.1:1/x", wait_seconds=0)
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


async def test_a_transaction_waits_for_a_database_that_comes_back(postgresql: PostgresqlServer) -> None:
    database = await Database.open(postgresql.create_database())
    try:
        postgresql.stop("crash")
        with pytest.raises(DatabaseUnavailable):
            await database.transaction(lambda connection: connection.execute(text("SELECT 1")), wait_seconds=0)
        waiting = asyncio.create_task(
            database.transaction(lambda connection: connection.execute(text("SELECT 7")).scalar(), wait_seconds=30)
        )
        await asyncio.to_thread(postgresql.start)
        assert await waiting == 7
    finally:
        await database.close()


async def test_the_same_result_is_stored_once_and_read_back(database: Database) -> None:
    store = DatabaseResultStore(database)
    one = await store.put(b"\x00bytes", tool_name="t", call_id=ToolCallId("1"), media_type="text/plain")
    two = await store.put(b"\x00bytes", tool_name="t", call_id=ToolCallId("2"), media_type="text/plain")
    assert one == two
    assert await store.read(one.id) == (b"\x00bytes", one)
    with pytest.raises(ResultStoreError, match="'nope'"):
        await store.read(ResultId("nope"))


async def test_a_table_of_an_older_version_gets_the_columns_that_it_lacks(database: Database) -> None:
    def make_older(connection: Connection) -> None:
        connection.execute(text("INSERT INTO holmes_keys (name, value) VALUES ('k', '1')"))
        connection.execute(text("ALTER TABLE holmes_investigations DROP COLUMN barren_attempts"))
        connection.execute(text("ALTER TABLE holmes_investigations DROP COLUMN workflow_id"))

    await database.transaction(make_older)
    again = await Database.open(database.url.render_as_string(hide_password=False).replace("+psycopg", ""))
    identity = await InvestigationRecords(again).add(NewInvestigation(question="q", title="t", source="api"))
    assert await InvestigationRecords(again).get(identity) is not None
    assert await again.read(lambda connection: connection.execute(text("SELECT name FROM holmes_keys")).scalar()) == "k"
    await again.close()
