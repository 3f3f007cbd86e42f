"""pytest plugin with the real services: `pytest_plugins = ["tests.services.fixtures"]` in tests/conftest.py.

A machine that lacks a program skips the tests that need it and says why in one line; with CI=true the same is a
failure. Everything ends with the test session, however that ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.cluster.errors import CannotRunHereError
from tests.cluster.layout import Layout, in_ci
from tests.services import log_stores, mcp_servers, programs
from tests.services.go_programs import VICTORIA_LOGS, installed
from tests.services.mcp_servers import Command, HttpServer
from tests.services.monitoring import Monitor
from tests.services.monitoring import alertmanager as run_alertmanager
from tests.services.monitoring import prometheus as run_prometheus
from tests.services.monitoring import victoria_metrics as run_victoria_metrics
from tests.services.postgresql import PostgresqlServer

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.toolsets.mcp.servers import HttpMode

__all__ = ["Command", "HttpServer", "Monitor", "PostgresqlServer", "RunEverything", "RunMonitor"]

RunMonitor: TypeAlias = Callable[..., AbstractContextManager[Monitor]]
RunEverything: TypeAlias = Callable[["HttpMode"], AbstractContextManager[HttpServer]]


@contextmanager
def needed_programs() -> Iterator[None]:
    """Turn a missing program into a skip, and in continuous integration into a failure."""
    try:
        yield
    except CannotRunHereError as error:
        if in_ci():
            pytest.fail(f"no test services: {error}", pytrace=False)
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Yield the server of the session. A test that stops it takes `postgresql` instead."""
    with needed_programs():
        server = PostgresqlServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgresql(postgresql_server: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """Yield the running server; it runs again after a test that has stopped it."""
    yield postgresql_server
    if not postgresql_server.is_running:
        postgresql_server.start()


@pytest.fixture
def postgresql_url(postgresql: PostgresqlServer) -> str:
    """Return the URL of a new, empty database: `postgresql://user@127.0.0.1:PORT/NAME`."""
    return postgresql.create_database()


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """Return the real browser; as root it wants `--no-sandbox`."""
    with needed_programs():
        return programs.chromium()


@pytest.fixture(scope="session")
def prometheus() -> RunMonitor:
    """Return `tests.services.monitoring.prometheus`, where it can run."""
    with needed_programs():
        programs.prometheus()
    return run_prometheus


@pytest.fixture(scope="session")
def alertmanager() -> RunMonitor:
    """Return `tests.services.monitoring.alertmanager`, where it can run."""
    with needed_programs():
        programs.alertmanager()
    return run_alertmanager


@pytest.fixture(scope="session")
def everything_command() -> Command:
    """Return the command of `server-everything`, which takes the transport as an argument."""
    with needed_programs():
        return mcp_servers.everything_command(Layout.from_environment())


@pytest.fixture(scope="session")
def everything_over_http(everything_command: Command) -> RunEverything:
    """Return `tests.services.mcp_servers.everything_over_http`, where it can run."""
    assert everything_command
    return functools.partial(mcp_servers.everything_over_http, Layout.from_environment())


@pytest.fixture(scope="session")
def time_command() -> Command:
    """Return the command of `mcp-server-time` over standard input and output."""
    with needed_programs():
        return mcp_servers.time_command(Layout.from_environment())


@pytest.fixture(scope="session")
def victoria_metrics() -> RunMonitor:
    """Return `tests.services.monitoring.victoria_metrics`, where it can run."""
    with needed_programs():
        programs.victoria_metrics()
        programs.vmalert()
    return run_victoria_metrics


@pytest.fixture(scope="session")
def victoria_logs_url() -> Iterator[str]:
    """Yield the URL of a VictoriaLogs for the session. Tests use namespaces of their own."""
    layout = Layout.from_environment()
    with needed_programs():
        installed(VICTORIA_LOGS, layout)
    with log_stores.victoria_logs(layout) as url:
        yield url
