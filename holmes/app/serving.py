"""Puts the parts of the server together. Called by `holmes.server`."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.app.investigators import Investigators
from holmes.investigations.database import Database
from holmes.investigations.records import IncidentRecords, InvestigationRecords

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holmes.core.redaction.redactor import Redactor
    from holmes.core.results import ResultStore
    from holmes.settings.settings import Settings

DEFAULT_DATABASE = "investigations.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Everything that the HTTP interface and the page work with. Made by `open_service`.

    `results` is where outputs of tools lie; None when that is switched off.
    """

    settings: Settings
    redactor: Redactor | None
    investigators: Investigators
    database: Database
    investigations: InvestigationRecords
    incidents: IncidentRecords
    results: ResultStore | None


@asynccontextmanager
async def open_service(settings: Settings, *, redactor: Redactor | None) -> AsyncIterator[Service]:
    """The parts of a running server; leaving the context ends them in order.

    Raises `ConfigError` for settings that cannot work and `DatabaseUnavailable`. A cluster or provider that does not
    answer is no error: both may come back.
    """
    async with AsyncExitStack() as stack:
        database = await Database.open(database_address(settings))
        stack.push_async_callback(database.close)
        investigators = await stack.enter_async_context(Investigators(settings, redactor))
        yield Service(
            settings=settings,
            redactor=redactor,
            investigators=investigators,
            database=database,
            investigations=InvestigationRecords(database),
            incidents=IncidentRecords(database),
            results=investigators.results,
        )


def database_address(settings: Settings) -> str:
    """What the user chose, else a file next to the stored results."""
    chosen = settings.investigations.database_url
    if chosen:
        return chosen.get_secret_value()
    folder: Path = settings.storage.results_path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return f"sqlite:///{folder / DEFAULT_DATABASE}"
