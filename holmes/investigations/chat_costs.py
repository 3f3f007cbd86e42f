"""What chats cost, kept with the steps of investigations: the budget of a day holds for both. Used by the server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from holmes.investigations.journal import insert_once
from holmes.investigations.schema import STEPS

if TYPE_CHECKING:
    from holmes.investigations.database import Database

CHATS: Final = "chats"
"""Stands in the place of the id of an investigation."""


async def record_chat_cost(database: Database, run_id: str, cost: float) -> None:
    """A chat has cost so many US dollars. Raises `DatabaseUnavailable`."""
    values = {"investigation_id": CHATS, "name": run_id, "result": b"", "cost": cost, "finished_at": time.time()}
    await database.transaction(lambda connection: insert_once(connection, STEPS, values))
