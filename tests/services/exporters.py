"""Real exporters on loopback, and a Redis: each yields its address as `host:port`."""

from __future__ import annotations

import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

from tests.services import programs
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def node_exporter() -> Iterator[str]:
    """Yield the address of the exporter of this machine."""
    with _exporter("node-exporter", programs.node_exporter(), "--web.listen-address={}") as address:
        yield address


@contextmanager
def postgresql_exporter(port: int, user: str) -> Iterator[str]:
    """Yield the address of the exporter of the PostgreSQL at this port."""
    source = f"DATA_SOURCE_NAME=postgresql://{user}@127.0.0.1:{port}/postgres?sslmode=disable"
    program = programs.postgresql_exporter()
    with _exporter("postgresql-exporter", "/usr/bin/env", source, program, "--web.listen-address={}") as address:
        yield address


@contextmanager
def redis_exporter(port: int) -> Iterator[str]:
    """Yield the address of the exporter of the Redis at this port."""
    options = (f"-redis.addr=redis://127.0.0.1:{port}", "-web.listen-address={}")
    with _exporter("redis-exporter", programs.redis_exporter(), *options) as address:
        yield address


@contextmanager
def redis(most_clients: int) -> Iterator[int]:
    """Yield the port of an empty Redis that accepts so many clients."""
    port, service = free_port(), Service("redis", end_signal=signal.SIGTERM)

    def accepts() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxclients", str(most_clients))
    try:
        service.start([str(programs.redis()), *options], accepts)
        yield port
    finally:
        service.close()


@contextmanager
def _exporter(name: str, *command: object) -> Iterator[str]:
    """Run a command, in which `{}` stands for the address, until the context is left."""
    address, service = f"127.0.0.1:{free_port()}", Service(name, end_signal=signal.SIGTERM)

    def answers() -> bool:
        try:
            return httpx.get(f"http://{address}/metrics", timeout=5).is_success
        except httpx.TransportError:
            return False

    try:
        service.start([str(each).format(address) for each in command], answers)
        yield address
    finally:
        service.close()
