"""Runs `holmes serve`: opens the service, listens with or without TLS, and shuts down on a signal.

After the first signal, running chats have `drain_seconds` to finish. A second signal stops the server at once. If the
investigation process dies, the server stops too, so that its supervisor restarts both processes. Incomplete or
mismatched HOLMES_SSL_* files are rejected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.app.cluster import chosen_cluster
from holmes.app.serving import open_service
from holmes.server.application import create_application
from holmes.server.listening import serving, url_of
from holmes.server.work_main import ENDING_SIGNALS
from holmes.settings.settings import reveal
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from fastapi import FastAPI

    from holmes.app.cluster import ClusterChoice
    from holmes.app.serving import Service
    from holmes.investigations.records.database import Database, DatabaseDamaged
    from holmes.redaction.redactor import Redactor
    from holmes.server.work_process import WorkProcess
    from holmes.settings.server import ServerSettings
    from holmes.settings.settings import Settings


def _tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """Create the TLS context, or return None for plain HTTP. Raises `ConfigError`."""
    certificate, key, authorities = settings.ssl_certfile, settings.ssl_keyfile, settings.ssl_ca_certs
    if certificate is None and key is None:
        if authorities is not None or settings.ssl_keyfile_password is not None:
            raise ConfigError("TLS requires a certificate: set HOLMES_SSL_CERTFILE and HOLMES_SSL_KEYFILE")
        return None
    if certificate is None or key is None:
        given, missing = ("CERTFILE", "KEYFILE") if key is None else ("KEYFILE", "CERTFILE")
        raise ConfigError(f"HOLMES_SSL_{given} is set without HOLMES_SSL_{missing}: set both or neither")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An empty password prevents a prompt on the terminal.
        context.load_cert_chain(certificate, key, password=reveal(settings.ssl_keyfile_password) or "")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"HOLMES_SSL_CERTFILE={str(certificate)!r} and HOLMES_SSL_KEYFILE={str(key)!r} cannot be used: "
            f"{_reason(error)}; the certificate and the key must be PEM files that match; an encrypted key requires "
            "HOLMES_SSL_KEYFILE_PASSWORD"
        ) from error
    if authorities is not None:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ValueError) as error:
            raise ConfigError(f"HOLMES_SSL_CA_CERTS={str(authorities)!r} cannot be used: {_reason(error)}") from error
        # Client certificates are optional, because probes and browsers have none. The API key is still required.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerJob:
    """The parameters of the server: settings, cluster, redactor and the worker process."""

    settings: Settings
    choice: ClusterChoice
    redactor: Redactor | None
    worker: WorkProcess


async def run_server(job: ServerJob, listener: socket.socket, say: Callable[[str], None]) -> int:
    """Serve until a signal arrives. Returns the exit code. Raises `HolmesError` if the server cannot start."""
    tls = _tls_context(job.settings.server)
    ending = _ending_on_signals()
    with listener:
        one = chosen_cluster(job.settings, job.choice, needs_one=False)
        async with one as chosen, AsyncExitStack() as stack:
            opening = open_service(chosen, redactor=job.redactor, worker=job.worker)
            service = await _opened_unless(ending, stack, opening)
            if service is None:
                return 0
            application = create_application(service)
            stack.push_async_callback(application.state.mcp.aclose)
            async with serving(application, listener, tls=tls):
                say(f"holmes: listening on {url_of(listener, 'https' if tls else 'http')}")
                if job.choice.notice:
                    _log.warning("%s", job.choice.notice)
                damage = await _until_ending(ending, job.worker, service.database)
                await _drain(application, chosen.investigations.drain_seconds)
    if damage is not None:
        raise damage
    return job.worker.exit_code


async def _until_ending(ending: asyncio.Event, worker: WorkProcess, database: Database) -> DatabaseDamaged | None:
    """Wait for a signal, the worker's exit or a damaged database.

    Returns the error if the database is damaged, else None.
    """
    told = asyncio.create_task(ending.wait(), name="a signal ends the server")
    lost = asyncio.create_task(worker.lost(), name="the worker is lost")
    damaged = asyncio.create_task(database.damaged(), name="the database is damaged")
    await asyncio.wait({told, lost, damaged}, return_when=asyncio.FIRST_COMPLETED)
    for each in (told, lost, damaged):
        each.cancel()
    if damaged.done():
        return damaged.result()
    if not ending.is_set():
        exits = "the server exits, so that its supervisor restarts both processes"
        _log.error("the investigation process %s; %s", lost.result(), exits)
    return None


async def _opened_unless(
    ending: asyncio.Event, stack: AsyncExitStack, service: AbstractAsyncContextManager[Service]
) -> Service | None:
    """Open the service, which may wait for the database. Returns None if a signal arrives first."""
    opening = asyncio.current_task()
    assert opening is not None  # noqa: S101  a coroutine runs in a task

    async def end() -> None:
        await ending.wait()
        opening.cancel()

    # Only the watcher is a new task, because the task that opens a context must also close it.
    watching = asyncio.create_task(end(), name="a signal ends the opening")
    try:
        return await stack.enter_async_context(service)
    except asyncio.CancelledError:
        if not ending.is_set() or opening.uncancel():
            raise
        return None
    finally:
        watching.cancel()


def _ending_on_signals() -> asyncio.Event:
    ending = asyncio.Event()

    def on_signal(number: int) -> None:
        if ending.is_set():
            os._exit(128 + number)
        _log.info("%s received; the server is stopping", signal.Signals(number).name)
        ending.set()

    for number in ENDING_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return ending


async def _drain(application: FastAPI, seconds: float) -> None:
    """Reject new work, end the event streams of investigations, and let chats and running investigations finish."""
    application.state.draining.begin()
    application.state.service.worker.begin_to_end()
    await application.state.chats.drain(seconds)
