"""Where results that are too large for the conversation go. Implemented in `holmes.stores`; files by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holmes.core.messages import ResultId, StoredResult, ToolCallId


class ResultStore(Protocol):
    """Keeps bytes verbatim under an id made of their content. Same content, same id, stored once."""

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call.

        Raises `ResultStoreError` when that is not possible (disk full, read-only); nothing half-written stays behind.
        The same call id twice never overwrites.
        """
        ...

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """The content and its description. Raises `ResultStoreError` for an unknown id, naming the nearest known."""
        ...
