"""`read_image_file`: a stored picture comes back into the conversation. One above the cap is an error (T12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import ToolError
from holmes.values.messages import Image
from holmes.values.tools import LINES_TOOL, ToolResult

if TYPE_CHECKING:
    from holmes.toolsets.stored_results.reader import Reader
    from holmes.values.json_types import JsonObject


async def show_image(reader: Reader, arguments: JsonObject) -> ToolResult:
    """The picture of an id or path. Raises `ResultStoreError` and `ToolError`."""
    content, stored = await reader.read(str(arguments["result"]))
    if not stored.media_type.startswith("image/"):
        raise ToolError(f"result {stored.id} is {stored.media_type}, not a picture; use {LINES_TOOL}")
    if not reader.vision:
        raise ToolError("this model cannot look at pictures")
    image = Image(data=content, media_type=stored.media_type)
    tokens, cap = reader.counter.image_tokens(image), reader.cap_tokens
    if tokens > cap:
        raise ToolError(
            f"the picture takes about {tokens:,} tokens and a result may take {cap:,}; "
            "ask for a smaller picture or another source"
        )
    text = f"Picture {stored.id}, {stored.media_type}, {stored.size_bytes:,} bytes."
    return ToolResult(status="success", data=text, images=(image,), spillable=False)
