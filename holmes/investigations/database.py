"""The database of the server: SQLite in a file, or PostgreSQL. Used by everything that keeps records.

Statements run in threads, each transaction as one function that gets a connection. A connection that broke is tried
again for a while, because databases restart; what the function does must therefore be one transaction and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from holmes.core.errors import ConfigError, HolmesError
from holmes.investigations.schema import METADATA

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

T = TypeVar("T")

_THREADS = 8
_RETRY_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 2.0
_INTAKE_LOCK = 4_672_165


class DatabaseUnavailable(HolmesError):
    """The database does not answer, or has no room. Raised after the time to try again is over."""

    exit_code = 3


class Database:
    """Transactions on one database. Made by `Database.open`; `close` ends its connections and threads."""

    def __init__(self, engine: Engine, url: URL) -> None:
        self._engine = engine
        self.url = url
        self._threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="holmes-database")

    @classmethod
    async def open(cls, address: str, *, wait_seconds: float = 30.0) -> Database:
        """Connect and create the tables that are missing.

        Raises `ConfigError` for an address that is none, `DatabaseUnavailable` when nobody answers in time.
        """
        url = _parsed(address)
        database = cls(_engine(url), url)
        try:
            await database.transaction(_create_tables, wait_seconds=wait_seconds)
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def shared(self) -> bool:
        """Whether several replicas may use it."""
        return self.url.get_backend_name() == "postgresql"

    async def transaction(self, work: Callable[[Connection], T], *, wait_seconds: float = 5.0) -> T:
        """What `work` returns, committed. Tries again for `wait_seconds` when the connection fails.

        Raises `DatabaseUnavailable`. Cancelling waits for nothing: the thread ends its transaction by itself.
        """
        deadline = time.monotonic() + wait_seconds
        pause = _RETRY_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._once, work)
            except DBAPIError as error:
                if not _is_passing(error) or time.monotonic() + pause > deadline:
                    raise DatabaseUnavailable(f"the database {self._name()} failed: {_reason(error)}") from error
            except SQLAlchemyError as error:
                raise DatabaseUnavailable(f"the database {self._name()} failed: {_reason(error)}") from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def close(self) -> None:
        """End the connections."""
        await asyncio.to_thread(self._threads.shutdown, wait=True)
        self._engine.dispose()

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    def _name(self) -> str:
        return repr(self.url.render_as_string(hide_password=True))


def lock_intake(connection: Connection) -> None:
    """Make every transaction that calls this wait for the one before it, also those of other replicas."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _INTAKE_LOCK})
    # SQLite: every transaction starts with BEGIN IMMEDIATE, see `_engine`, so it is alone already.


def _parsed(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError:
        raise ConfigError(
            "HOLMES_DATABASE_URL is no address of a database: postgresql://... or sqlite:///FILE"
        ) from None
    backend = url.get_backend_name()
    if backend in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        return url
    raise ConfigError(f"HOLMES_DATABASE_URL: {backend!r} is not supported: postgresql://... or sqlite:///FILE")


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        return create_engine(
            url, pool_size=_THREADS, max_overflow=0, pool_pre_ping=True, connect_args={"connect_timeout": 5}
        )
    engine = create_engine(url, connect_args={"timeout": 10, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver's own transactions begin too late
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _create_tables(connection: Connection) -> None:
    lock_intake(connection)  # two replicas that start at once
    METADATA.create_all(connection)


def _is_passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed later."""
    return error.connection_invalidated or isinstance(error, OperationalError)


def _reason(error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(error).__name__
