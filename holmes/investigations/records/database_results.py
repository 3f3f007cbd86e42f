"""Outputs of tools in the database, for replicas that share one. A `ResultStore`, built in `holmes.app`."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from holmes.investigations.records.journal import insert_once
from holmes.investigations.records.schema import RESULTS
from holmes.values.errors import HolmesError, ResultStoreError
from holmes.values.messages import ResultId, StoredResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from holmes.investigations.records.database import Database
    from holmes.values.messages import ToolCallId

ID_CHARACTERS = 16
MOST_BYTES = 256 * 1024 * 1024


class DatabaseResultStore:
    """Keeps bytes under an id made of their content. Same content, same id, stored once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:  # noqa: ARG002  the protocol's parameters
        """Store `content`. Raises `ResultStoreError` when the database cannot, and for more than 256 MiB."""
        if len(content) > MOST_BYTES:
            raise ResultStoreError(f"a result of {len(content):,} bytes is too large for the database")
        identity = ResultId(hashlib.sha256(content).hexdigest()[:ID_CHARACTERS])
        now = time.time()
        values = {
            "id": identity,
            "media_type": media_type,
            "size_bytes": len(content),
            "content": content,
            "stored_at": now,
            "used_at": now,
        }

        def store(connection: Connection) -> None:
            if not insert_once(connection, RESULTS, values):
                connection.execute(update(RESULTS).where(RESULTS.c.id == identity).values(used_at=now))

        try:
            await self._database.transaction(store, wait_seconds=60.0)
        except HolmesError as error:
            raise ResultStoreError(f"cannot store a result: {error}") from error
        return StoredResult(id=identity, path=None, size_bytes=len(content), media_type=media_type)

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """Content and description of an id. Raises `ResultStoreError` for an unknown one."""
        query = select(RESULTS.c.content, RESULTS.c.media_type).where(RESULTS.c.id == result_id)
        try:
            row = await self._database.transaction(lambda connection: connection.execute(query).first())
        except HolmesError as error:
            raise ResultStoreError(f"cannot read a stored result: {error}") from error
        if row is None:
            raise ResultStoreError(f"there is no stored result {result_id!r}; it may have been deleted by age")
        content = bytes(row.content)
        return content, StoredResult(id=result_id, path=None, size_bytes=len(content), media_type=row.media_type)
