"""Where the outputs of tools go, and how a message says which stored result it shows.

The store is implemented in `holmes.stores`; files by default. The label is written by the spill, shown to the model so
that it can cite a result, and left out by everything that wants the output itself: masks, line counts, citations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from holmes.values.messages import Text, joined_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import ResultId, StoredResult, ToolCallId, ToolMessage

SEARCH_TOOL: Final = "search_stored_result"
LINES_TOOL: Final = "read_stored_result_lines"
QUERY_TOOL: Final = "query_stored_result"
STATS_TOOL: Final = "summarize_stored_result"
IMAGE_TOOL: Final = "read_image_file"
RESULT_TOOLS: Final = (SEARCH_TOOL, LINES_TOOL, QUERY_TOOL, STATS_TOOL, IMAGE_TOOL)
"""The tools that read stored results back. What they answer is bounded and in the store already."""

_LABEL = re.compile(r"\[result ([0-9a-zA-Z_-]+)\]")


class ResultStore(Protocol):
    """Keeps bytes verbatim under an id made of their content. Same content, same id, stored once."""

    async def put(self, content: bytes, *, tool_name: str, call_id: ToolCallId, media_type: str) -> StoredResult:
        """Store `content` for one call.

        Raises `ResultStoreError` when that is not possible (disk full, read-only); nothing half-written stays behind.
        The same call id twice never overwrites.
        """
        ...

    async def read(self, result_id: ResultId) -> tuple[bytes, StoredResult]:
        """The content and its description.

        Raises `ResultStoreError` for an unknown id and for one whose time has run out. Names no other id.
        """
        ...


def result_label(stored: Sequence[StoredResult]) -> str:
    """The last part of a labelled result: `[result <id>]`, of its text if it has one. Empty when nothing is stored."""
    if not stored:
        return ""
    shown = next((each for each in stored if not each.media_type.startswith("image/")), stored[0])
    return f"[result {shown.id}]"


def label_of(message: ToolMessage) -> str | None:
    """The label that `message` ends with, or None. Only an id that is stored for this message makes a label."""
    last = message.parts[-1] if len(message.parts) > 1 else None
    if not isinstance(last, Text):
        return None
    match = _LABEL.fullmatch(last.text)
    return last.text if match and any(each.id == match[1] for each in message.stored) else None


def output_text(message: ToolMessage) -> str:
    """The text of `message` without its label: what the tool said, or the pointer or mask in its place."""
    return message.text if label_of(message) is None else joined_text(message.parts[:-1])
