"""A real PostgreSQL server in a temporary folder: the fixtures `postgresql` and `postgresql_url`.

It need not survive a crash of the machine, so it never syncs; what is committed survives a crash of the server.
Everybody on loopback may connect.
"""

from __future__ import annotations

import secrets
import signal
from typing import Final, Literal

from tests.cluster.errors import ClusterError
from tests.services import programs
from tests.services.service import Account, Service, free_port

OWNER: Final = "holmes"
SETTINGS: Final = ("fsync=off", "full_page_writes=off", "max_connections=200", "jit=off")
INITDB: Final = ("--no-sync", "--no-instructions", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
# `crash` cuts all connections and recovers at the next start; `regular` cuts them after a rollback.
Stop = Literal["regular", "crash"]
SIGNALS: Final[dict[Stop, signal.Signals]] = {"regular": signal.SIGINT, "crash": signal.SIGQUIT}


class PostgresqlServer:
    """One server with any number of databases; it keeps its port and its data over `stop` and `start`."""

    def __init__(self) -> None:
        # At the end of a session there is nothing to save: the fast way out.
        self._service = Service("postgresql", account=Account.unprivileged("postgres"), end_signal=signal.SIGQUIT)
        self.port = free_port()
        self._data = str(self._service.folder / "data")
        try:
            initdb = str(programs.postgresql("initdb"))
            self._service.run(initdb, *INITDB, f"--username={OWNER}", f"--pgdata={self._data}")
        except ClusterError:
            self._service.close()
            raise

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._service.is_running

    @property
    def socket_folder(self) -> str:
        """Where the Unix socket is: `postgresql://holmes@/NAME?host=FOLDER&port=PORT`."""
        return str(self._service.folder)

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{OWNER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        options = [f"--{setting.replace('_', '-')}" for setting in SETTINGS]
        command = [str(programs.postgresql("postgres")), "-D", self._data, "-p", str(self.port), *options]
        folders = ["-c", "listen_addresses=127.0.0.1", "-k", self.socket_folder]
        self._service.start([*command, *folders], self._accepts)

    def stop(self, how: Stop = "regular") -> None:
        """End the server, whoever is connected."""
        self._service.stop(SIGNALS[how])

    def close(self) -> None:
        """End the server and delete everything."""
        self._service.close()

    def create_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"test_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run one statement outside of a transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _accepts(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True
