"""Which addresses are taken, and what a database that is away looks like."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Connection, text

from holmes.investigations.records.database import Database, DatabaseUnavailable
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.results import DatabaseResultStore
from holmes.investigations.records.values import NewInvestigation
from holmes.values.errors import ConfigError, ResultStoreError
from holmes.values.messages import ResultId, ToolCallId
from tests.services.fixtures import PostgresqlServer
from tests.support.deadlines import ends_before


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


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_removed_is_noticed_before_anything_is_lost(tmp_path: Path, *, replaced: bool) -> None:
    file = tmp_path / "investigations.db"
    database = await Database.open(f"sqlite:///{file}")
    try:
        records = InvestigationRecords(database)
        await records.add(NewInvestigation(question="kept?", title="kept?", source="api"))
        file.unlink()
        if replaced:
            (tmp_path / "other.db").touch()
            (tmp_path / "other.db").rename(file)

        with pytest.raises(DatabaseUnavailable, match="removed or replaced; restart holmes serve"):
            await records.add(NewInvestigation(question="lost?", title="lost?", source="api"))
        assert database.write_problem
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


async def test_a_server_that_hangs_is_unavailable_in_time_and_works_again_when_it_goes_on(
    postgresql: PostgresqlServer,
) -> None:
    database = await Database.open(postgresql.create_database())
    port = str(postgresql.port)
    server = next(each for each in psutil.process_iter(["cmdline"]) if port in (each.info["cmdline"] or ()))
    frozen = [server, *server.children(recursive=True)]
    try:
        for process in frozen:
            process.suspend()
        with ends_before(30), pytest.raises(DatabaseUnavailable, match="no response"):
            await database.transaction(lambda connection: connection.execute(text("SELECT 1")), wait_seconds=0)
        assert "no response" in str(database.write_problem)
    finally:
        for process in reversed(frozen):
            process.resume()
    assert await database.transaction(lambda connection: connection.execute(text("SELECT 7")).scalar()) == 7
    assert database.write_problem is None
    await database.close()


@pytest.mark.parametrize(
    "address",
    ["postgresql://me@127.0.0.1:1/x?password=hunter2", "postgresql://me:pa@hunter2@127.0.0.1/x", "sqlite://"],
)
async def test_no_form_of_an_address_shows_a_password(address: str) -> None:
    with pytest.raises((DatabaseUnavailable, ConfigError)) as caught:
        await Database.open(address, wait_seconds=0)
    assert "hunter2" not in str(caught.value)


async def test_the_files_of_a_database_are_private(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'i.db'}")
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}  # noqa: ASYNC240  a test may wait
    assert modes == {0o600}
    await database.close()
