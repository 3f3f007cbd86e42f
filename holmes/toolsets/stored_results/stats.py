"""`summarize_stored_result`: what kind of text it is and what stands in it, from the previews with a larger budget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holmes.previews import readable_json, structured_preview
from holmes.previews.excerpts import count_lines
from holmes.toolsets.stored_results.reader import decoded

if TYPE_CHECKING:
    from holmes.toolsets.stored_results.reader import Reader
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import StoredResult
    from holmes.values.tools import ToolResult

MAX_STATS_TOKENS = 4_000


async def summarize(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Kind, size and structure of a stored text. Raises `ResultStoreError`, and `ToolError` for a picture."""
    content, stored = await reader.text(str(arguments["result_id"]))
    return await asyncio.to_thread(_summary, reader, content, stored)


def _summary(reader: Reader, content: bytes, stored: StoredResult) -> ToolResult:
    view = readable_json(decoded(content))
    preview = structured_preview(view, min(MAX_STATS_TOKENS, reader.room_tokens), reader.counter)
    size = f"{count_lines(view):,} lines, {stored.size_bytes:,} bytes"
    return reader.bounded(f"Result {stored.id}: {preview.kind}, {size}; {preview.shown}.\n{preview.text}")
