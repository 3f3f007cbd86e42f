"""Random keys that all replicas of one database share: for placeholders of secrets and for signatures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sqlalchemy import select

from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import KEYS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database

KEY_BYTES = 32


async def shared_key(database: Database, name: str) -> bytes:
    """The key of this name: 32 random bytes, made by whoever asks first. Raises `DatabaseUnavailable`."""

    def read(connection: Connection) -> bytes:
        insert_once(connection, KEYS, {"name": name, "value": os.urandom(KEY_BYTES)})
        return bytes(connection.execute(select(KEYS.c.value).where(KEYS.c.name == name)).scalar_one())

    return await database.transaction(read)
