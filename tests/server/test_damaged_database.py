"""A damaged file of SQLite ends the server with an exit code of its own and advice, at the start and later."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import httpx
import pytest

from tests.server.test_two_processes import running
from tests.support.command_line import Home

Damage: TypeAlias = Literal["no header", "no schema", "truncated", "pages"]

pytestmark = pytest.mark.slow

EXIT_DAMAGED = 4
ADVICE = "restore a backup, or move the file away"
GARBAGE = b"\x00garbage\xff" * 10_000


def damage(file: Path, how: Damage) -> None:
    """Overwrite the file in place."""
    with file.open("r+b") as opened:
        match how:
            case "no header":
                opened.write(b"no database at all" * 20)
            case "no schema":
                opened.seek(100)
                opened.write(GARBAGE[:4_000])
            case "truncated":
                opened.truncate(file.stat().st_size // 2 + 100)
            case "pages":
                opened.seek(4_096)
                opened.write(GARBAGE * 3)
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """What a server left behind."""
    with running(tmp_path) as server:
        server.end()
    return server.database


@pytest.mark.parametrize("how", ["no header", "no schema", "truncated", "pages"])
def test_a_server_does_not_start_on_a_damaged_file(tmp_path: Path, database: Path, how: Damage) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(database, how)
    content = database.read_bytes()
    home = Home.make(tmp_path / "damaged", HOLMES_DATABASE_URL=f"sqlite:///{database}")
    ended = home.run("serve", "--demo", "--port", "0")
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("holmes: ")]
    assert ended.exit_code == EXIT_DAMAGED, ended.stderr
    assert str(database) in line
    assert ADVICE in line
    assert "Traceback" not in ended.stderr
    assert database.read_bytes() == content, "what may still be rescued is left alone"


def test_a_damaged_queue_ends_the_start_too(tmp_path: Path, database: Path) -> None:
    queue = database.with_name("investigations-queue.db")
    damage(queue, "no header")
    home = Home.make(tmp_path / "damaged", HOLMES_DATABASE_URL=f"sqlite:///{database}")
    ended = home.run("serve", "--demo", "--port", "0")
    assert ended.exit_code == EXIT_DAMAGED, ended.stderr
    assert str(queue) in ended.stderr
    assert ADVICE in ended.stderr


@pytest.mark.parametrize("name", ["investigations.db", "investigations-queue.db"])
def test_a_file_that_is_damaged_under_the_server_ends_it(tmp_path: Path, name: str) -> None:
    with running(tmp_path) as server:
        httpx.get(f"{server.url}/readyz", timeout=30).raise_for_status()
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with (tmp_path / name).open("r+b") as opened:
            opened.write(b"no database at all" * 20)
            opened.seek(4_096)
            opened.write(GARBAGE * 3)
        with suppress(httpx.HTTPError):
            httpx.post(f"{server.url}/api/investigations", json={"question": "why?"}, timeout=30)
        _, stderr = server.process.communicate(timeout=60)
        assert server.process.returncode == EXIT_DAMAGED, stderr
        assert ADVICE in stderr
        assert "Traceback" not in stderr
