"""Stores of results without files: one that works, and one whose disk is full."""

from __future__ import annotations

import hashlib

from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId, StoredResult, ToolCallId


class MemoryStore:
    """A second implementation of the store, without files: pointers must not need a path."""

    def __init__(self) -> None:
        self.contents: dict[ResultId, tuple[bytes, StoredResult]] = {}

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:  # noqa: ARG002
        result_id = ResultId(hashlib.sha256(content).hexdigest()[:12])
        stored = StoredResult(id=result_id, path=None, size_bytes=len(content), media_type=media_type)
        self.contents[result_id] = (content, stored)
        return stored

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        return self.contents[result_id]


class FullDisk(MemoryStore):
    """Refuses everything."""

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:  # noqa: ARG002
        raise ResultStoreError("cannot store a result in '/data': No space left on device")
