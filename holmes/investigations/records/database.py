"""The server's database, which is an SQLite file or PostgreSQL.

Each transaction is one function that takes a connection and runs in a thread. If the connection fails, the function is
called again for a limited time, because databases restart. The function must therefore have no other side effects.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from holmes.investigations.records.schema import METADATA
from holmes.values.errors import ConfigError, HolmesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

T = TypeVar("T")

_THREADS = 8
_RETRY_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 2.0
_HANGING_SECONDS = 5.0
_INTAKE_LOCK = 4_672_165
_RECOVERY_LOCK = 4_672_166
_POSTGRESQL = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_PRIMARY_CODE = 0xFF
_PASSING = ("locked", "busy", "disk I/O error", "unable to open")


class DatabaseUnavailable(HolmesError):
    """Raised if the database is unavailable or full, even after retries.

    `is_full` is true if the disk is full. In that case, retries cannot succeed.
    """

    exit_code = 3

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the database {name} failed: {reason}")
        self.is_full = " full" in reason or "No space left" in reason


class DatabaseDamaged(DatabaseUnavailable):
    """Raised if the SQLite file is damaged and must be replaced."""

    exit_code = 4

    def __init__(self, file: str, reason: str) -> None:
        advice = "restore a backup, or move the file away with its -wal and -shm files and start again"
        super().__init__(repr(file), f"the file is damaged ({reason}): {advice}")


class Database:
    """Runs transactions on one database, from `Database.open` to `close`.

    `write_problem` is the error from the last transaction, or None if that transaction succeeded.
    """

    def __init__(self, url: URL) -> None:
        self._writer = _engine(url)
        # SQLite uses a separate engine for reads, so that reads do not wait for writes.
        self._reader = self._writer if _is_postgresql(url) else _engine(url, begin="BEGIN")
        self.url = url
        self._writing = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="holmes-database")
        self.write_problem: str | None = None
        self._file: tuple[int, int] | None = None
        self._damage: DatabaseDamaged | None = None
        self._damaged = asyncio.Event()
        self._reading = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="holmes-database-read")

    @classmethod
    async def open(cls, address: str, *, wait_seconds: float = 30.0) -> Database:
        """Connect and create missing tables.

        Raises `ConfigError` for an invalid URL, `DatabaseUnavailable` after `wait_seconds`, and `DatabaseDamaged`.
        """
        url = _parsed(address)
        async with AsyncExitStack() as stack:
            database = cls(url)
            stack.push_async_callback(database.close)
            await database.transaction(_create_tables, wait_seconds=wait_seconds)
            database._file = _identity(url)
            stack.pop_all()
        return database

    @property
    def shared(self) -> bool:
        """Whether several replicas can use the database."""
        return _is_postgresql(self.url)

    def workflows_url(self) -> str:
        """Return the database URL for DBOS: the same PostgreSQL database, or a second file next to the SQLite file."""
        if self.shared:
            return self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        name = self.url.database
        file = f"{name.removesuffix('.db')}-queue.db" if name else name
        return self.url.set(database=file).render_as_string(hide_password=False)

    async def transaction(self, work: Callable[[Connection], T], *, wait_seconds: float = 5.0) -> T:
        """Run `work` in a transaction, commit, and return its result.

        If the connection fails, retries for `wait_seconds`. Raises `DatabaseUnavailable`. A cancelled call returns at
        once, but the thread finishes its transaction.
        """
        try:
            self._require_file()
            result = await self._tried((self._writer, self._writing), work, wait_seconds)
        except DatabaseUnavailable as error:
            self.write_problem = str(error)
            raise
        self.write_problem = None
        return result

    async def read(self, work: Callable[[Connection], T], *, wait_seconds: float = 5.0) -> T:
        """Run read-only `work` in a transaction that does not wait for other transactions.

        Retries like `transaction`.
        """
        return await self._tried((self._reader, self._reading), work, wait_seconds)

    def _require_file(self) -> None:
        """Reject writes to a deleted SQLite file, because the data would be lost when the process ends."""
        if self._file is not None and _identity(self.url) != self._file:
            raise DatabaseUnavailable(self._name(), "its file was removed or replaced; restart holmes serve")

    async def _tried(
        self, way: tuple[Engine, ThreadPoolExecutor], work: Callable[[Connection], T], wait_seconds: float
    ) -> T:
        engine, threads = way
        deadline = time.monotonic() + wait_seconds
        pause = _RETRY_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(wait_seconds + _HANGING_SECONDS):
                    return await loop.run_in_executor(threads, _once, engine, work)
            except TimeoutError:
                # The database server hangs. The thread waits until the connection breaks.
                raise DatabaseUnavailable(self._name(), f"no response within {wait_seconds:.0f} s") from None
            except DBAPIError as error:
                if is_damage(error):
                    damage = DatabaseDamaged(str(self.url.database), _reason(error))
                    self.note_damage(damage)
                    raise damage from error
                if not _is_passing(error) or time.monotonic() + pause > deadline:
                    raise DatabaseUnavailable(self._name(), _reason(error)) from error
            except SQLAlchemyError as error:
                raise DatabaseUnavailable(self._name(), _reason(error)) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def damaged(self) -> DatabaseDamaged:
        """Wait until a transaction or DBOS detects a damaged file. Returns the error."""
        await self._damaged.wait()
        assert self._damage is not None  # noqa: S101  see `note_damage`
        return self._damage

    def note_damage(self, damage: DatabaseDamaged) -> None:
        """Record that the SQLite file, or the DBOS file next to it, is damaged."""
        self._damage = self._damage or damage
        self._damaged.set()

    async def close(self) -> None:
        """Wait for running transactions and close all connections."""
        for threads in (self._reading, self._writing):
            await asyncio.to_thread(threads.shutdown, wait=True)
        for engine in (self._reader, self._writer):
            engine.dispose()

    def _name(self) -> str:
        """Return the database URL for error messages, without the password and the query.

        The query is omitted, because it may also contain a password.
        """
        return repr(self.url.set(query={}).render_as_string(hide_password=True))


def lock_intake(connection: Connection) -> None:
    """Take the lock that allows only one alert intake at a time across all replicas.

    The lock is held until the transaction ends.
    """
    _lock(connection, _INTAKE_LOCK)


def lock_recovery(connection: Connection) -> None:
    """Take the lock that allows only one replica at a time to take over investigations.

    The lock is held until the transaction ends.
    """
    _lock(connection, _RECOVERY_LOCK)


def _lock(connection: Connection, key: int) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
    # SQLite needs no lock, because BEGIN IMMEDIATE already serialises all transactions (see `_engine`).


def _parsed(address: str) -> URL:
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise ConfigError(
            "HOLMES_DATABASE_URL is not a valid database URL; expected postgresql://... or sqlite:///FILE"
        ) from None
    backend = url.get_backend_name()
    if url.host and "@" in url.host:
        raise ConfigError("HOLMES_DATABASE_URL: write an @ in the password as %40")
    if backend in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return url
    if backend == "sqlite":
        raise ConfigError(
            "HOLMES_DATABASE_URL: an in-memory database is not supported; use sqlite:///FILE or postgresql://..."
        )
    raise ConfigError(f"HOLMES_DATABASE_URL: {backend!r} is not supported; use postgresql://... or sqlite:///FILE")


def _is_postgresql(url: URL) -> bool:
    return url.get_backend_name() == "postgresql"


def _identity(url: URL) -> tuple[int, int] | None:
    """Return the device and inode of the SQLite file, or None for PostgreSQL or a missing file."""
    if _is_postgresql(url) or not url.database:
        return None
    try:
        found = Path(url.database).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _once(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.begin() as connection:
        return work(connection)


def _engine(url: URL, begin: str = "BEGIN IMMEDIATE") -> Engine:
    if _is_postgresql(url):
        return create_engine(url, pool_size=2 * _THREADS, max_overflow=0, pool_pre_ping=True, connect_args=_POSTGRESQL)
    engine = create_engine(url, connect_args={"timeout": 10, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        _make_private(Path(str(url.database)))
        connection.isolation_level = None  # otherwise the driver would start transactions too late
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _make_private(file: Path) -> None:
    """Allow only the owner to read the files, because they contain questions, tool results and keys."""
    for each in (file, *(file.with_name(file.name + ending) for ending in ("-wal", "-shm"))):
        with contextlib.suppress(OSError):
            each.chmod(0o600)


def _create_tables(connection: Connection) -> None:
    """Create missing tables, columns and indexes."""
    lock_intake(connection)  # two replicas may start at the same time
    METADATA.create_all(connection)
    inspector = inspect(connection)
    prepared = connection.dialect.identifier_preparer
    for table in METADATA.sorted_tables:
        known = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                kind = column.type.compile(connection.dialect)
                otherwise = " DEFAULT 0 NOT NULL" if not column.nullable else ""
                names = f"{prepared.format_table(table)} ADD COLUMN {prepared.format_column(column)}"
                connection.exec_driver_sql(f"ALTER TABLE {names} {kind}{otherwise}")
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def is_damage(error: BaseException | None) -> bool:
    """Return whether SQLite reports a damaged file."""
    code = getattr(error.orig, "sqlite_errorcode", 0) if isinstance(error, DBAPIError) else 0
    return code & _PRIMARY_CODE in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def _is_passing(error: DBAPIError) -> bool:
    """Return whether the database is only locked or temporarily unavailable, so that a retry may succeed soon."""
    if error.connection_invalidated or not isinstance(error.orig, sqlite3.Error):
        return error.connection_invalidated or isinstance(error, OperationalError)
    return isinstance(error, OperationalError) and any(sign in str(error.orig) for sign in _PASSING)


def _reason(error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(error).__name__
