"""The real application on a real port, in a thread of its own. No queue runs, so that states stay as they are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import uvicorn
from pydantic import SecretStr
from sqlalchemy import Connection

from holmes.app.investigators import Investigators, InvestigatorsParts
from holmes.app.serving import Service
from holmes.app.telemetry import Telemetry
from holmes.investigations.deliveries.records import DeliveryRecords
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentRecords, InvestigationRecords
from holmes.server.application import create_application
from holmes.settings.context import ContextSettings
from holmes.settings.investigation import InvestigationSettings, StorageSettings, ToolSettings
from holmes.settings.model import ModelSettings
from holmes.settings.server import ServerSettings
from holmes.settings.settings import Settings
from holmes.stores.result_store import FileResultStore
from holmes.telemetry.metrics import Metrics
from tests.server.page.sample import Sample, fill

T = TypeVar("T")
KEY = "a-key-for-the-page"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server with the sample in it."""

    url: str
    service: Service
    sample: Sample
    loop: asyncio.AbstractEventLoop

    def run(self, awaitable: Callable[[Service], Awaitable[T]]) -> T:
        """What a coroutine returns on the loop of the server."""

        async def wrapped() -> T:
            return await awaitable(self.service)

        return asyncio.run_coroutine_threadsafe(wrapped(), self.loop).result(30)

    def write(self, work: Callable[[Connection], T]) -> T:
        """A transaction while the server runs."""
        return self.run(lambda service: service.database.transaction(work))


def settings_for(folder: Path, key: str | None) -> Settings:
    """Everything in `folder`, and no LLM."""
    return Settings(
        model=ModelSettings(model="builtin/triage"),
        investigation=InvestigationSettings(),
        context=ContextSettings(),
        tools=ToolSettings(),
        storage=StorageSettings(results_path=folder / "results"),
        server=ServerSettings(api_key=SecretStr(key) if key else None),
    )


def service_of(settings: Settings, database: Database) -> Service:
    """A service without a queue; parts that the page does not use are missing."""
    records, metrics = InvestigationRecords(database), Metrics(models=())
    shared = InvestigatorsParts(
        redactor=None,
        results=None,
        spent_today=records.spent_today,
        telemetry=Telemetry(metrics=metrics, tracer=None),
    )
    parts: dict[str, object] = {
        "settings": settings,
        "investigators": Investigators(settings, shared),
        "database": database,
        "investigations": records,
        "incidents": IncidentRecords(database),
        "metrics": metrics,
        "deliveries": DeliveryRecords(database),
        "results": FileResultStore(settings.storage.results_path),
    }
    make: Callable[..., Service] = Service
    return make(**{field.name: parts.get(field.name) for field in fields(Service)})


@contextmanager
def running_server(folder: Path, key: str | None = None) -> Iterator[RunningServer]:
    """The server, until the context is left."""
    started: list[RunningServer] = []
    ready, leave = threading.Event(), threading.Event()

    async def serve() -> None:
        database = await Database.open(f"sqlite:///{folder / 'investigations.db'}")
        service = service_of(settings_for(folder, key), database)
        sample = await fill(service)
        config = uvicorn.Config(create_application(service), port=0, log_level="warning", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        listening = config.bind_socket()
        listening.listen()
        port = listening.getsockname()[1]
        serving = asyncio.create_task(server.serve([listening]))
        loop = asyncio.get_running_loop()
        started.append(RunningServer(url=f"http://127.0.0.1:{port}", service=service, sample=sample, loop=loop))
        ready.set()
        await asyncio.to_thread(leave.wait)
        server.should_exit = True
        await serving
        await database.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="page-under-test")
    thread.start()
    try:
        while not ready.wait(0.05):
            assert thread.is_alive(), "the server did not start"
        yield started[0]
    finally:
        leave.set()
        thread.join(20)
