"""A result store on a disk that can become full and recover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import ResultStoreError

if TYPE_CHECKING:
    from holmes.values.messages import ResultId, StoredResult, ToolCallId
    from holmes.values.tools import ResultStore


class UnreliableDisk:
    """Passes on what `inner` does, as long as there are `puts_left`; None means without end."""

    def __init__(self, inner: ResultStore) -> None:
        self._inner = inner
        self.puts_left: int | None = None
        self.refused = 0

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        if self.puts_left is not None:
            if not self.puts_left:
                self.refused += 1
                raise ResultStoreError("cannot store a result in '/data': No space left on device")
            self.puts_left -= 1
        try:
            return await self._inner.put(content, tool_name=tool_name, call_id=call_id, media_type=media_type)
        except ResultStoreError:
            self.refused += 1
            raise

    def reopened(self, inner: ResultStore) -> UnreliableDisk:
        """The same disk, seen by a new process."""
        disk = UnreliableDisk(inner)
        disk.puts_left, disk.refused = self.puts_left, self.refused
        return disk

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        return await self._inner.read(result_id)
