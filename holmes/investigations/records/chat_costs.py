"""What chats cost, kept with the steps of investigations: the budget of a day holds for both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from holmes.investigations.records.database import DatabaseUnavailable
from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import STEPS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database

CHATS: Final = "chats"
"""Stands in the place of the id of an investigation."""
_WAIT_SECONDS: Final = 2.0


class ChatCosts:
    """What one chat costs, call by call, so that running chats count and a killed process forgets nothing."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id
        self._calls = 0
        self._waiting: dict[str, tuple[float, float]] = {}

    async def add(self, cost: float) -> None:
        """A call cost so many US dollars. Without a database it is kept with the next one: the answer is paid for."""
        self._calls += 1
        self._waiting[f"{self._run_id}/{self._calls}"] = (cost, time.time())
        await self.flush()

    async def flush(self) -> None:
        """Keep what could not be kept yet, if the database is there. Raises nothing."""
        waiting = dict(self._waiting)
        if not waiting:
            return

        def insert(connection: Connection) -> None:
            for name, (cost, at) in waiting.items():
                # Under a name: a transaction that is said again, because its answer got lost, adds nothing.
                values = {"investigation_id": CHATS, "name": name, "result": b"", "cost": cost, "finished_at": at}
                insert_once(connection, STEPS, values)

        try:
            await self._database.transaction(insert, wait_seconds=_WAIT_SECONDS)
        except DatabaseUnavailable:
            return
        for name in waiting:
            self._waiting.pop(name, None)
