"""Puts parts of a message into the result store, and every result of a history before a stage cuts it (invariant 6).

Texts are encoded in pieces and, when they are large, in a thread, so that the event loop never waits for them. Refuses
nothing: what cannot be stored is a `ResultStoreError` that the callers turn into words. Results are stored when they
join, so `store_results` has nothing to do unless the conversation came from elsewhere or the disk was full then; what
cannot be stored is left as it is, and the stages go on.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

from holmes.previews import is_json
from holmes.values.errors import ResultStoreError
from holmes.values.messages import Image, ToolMessage

if TYPE_CHECKING:
    from holmes.core.history import History
    from holmes.values.messages import Message, StoredResult, ToolCallId, UserMessage
    from holmes.values.tools import ResultStore

PIECE_CHARACTERS = 262_144
INLINE_CHARACTERS = 16_384
"""A text of at most this length is handled on the event loop: a thread would take longer."""


async def store_tool_message(
    message: ToolMessage, store: ResultStore | None
) -> tuple[StoredResult, ...] | ResultStoreError:
    """Where the parts of a result lie, or why they could not be stored. What is stored already is not stored again."""
    if message.stored:
        return message.stored
    try:
        return await store_parts(message, store, tool_name=message.tool_name, call_id=message.call_id)
    except ResultStoreError as error:
        return error


async def store_parts(
    message: ToolMessage | UserMessage, store: ResultStore | None, *, tool_name: str, call_id: ToolCallId
) -> tuple[StoredResult, ...]:
    """Put the text, if any, and every picture into the store. Raises `ResultStoreError`."""
    if store is None:
        raise ResultStoreError("storage of tool results is switched off")
    stored: list[StoredResult] = []
    text = message.text
    if text:
        small = len(text) <= INLINE_CHARACTERS
        content, media_type = _encoded(text) if small else await asyncio.to_thread(_encoded, text)
        stored.append(await store.put(content, tool_name=tool_name, call_id=call_id, media_type=media_type))
        del content
    stored += [
        await store.put(image.data, tool_name=tool_name, call_id=call_id, media_type=image.media_type)
        for image in message.parts
        if isinstance(image, Image)
    ]
    return tuple(stored)


def _encoded(text: str) -> tuple[bytes, str]:
    """UTF-8 and the media type.

    A toolset that decoded with `surrogateescape` gets back the very bytes, and no text makes this fail.
    """
    media_type = "application/json" if is_json(text) else "text/plain"
    try:
        return _in_pieces(text, "surrogateescape"), media_type
    except UnicodeEncodeError:
        return _in_pieces(text, "surrogatepass"), media_type


def _in_pieces(text: str, errors: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")  # a plain copy
    content = BytesIO()
    for start in range(0, len(text), PIECE_CHARACTERS):
        content.write(text[start : start + PIECE_CHARACTERS].encode("utf-8", errors))
    return content.getvalue()  # shares its bytes until someone writes again


async def store_results(history: History, store: ResultStore | None) -> History:
    """`history` with every result stored that was not, or the same object. Texts and token counts do not change."""
    if store is None:
        return history
    stored: dict[int, Message] = {}
    for index, message in enumerate(history):
        if not isinstance(message, ToolMessage) or message.stored or message.masked:
            continue
        put = await store_tool_message(message, store)
        if isinstance(put, ResultStoreError):
            break  # a full disk stays full: asking once is enough
        if put:
            stored[index] = replace(message, stored=put)
    if not stored:
        return history
    return history.with_replaced(stored)
