"""Turns the result of an MCP tool into the result of a tool, with its text and images."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING

from holmes.values.messages import Image
from holmes.values.texts import excerpt
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents

_ERROR_CHARACTERS = 1_000


def tool_result(result: CallToolResult, *, invocation: str) -> ToolResult:
    """Return the text of all parts in order, and the images. A part of another kind becomes one line about it.

    Structured content is used only if the server did not also write it as text.
    """
    texts: list[str] = []
    images: list[Image] = []
    for part in result.content:
        read = _part(part)
        if isinstance(read, Image):
            images.append(read)
        else:
            texts.append(read)
    if not any(text.strip() for text in texts) and not images and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    text = "\n".join(texts)
    if result.is_error:
        error = excerpt(" ".join(text.split()), _ERROR_CHARACTERS) or "the tool failed without a message"
        return ToolResult(status="error", error=error, images=tuple(images), invocation=invocation)
    is_empty = not text.strip() and not images
    return ToolResult(
        status="no_data" if is_empty else "success", data=text, images=tuple(images), invocation=invocation
    )


def _part(part: ContentBlock) -> str | Image:
    match part.type:
        case "text":
            return part.text
        case "image":
            return _image(part.data, part.mime_type)
        case "audio":
            return f"[audio of type {part.mime_type}, which cannot be shown]"
        case "resource_link":
            kind = f" ({part.mime_type})" if part.mime_type else ""
            return f"[link to resource {part.name}{kind}: {part.uri}]"
        case "resource":
            return _resource(part.resource)


def _resource(resource: TextResourceContents | BlobResourceContents) -> str | Image:
    from mcp_types import TextResourceContents

    if isinstance(resource, TextResourceContents):
        return resource.text
    kind = resource.mime_type or ""
    if kind.startswith("image/"):
        return _image(resource.blob, kind)
    return f"[binary resource {resource.uri} of type {kind or 'unknown'}, which cannot be shown]"


def _image(data: str, media_type: str) -> str | Image:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[image of type {media_type} that is damaged]"
    return Image(data=content, media_type=media_type)
