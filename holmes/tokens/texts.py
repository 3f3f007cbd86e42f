"""The texts that are counted, and their size in bytes. Called by the counters; pure, and needs no tokenizer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from holmes.values.messages import AssistantMessage, SystemMessage, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.messages import Message
    from holmes.values.tools import Tool

_CHUNK_CHARACTERS = 65_536
_BOUNDARY_SEARCH_CHARACTERS = 4_096
# Between these two characters every encoding starts a new piece, so counting the sides apart changes nothing.
_SAFE_BOUNDARY = re.compile(r"(?<=\n)(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?= [A-Za-z])")


def chunks(text: str) -> Iterator[str]:
    """`text` in pieces of at most 64 KB characters, cut where a new token starts anyway if there is such a place."""
    start = 0
    while len(text) - start > _CHUNK_CHARACTERS:
        end = start + _CHUNK_CHARACTERS
        boundary = end
        for match in _SAFE_BOUNDARY.finditer(text, end - _BOUNDARY_SEARCH_CHARACTERS, end):
            boundary = match.start()
        yield text[start:boundary]
        start = boundary
    yield text[start:] if start else text


def utf8_bytes(text: str) -> int:
    """Length of `text` in UTF-8. A large text is measured in pieces, so that it is not copied as a whole."""
    if text.isascii():
        return len(text)
    pieces = (text[start : start + _CHUNK_CHARACTERS] for start in range(0, len(text), _CHUNK_CHARACTERS))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


def message_texts(message: Message) -> Iterator[str]:
    """Every text of `message` that travels to the provider."""
    if isinstance(message, SystemMessage):
        yield message.text
    elif isinstance(message, AssistantMessage):
        yield message.text
        for call in message.tool_calls:
            yield call.name
            yield call.arguments
        for block in message.reasoning:
            yield block.payload
    else:
        for part in message.parts:
            if isinstance(part, Text):
                yield part.text


def tool_schema_text(tool: Tool) -> str:
    """The schema of `tool` as JSON, as it travels in a request."""
    schema = {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema()}
    return json.dumps(schema, ensure_ascii=False)
