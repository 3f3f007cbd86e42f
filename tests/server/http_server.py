"""The service on a real port, in a thread of its own: the demo cluster, a scripted provider, a real database.

The queue runs only where a test asks for it: there can be one in a process at a time.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import httpx

from holmes.app.alerts import alert_intake
from holmes.app.cluster import ClusterChoice, chosen_cluster
from holmes.app.investigators import Investigators, InvestigatorsParts
from holmes.app.redaction import make_redactor
from holmes.app.service_parts import database_address
from holmes.app.serving import Service, open_service
from holmes.app.telemetry import open_telemetry
from holmes.investigations.deliveries.records import DeliveryRecords
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentRecords, InvestigationRecords
from holmes.redaction.redactor import Redactor
from holmes.server.application import create_application
from holmes.server.listening import listen, serving, url_of
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from tests.server.workers import HereWorker, NoWorker
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted

T = TypeVar("T")
KEY = "the-key-of-the-tests"
WEBHOOK_KEY = "the-key-of-webhooks"
JSON = {"content-type": "application/json"}
PRICE = 0.001
TOOLSETS = """
toolsets:
  risky:
    description: for tests
    tools:
      - name: risky_echo
        description: Says a word.
        command: "echo said {{ word }}"
      - name: slow_tool
        description: Takes long.
        command: "echo $$ > {{ file }}; sleep 60"
    approval_required_tools: ["risky_*"]
"""


@dataclass(kw_only=True)
class Provider:
    """A provider whose next replies a test chooses."""

    server: OpenAIServer
    respond: Callable[[Body], Scripted] = field(default=lambda _: Reply(text="All is well."))

    def play(self, *replies: Scripted) -> None:
        """Answer with `replies`, the last one for ever."""
        remaining = list(replies)
        self.respond = lambda _: remaining.pop(0) if len(remaining) > 1 else remaining[0]


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that says that all is well."""
    made: list[Provider] = []

    def respond(body: Body) -> Scripted:
        return made[0].respond(body)

    with OpenAIServer(respond) as server:
        made.append(Provider(server=server))
        yield made[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """A running server."""

    url: str
    service: Service
    application: Any
    loop: asyncio.AbstractEventLoop

    def client(self, **headers: str) -> httpx.Client:
        """A client with the key, or with `headers`."""
        return httpx.Client(base_url=self.url, headers=headers or {"X-API-Key": KEY}, timeout=30)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """What a coroutine returns on the loop of the server."""

        async def wrapped() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(wrapped(), self.loop).result(30)


@contextmanager
def http_server(
    folder: Path, *, provider_url: str = "", queue: bool = False, config: str = "", **variables: str
) -> Iterator[HttpServer]:
    """A server with `variables` for its settings and `config` in its file, until the context is left."""
    settings = load_settings(_environment(folder, provider_url, config, variables))
    started: list[HttpServer] = []
    ready, leave = threading.Event(), threading.Event()

    async def serve() -> None:
        redactor = make_redactor(settings)
        with listen(settings.server) as listener:
            await serve_on(listener, redactor)

    async def serve_on(listener: socket.socket, redactor: Redactor | None) -> None:
        async with (
            chosen_cluster(settings, ClusterChoice(demo=True)) as chosen,
            open_service(chosen, redactor=redactor, worker=HereWorker(redactor))
            if queue
            else service_without_queue(chosen, redactor=redactor) as service,
        ):
            application = create_application(service)
            async with serving(application, listener):
                loop = asyncio.get_running_loop()
                started.append(HttpServer(url=url_of(listener), service=service, application=application, loop=loop))
                ready.set()
                await asyncio.to_thread(leave.wait)
                application.state.draining.begin()
                await application.state.chats.drain(1)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="server-under-test")
    thread.start()
    try:
        while not ready.wait(0.05):
            assert thread.is_alive(), "the server did not start"
        yield started[0]
    finally:
        leave.set()
        thread.join(30)


@asynccontextmanager
async def service_without_queue(settings: Settings, *, redactor: Redactor | None) -> AsyncIterator[Service]:
    """The parts of a service; investigations stay queued."""
    database = await Database.open(database_address(settings))
    records = InvestigationRecords(database)
    async with (
        open_telemetry(settings) as telemetry,
        Investigators(
            settings,
            InvestigatorsParts(redactor=redactor, results=None, spent_today=records.spent_today, telemetry=telemetry),
        ) as investigators,
    ):
        parts: Any = {
            "settings": settings,
            "redactor": redactor,
            "metrics": telemetry.metrics,
            "deliveries": DeliveryRecords(database),
            "investigators": investigators,
            "database": database,
            "investigations": records,
            "incidents": IncidentRecords(database),
            "worker": NoWorker(),
            "intake": alert_intake(settings, database, investigators.model_names(), NoWorker().wake),
            "results": investigators.results,
        }
        yield Service(**{each.name: parts.get(each.name) for each in fields(Service)})
    await database.close()


def _environment(folder: Path, provider_url: str, config: str, variables: Mapping[str, str]) -> dict[str, str]:
    home = folder / "home"
    (home / ".holmes").mkdir(parents=True)
    (home / ".holmes" / "config.yaml").write_text(TOOLSETS + config)
    models = home / "models.yaml"
    costs = {"input_cost_per_token": PRICE, "output_cost_per_token": PRICE}
    scripted = {"model": "openai/scripted", "api_base": provider_url, "api_key": "any", **costs}
    models.write_text(json.dumps({"scripted": scripted} if provider_url else {}))
    return {
        "HOME": str(home),
        "HOLMES_PORT": "0",
        "MODEL": "scripted" if provider_url else "builtin/triage",
        "MODEL_LIST_FILE_LOCATION": str(models),
        "HOLMES_FIRST_LOOK": "false",  # the model's answers are shown as they are
        "HOLMES_ANSWER_REVIEW": "false",
        **variables,
    }
